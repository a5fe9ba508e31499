"""Blocking calls work beside others: in a running event loop, as a notebook has one, in threads."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import akunu

QUESTION = [{"role": "user", "content": "What colour is the sky?"}]


def replies(model: akunu.Model) -> list[str]:
    """What each kind of blocking call gives."""
    return [
        model.generate("The sky is", max_tokens=4),
        model.chat(QUESTION, max_tokens=4),
        "".join(model.chat(QUESTION, max_tokens=4, stream=True)),
        *model.generate(["The sky is", "The sea is"], max_tokens=4),
        *model.chat(QUESTION, max_tokens=4, n=2, seed=1, temperature=1.0),
    ]


def test_blocking_calls_work_in_a_running_event_loop(ember: akunu.Model) -> None:
    async def cell() -> list[str]:
        return replies(ember)

    assert asyncio.run(cell()) == replies(ember)


def test_blocking_calls_work_beside_awaited_ones(ember: akunu.Model) -> None:
    async def both() -> tuple[str, str]:
        awaited = asyncio.ensure_future(ember.chat_async(QUESTION, max_tokens=4))
        await asyncio.sleep(0)
        return ember.chat(QUESTION, max_tokens=4), await awaited

    first, second = asyncio.run(both())
    assert first == second


def test_blocking_calls_work_in_threads(ember: akunu.Model) -> None:
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(replies, [ember] * 4))
    assert found == [replies(ember)] * 4
