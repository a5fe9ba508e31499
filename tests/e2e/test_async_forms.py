"""Forms of texts in coroutines: they are read and compiled beside the loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from functools import partial
from typing import Any

import pytest
from async_support import MESSAGES, PROMPT, run

import akunu
from akunu import _core


def test_the_loop_goes_on_while_a_schema_is_read(ember: akunu.Model) -> None:
    """Reading it waits for the loop: there it would never come to its end."""
    went_on = threading.Event()

    class Slow:
        @staticmethod
        def model_json_schema() -> dict[str, Any]:
            assert went_on.wait(60), "the loop stands still"
            return {"type": "integer", "minimum": 7, "maximum": 7}

        @staticmethod
        def model_validate_json(text: str) -> int:
            return int(text)

    async def both(text: Coroutine[Any, Any, Any]) -> Any:
        waiting = asyncio.ensure_future(text)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        went_on.set()
        return await waiting

    for call in (
        partial(ember.generate_async, PROMPT),
        partial(ember.generate_async, [PROMPT]),
        partial(ember.generate_async, PROMPT, n=1),
        partial(ember.chat_async, MESSAGES),
        partial(ember.chat_async, [MESSAGES]),
    ):
        went_on.clear()
        reply = run(both(call(schema=Slow, max_tokens=40)))
        for each in reply if isinstance(reply, list) else [reply]:
            assert each.parsed == 7


def test_grammars_are_compiled_beside_the_loop(
    ember: akunu.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    from akunu.grammar import vocabulary

    threads = []
    compile_constraint = vocabulary.constraint_of

    def spy(*arguments: Any) -> _core.Constraint:
        threads.append(threading.current_thread())
        return compile_constraint(*arguments)

    monkeypatch.setattr(vocabulary, "constraint_of", spy)
    for reply in (
        ember.generate_async(PROMPT, choice=["yes"]),
        ember.generate_async([PROMPT, PROMPT], choice=["yes"]),
        ember.generate_async(PROMPT, choice=["yes"], n=2),
        ember.chat_async(MESSAGES, choice=["yes"]),
    ):
        answers = run(reply)
        assert answers == "yes" or answers == ["yes", "yes"]
    assert len(threads) == 6
    assert threading.main_thread() not in threads


def test_a_form_that_makes_no_sense_is_told_before_anything_is_generated(
    ember: akunu.Model,
) -> None:
    async def first_piece(stream: akunu.AsyncTextStream) -> None:
        async with stream:
            raise AssertionError("it has begun")

    for make in (partial(ember.generate_async, PROMPT), partial(ember.chat_async, MESSAGES)):
        with pytest.raises(akunu.ArgumentError, match="json and regex are set"):
            make(json=True, regex="a")  # before it is awaited
        for form in ({"schema": {"type": "strin"}}, {"regex": 5}, {"grammar": "start: nothing"}):
            with pytest.raises(akunu.ArgumentError):
                run(make(**form))
            with pytest.raises(akunu.ArgumentError):
                run(first_piece(make(**form, stream=True)))
