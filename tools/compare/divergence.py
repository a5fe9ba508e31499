"""How far one distribution of next tokens is from another, and what a text costs under it.

All take logits `[n, vocab_size]`, row i after token i, and compute in double.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def log_probabilities(logits: ArrayLike) -> Array:
    """Natural logarithms of the probabilities, `[n, vocab_size]`; ValueError unless all finite."""
    values = np.asarray(logits, np.float64)
    if not np.isfinite(values).all():
        raise ValueError("there are logits that are infinite or not a number")
    shifted = values - values.max(axis=-1, keepdims=True)
    normalised: Array = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return normalised


def divergence(reference: ArrayLike, other: ArrayLike) -> Array:
    """KL(reference || other) after each token, in nats, `[n]`."""
    expected = log_probabilities(reference)
    difference = log_probabilities(other) - expected
    # sum(p * -difference) plus sum(p * (exp(difference) - 1)), which is 0 as both sum to one: no
    # term is negative, so that a divergence of 1e-12 is not lost between terms of either sign.
    terms = np.exp(expected) * (np.expm1(difference) - difference)
    result: Array = terms.sum(axis=-1)
    return result


def agreement(reference: ArrayLike, other: ArrayLike) -> NDArray[np.bool_]:
    """Where both have the same most likely token, `[n]`."""
    result: NDArray[np.bool_] = np.argmax(reference, axis=-1) == np.argmax(other, axis=-1)
    return result


def negative_log_likelihoods(
    logits: ArrayLike, tokens: Sequence[int], counted: Sequence[bool]
) -> Array:
    """Of one chunk: those that llama.cpp's `perplexity` counts, as far as `counted` says so.

    What comes in the second half is scored, from the token after its first one on.
    """
    n = len(tokens)
    first = n // 2
    scored = log_probabilities(np.asarray(logits)[first : n - 1])
    result: Array = -scored[np.arange(n - 1 - first), np.asarray(tokens)[first + 1 :]]
    return result[np.asarray(counted[first + 1 :], bool)]


def perplexity(likelihoods: Sequence[Array]) -> float:
    """Of the chunks of a text."""
    return float(np.exp(np.concatenate(list(likelihoods)).mean()))


def ratio_interval(
    ours: Array, theirs: Array, *, block: int = 64, repetitions: int = 2000
) -> tuple[float, float]:
    """Between what 90 % of the ratios of means lie when the text is drawn again, in blocks.

    Blocks, since what one token does to the cache its neighbours see too. The same every time.
    """
    n_blocks = len(ours) // block
    if n_blocks < 2:
        raise ValueError(f"an interval needs {2 * block} tokens or more, got {len(ours)}")
    sums = [
        each[: n_blocks * block].reshape(n_blocks, block).sum(axis=1) for each in (ours, theirs)
    ]
    drawn = np.random.RandomState(0).randint(n_blocks, size=(repetitions, n_blocks))
    low, high = np.quantile(sums[0][drawn].sum(axis=1) / sums[1][drawn].sum(axis=1), [0.05, 0.95])
    return float(low), float(high)
