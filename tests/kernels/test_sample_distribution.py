"""sample: which tokens can be drawn, and how often: thousands of draws against the softmax."""

from __future__ import annotations

import numpy as np
import pytest
import sample_reference as ref
from harness import Target
from test_sample import row, sample, setting

ROWS = 1000


def draws(
    target: Target, logits: np.ndarray, *, steps: int | None = None, **record: float
) -> np.ndarray:
    """Picks from one row of logits, 1,000 a step; only the draw counts up."""
    if steps is None:
        steps = 2 if target.level == "checked" else 20  # which takes a hundred times as long
    step = setting(ROWS, seed_low=2024, **record)
    step.rows["head_row"] = 0
    picked = []
    for first in range(0, ROWS * steps, ROWS):
        step.rows["draw"] = first + np.arange(ROWS)
        picked.append(sample(target, logits.copy(), step, threads=2)[0])
    return np.concatenate(picked)


def chi_square_limit(degrees: int) -> float:
    """The value exceeded once in 10,000 (Wilson and Hilferty's approximation)."""
    z = 3.719
    return degrees * (1 - 2 / (9 * degrees) + z * np.sqrt(2 / (9 * degrees))) ** 3


@pytest.mark.parametrize(
    "filters",
    [
        {"temperature": 1.0},
        {"temperature": 0.5},
        {"temperature": 2.0, "top_k": 6},
        {"temperature": 1.0, "top_p": 0.85},
        {"temperature": 1.5, "min_p": 0.2},
        {"temperature": 1.2, "top_k": 9, "top_p": 0.95, "min_p": 0.05},
    ],
    ids=lambda filters: "-".join(f"{k}={v}" for k, v in filters.items()),
)
def test_frequencies_are_the_filtered_softmax(target, filters):
    logits = row(0.3, 1.9, -1.1, 2.5, 0.0, 1.2, -0.4, 0.9, 2.2, -2.0, 0.6, 1.5)
    record = setting(**filters).sequences[0]
    z = logits[0] / record["temperature"]
    tokens = ref.candidates_of(z, record)
    expected = np.exp(z[tokens].astype(np.float64))
    picked = draws(target, logits, **filters)
    expected *= picked.size / expected.sum()
    counts = np.bincount(picked, minlength=logits.size)
    assert counts.sum() == counts[tokens].sum(), "a token outside the filters was picked"
    chi_square = ((counts[tokens] - expected) ** 2 / expected).sum()
    assert chi_square < chi_square_limit(len(tokens) - 1)


def picked_tokens(target: Target, logits: np.ndarray, **record: float) -> set[int]:
    return set(draws(target, logits, steps=1, temperature=1.0, **record).tolist())


def test_top_k_takes_the_lowest_of_equals(target):
    assert picked_tokens(target, row(0, 1, 0, 0, 0), top_k=3) == {0, 1, 2}


def test_top_p_keeps_the_token_that_crosses(target):
    # Masses 0.5, 0.25, 0.25 (of the two equals the lower comes first).
    logits = np.log(np.array([[0.25, 0.5, 0.25]], np.float32))
    assert picked_tokens(target, logits, top_p=0.4) == {1}
    assert picked_tokens(target, logits, top_p=0.6) == {0, 1}
    assert picked_tokens(target, logits, top_p=0.8) == {0, 1, 2}


def test_top_p_is_a_share_of_what_top_k_left(target):
    # Of all, the first has 0.4; of the first two, 2/3.
    logits = np.log(np.array([[0.4, 0.2, 0.2, 0.2]], np.float32))
    assert picked_tokens(target, logits, top_p=0.5) == {0, 1}
    assert picked_tokens(target, logits, top_p=0.5, top_k=2) == {0}


def test_min_p_is_relative_to_the_most_likely(target):
    logits = np.log(np.array([[0.6, 0.2, 0.13, 0.07]], np.float32))
    assert picked_tokens(target, logits, min_p=0.15) == {0, 1, 2}
    assert picked_tokens(target, logits, min_p=1.0) == {0}


def test_neighbouring_draws_are_independent(target):
    """Pairs of successive picks of two equal tokens: four outcomes, a quarter each."""
    picked = draws(target, row(0, 0), temperature=1.0)
    pairs = np.bincount(picked[0::2] * 2 + picked[1::2], minlength=4)
    expected = len(picked) / 8
    assert ((pairs - expected) ** 2 / expected).sum() < chi_square_limit(3)
