"""What a model tells of its engine: who waits, what runs, and who has which part of the cache."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

import akunu

# So hot that the next token is nearly any: such a text goes on until the context is full.
LONG: dict[str, Any] = {"temperature": 50, "seed": 3, "stream": True}


def until(condition: Callable[[], bool]) -> None:
    """Wait for what comes within a step or two of the engine."""
    ends = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.001)


def pages(model: akunu.Model) -> tuple[int, int, int]:
    """In use, cached, free; of the four pages that a context of 1024 positions has."""
    (full,) = model.occupancy.cache
    assert full.kind == "full"
    assert full.in_use + full.cached + full.free == 4
    return full.in_use, full.cached, full.free


def test_texts_and_pages_are_counted() -> None:
    with akunu.load(context=1024) as model:
        assert model.occupancy.waiting == model.occupancy.running == 0
        assert pages(model) == (0, 0, 4)
        with model.generate([7] * 600, **LONG) as running:
            next(running)
            with model.generate([8] * 600, **LONG):  # it has no room beside the other
                until(lambda: model.occupancy.waiting == 1)
                assert model.occupancy.running == 1
                assert pages(model)[0] >= 3  # 600 positions, 256 in a page
            until(lambda: model.occupancy.waiting == 0)
            assert not running.finish_reason
        until(lambda: model.occupancy.running == 0)
        in_use, cached, _ = pages(model)
        assert in_use == 0
        assert cached >= 2  # of the prompt, whole pages at least


def test_texts_that_were_cancelled_leave_their_place_in_the_queue() -> None:
    with (
        akunu.load(context=1024, max_waiting=1) as model,
        model.generate([7] * 600, **LONG) as running,
    ):
        next(running)
        with model.generate([8] * 600, **LONG), pytest.raises(akunu.QueueFullError):
            model.generate("The", **LONG)
        until(lambda: model.occupancy.waiting == 0)
        with model.generate("The", **LONG) as another:
            assert next(another)
        assert not running.finish_reason
