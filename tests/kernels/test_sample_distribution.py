"""sample: which tokens can be drawn, and how often: thousands of draws against the softmax."""

from __future__ import annotations

import numpy as np
import sample_reference as ref
from harness import Target
from tables import table
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


def order(*names: str) -> dict[str, int]:
    """The fields of a record that say so."""
    numbers = sum((ref.SAMPLERS.index(name) + 1) << 4 * i for i, name in enumerate(names))
    return {"samplers_low": numbers & 0xFFFFFFFF, "samplers_high": numbers >> 32}


def expected_shares(logits: np.ndarray, record: np.void) -> np.ndarray:
    """Of each token, exactly: with XTC, of both sides of its coin."""
    shares = np.zeros(logits.size)
    often = float(record["xtc_probability"])
    for probability, applies in ((often, 1), (1 - often, 0)):
        side = record.copy()
        side["xtc_probability"] = applies
        z = ref.candidates_of(logits, side).astype(np.float64)
        weights = np.exp(z - z.max())
        shares += probability * weights / weights.sum()
    return shares


@table(
    filters=[
        {"temperature": 1.0},
        {"temperature": 0.5},
        {"temperature": 2.0, "top_k": 6},
        {"temperature": 1.0, "top_p": 0.85},
        {"temperature": 1.5, "min_p": 0.2},
        {"temperature": 1.2, "top_k": 9, "top_p": 0.95, "min_p": 0.05},
        {"temperature": 1.0, "top_n_sigma": 1.1},
        {"temperature": 0.7, "typical_p": 0.6},
        {"temperature": 1.0, "xtc_probability": 1.0, "xtc_threshold": 0.1},
        {"temperature": 1.0, "xtc_probability": 0.3, "xtc_threshold": 0.15},
        {"temperature": 1.3, "top_k": 10, "typical_p": 0.9, "top_p": 0.9},
        {"temperature": 0.8, "top_n_sigma": 1.5, "min_p": 0.1, "xtc_probability": 0.5},
        {
            "temperature": 1.6,
            "top_p": 0.8,
            "min_p": 0.1,
            "top_k": 5,
            **order("temperature", "min_p", "top_p", "top_k"),
        },
        {
            "temperature": 1.4,
            "xtc_probability": 0.6,
            "typical_p": 0.7,
            "top_n_sigma": 1.0,
            **order("xtc", "typical_p", "temperature", "top_n_sigma"),
        },
    ],
)
def test_frequencies_are_the_filtered_softmax(target, filters):
    logits = row(0.3, 1.9, -1.1, 2.5, 0.0, 1.2, -0.4, 0.9, 2.2, -2.0, 0.6, 1.5)
    expected = expected_shares(logits[0], setting(**filters).sequences[0])
    tokens = np.flatnonzero(expected)
    picked = draws(target, logits, **filters)
    expected *= picked.size
    counts = np.bincount(picked, minlength=logits.size)
    assert counts.sum() == counts[tokens].sum(), "a token outside the filters was picked"
    chi_square = ((counts[tokens] - expected[tokens]) ** 2 / expected[tokens]).sum()
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


def test_typical_p_keeps_what_is_as_surprising_as_usual(target):
    # -ln p: 0.69, 1.39, 2.08, 2.08; the entropy is 1.21, and 0.25 is nearest to it.
    logits = np.log(np.array([[0.5, 0.25, 0.125, 0.125]], np.float32))
    assert picked_tokens(target, logits, typical_p=0.2) == {1}
    assert picked_tokens(target, logits, typical_p=0.5) == {0, 1}
    assert picked_tokens(target, logits, typical_p=0.8) == {0, 1, 2}


def test_top_n_sigma_counts_deviations_below_the_largest(target):
    # Given as 2.1 and 0.4 below 5.5.
    logits = row(5, 1, 1, 5, 3.5, 0.5, 5.5, 2.5)
    deviation = float(logits.std())
    assert picked_tokens(target, logits, top_n_sigma=2.1 / deviation) == {0, 3, 4, 6}
    assert picked_tokens(target, logits, top_n_sigma=0.4 / deviation) == {6}


def test_xtc_leaves_the_least_likely_of_the_top_choices(target):
    logits = np.log(np.array([[0.4, 0.3, 0.2, 0.1]], np.float32))
    both = {"xtc_probability": 1.0}
    assert picked_tokens(target, logits, xtc_threshold=0.15, **both) == {2, 3}
    assert picked_tokens(target, logits, xtc_threshold=0.35, **both) == {0, 1, 2, 3}
    assert picked_tokens(target, logits, xtc_threshold=0.35, xtc_probability=0.0) == {0, 1, 2, 3}


def test_the_order_of_the_samplers_counts(target):
    # At a temperature of 1/2 the shares are 16/21, 4/21 and 1/21; before it 4/7, 2/7 and 1/7.
    logits = np.log(np.array([[4.0, 2.0, 1.0]], np.float32))
    both = {"temperature": 0.5, "min_p": 0.2}
    assert set(draws(target, logits, steps=1, **both).tolist()) == {0, 1, 2}
    first = order("temperature", "min_p")
    assert set(draws(target, logits, steps=1, **both, **first).tolist()) == {0, 1}


def test_neighbouring_draws_are_independent(target):
    """Pairs of successive picks of two equal tokens: four outcomes, a quarter each."""
    picked = draws(target, row(0, 0), temperature=1.0)
    pairs = np.bincount(picked[0::2] * 2 + picked[1::2], minlength=4)
    expected = len(picked) / 8
    assert ((pairs - expected) ** 2 / expected).sum() < chi_square_limit(3)
