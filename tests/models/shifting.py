"""How tests make a text go on where its context is full."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from engine import finished, start
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
