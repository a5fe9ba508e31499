"""Many prompts in one awaited call; see batches.py."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from akunu.common.error_context import naming
from akunu.errors import QueueFullError
from akunu.text.async_text_stream import AsyncTextStream
from akunu.text.batches import MOST_BEGUN, Given

if TYPE_CHECKING:
    from akunu import _core
    from akunu.text.completion import Completion
    from akunu.text.reply_decoder import ReplyDecoder
    from akunu.text.wakers import Wakers


async def generate_all_async(
    native: _core.NativeModel,
    wakers: Wakers,
    name: str,
    prompts: Sequence[Given],
    begin: Callable[[Given], Awaitable[ReplyDecoder]],
) -> list[Completion]:
    """Await a text for each prompt; the first error cancels all that `begin` began."""
    done: dict[int, Completion] = {}
    under_way: set[int] = set()
    one_is_over = asyncio.Condition()

    async def work(left: Iterator[int]) -> None:
        for index in left:
            with naming(f"{name}[{index}]"):
                done[index] = await one(index)
            async with one_is_over:
                one_is_over.notify_all()

    async def one(index: int) -> Completion:
        async def begun() -> ReplyDecoder:
            return await begin(prompts[index])

        while True:
            stream = AsyncTextStream(native, wakers, begun)
            try:
                async with stream:
                    under_way.add(index)
                    return await stream.complete()
            except QueueFullError:
                if not under_way:
                    raise
                waits_behind = len(done)
            finally:
                under_way.discard(index)
            async with one_is_over:
                while len(done) == waits_behind:  # when one of the others is over, it has its turn
                    await one_is_over.wait()

    left = iter(range(len(prompts)))
    workers = [asyncio.ensure_future(work(left)) for _ in range(min(MOST_BEGUN, len(prompts)))]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    return [done[index] for index in range(len(prompts))]
