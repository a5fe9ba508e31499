"""Sessions for coroutines: the texts of those that block, and what is refused meanwhile."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from async_support import run

import akunu
from akunu import AkunuError, ArgumentError, ContextOverflowError, SessionFileError

SAMPLED: dict[str, Any] = {"temperature": 1.0, "seed": 5, "max_tokens": 12}
LONG: dict[str, Any] = {"temperature": 50, "seed": 3, "max_tokens": 300}
TALK = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello!"}]


@pytest.mark.parametrize(
    "content", ["The quick brown", [5, 6, 7], TALK], ids=["text", "ids", "talk"]
)
def test_a_session_of_coroutines_writes_what_one_that_blocks_writes(
    content: Any, ember: akunu.Model, tmp_path: Path
) -> None:
    async def written() -> tuple[list[Any], akunu.Session]:
        session = ember.session()
        await session.append_async(content)
        replies: list[Any] = [await session.generate_async(**SAMPLED)]
        branch = session.fork()
        await branch.append_async(TALK[1] if content is TALK else ", and")
        stream = branch.generate_async(stream=True, max_tokens=8)
        replies.append("".join([piece async for piece in stream]))
        await branch.save_async(tmp_path / "a.session")
        loaded = await ember.load_session_async(tmp_path / "a.session")
        await loaded.append_async(TALK[1] if content is TALK else "!")
        replies.append(await loaded.generate_async(max_tokens=8))
        return replies, loaded

    session = ember.session()
    session.append(content)
    expected = [session.generate(**SAMPLED)]
    session.append(TALK[1] if content is TALK else ", and")
    expected.append(session.generate(max_tokens=8))
    session.append(TALK[1] if content is TALK else "!")
    expected.append(session.generate(max_tokens=8))
    replies, loaded = run(written())
    assert replies == expected
    assert (loaded.token_ids, loaded.messages) == (session.token_ids, session.messages)


def test_sessions_generate_side_by_side(ember: akunu.Model) -> None:
    start = ember.session()
    start.append("Once upon a time")

    async def forks() -> list[akunu.Completion]:
        branches = [start.fork() for _ in range(8)]
        return await asyncio.gather(
            *(
                each.generate_async(temperature=1.0, seed=i, max_tokens=10)
                for i, each in enumerate(branches)
            )
        )

    replies = run(forks())
    assert replies == [
        start.fork().generate(temperature=1.0, seed=i, max_tokens=10) for i in range(8)
    ]


def test_a_form_holds_the_reply(ember: akunu.Model) -> None:
    question = {"role": "user", "content": "What is 12 + 7?"}

    async def formed() -> akunu.Completion:
        session = ember.session()
        await session.append_async(question)
        return await session.generate_async(regex="[0-9]{2}", max_tokens=8)

    reply = run(formed())
    assert reply == ember.chat([question], regex="[0-9]{2}", max_tokens=8)
    assert len(reply) == 2


def test_while_a_reply_is_written_other_uses_are_refused(ember: akunu.Model) -> None:
    async def used() -> None:
        session = ember.session()
        await session.append_async("Once")
        n = session.n_tokens
        reply = asyncio.ensure_future(session.generate_async(**LONG))
        await asyncio.sleep(0)
        uses: list[Callable[[], object]] = [
            session.fork,
            lambda: session.rewind(1),
            lambda: session.generate(max_tokens=1),
            lambda: session.generate_async(max_tokens=1),
            lambda: session.n_tokens,
        ]
        for use in uses:
            with pytest.raises(AkunuError, match="is being written"):
                use()
        with pytest.raises(AkunuError, match="is being written"):
            await session.append_async("more")
        await reply
        assert session.n_tokens == n + 300

    run(used())


def test_a_cancelled_task_leaves_the_session_as_it_was(ember: akunu.Model) -> None:
    async def cancelled() -> None:
        session = ember.session()
        await session.append_async("Once")
        before = session.token_ids
        for seconds in (0, 0.001, 0.02):
            reply = asyncio.ensure_future(session.generate_async(**LONG))
            await asyncio.sleep(seconds)
            reply.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reply
            assert session.token_ids == before
        assert await session.generate_async(**SAMPLED) == ember.generate("Once", **SAMPLED)

    run(cancelled())


def test_of_a_stream_that_is_closed_what_was_taken_is_kept(ember: akunu.Model) -> None:
    async def closed() -> None:
        session = ember.session()
        await session.append_async("Once")
        before = session.token_ids
        stream = session.generate_async(**LONG, stream=True)
        await anext(stream)
        await stream.aclose()
        assert session.token_ids == (*before, *stream.completion.token_ids)
        session.rewind(len(before))
        never = session.generate_async(**LONG, stream=True)
        await never.aclose()
        assert session.token_ids == before
        lost = session.generate_async(**LONG, stream=True)
        del lost
        gc.collect()
        assert session.token_ids == before

    run(closed())


def test_what_is_wrong_is_raised_where_it_is_awaited(ember: akunu.Model, tmp_path: Path) -> None:
    async def wrong() -> None:
        session = ember.session()
        with pytest.raises(ArgumentError):
            await session.append_async(5)  # type: ignore[arg-type]
        with pytest.raises(ContextOverflowError):
            await session.append_async([5] * (ember.context + 1))
        with pytest.raises(ArgumentError):
            session.generate_async(temperature=-1)
        text = session.fork()
        await text.append_async("Once")
        with pytest.raises(ArgumentError, match="adapters names 'none'"):
            await text.generate_async(adapters="none")
        assert text.n_tokens
        await session.append_async([*TALK, {"role": "assistant", "content": "Hi."}])
        with pytest.raises(ArgumentError, match="is the model's"):
            await session.generate_async(max_tokens=1)
        assert len(session.messages or ()) == 3
        with pytest.raises(SessionFileError):
            await ember.load_session_async(tmp_path / "none")
        session.close()
        with pytest.raises(AkunuError, match="is closed"):
            session.generate_async(max_tokens=1)

    run(wrong())
