"""How tests make a text go on where its context is full."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from engine import finished, settle, start
from numpy.typing import NDArray


def shifted(
    model: Any,
    tokens: Sequence[int],
    first: int,
    by: int,
    n: int = 1,
    *,
    rereads: bool = False,
    **options: Any,
) -> Any:
    """A text whose prompt fills the context, which goes on without `by` tokens from `first` on.

    `rereads`: what is kept is read again.
    """
    assert len(tokens) == model.context
    before = start(model, tokens, 1, keeps_positions=not rereads)
    text = [*tokens, *finished(before)]
    kept = [*text[:first], *text[first + by :]]
    return start(model, kept, n, goes_on_from=None if rereads else before, **options)


def most_likely(generation: Any) -> NDArray[np.float64]:
    """The largest logprobs of the first token, largest first."""
    finished(generation)
    _, _, likely = generation.logprobs(0, 1)
    return np.asarray(likely[0], np.float64)


def likely_tokens(generation: Any) -> dict[int, float]:
    """Of the first token, the most likely ones."""
    finished(generation)
    _, tokens, likely = generation.logprobs(0, 1)
    return dict(zip(tokens[0].tolist(), likely[0].tolist(), strict=True))


def check_serves_nobody(
    opened: Callable[[], AbstractContextManager[Any]],
    tokens: Sequence[int],
    first: int,
    by: int,
    **options: Any,
) -> None:
    """What was moved is no prefix of a prompt of the same tokens, nor the other way round."""
    with opened() as model:
        moved = shifted(model, tokens, first, by, 30, **options)
        text = finished(moved)
        assert moved.moved_tokens == len(tokens) - by
        prompt = [*tokens[:first], *tokens[first + by :]]
        while_it_is_kept = start(model, prompt, 10, logprobs=3)
        ids = finished(while_it_is_kept)
        assert while_it_is_kept.cached_tokens <= first
        settle(model)
        entries, saved = model._native.save_positions(np.array(prompt, np.uint32))
    with opened() as model:
        fresh = start(model, prompt, 10, logprobs=3)
        assert finished(fresh) == ids
        for ours, theirs in zip(
            while_it_is_kept.logprobs(0, 10), fresh.logprobs(0, 10), strict=True
        ):
            np.testing.assert_array_equal(ours, theirs)
        again, same = model._native.save_positions(np.array(prompt, np.uint32))
        assert again == entries
        np.testing.assert_array_equal(same, saved)
        # And the other way round: a text that moves takes nothing that others read.
        assert finished(shifted(model, tokens, first, by, 30, **options)) == text
