"""sample: exact picks against the reference, step by step; distributions are in
test_sample_distribution.py."""

from __future__ import annotations

import numpy as np
import pytest
import sample_reference as ref
from harness import (
    ACTIVE,
    CHAINED,
    NONE,
    On,
    Run,
    assert_same_bits,
    make_step,
    pack_params,
    poisoned,
    run,
)

LOG_STRIDE = 64


def setting(n_rows=1, position=10, **record):
    step = make_step([Run(0, position, n_rows)])
    step.rows["head_row"] = np.arange(n_rows)
    for name, value in record.items():
        step.sequences[name] = value
    return step


def sample(target, logits, step, log=None, *, soft_cap=0.0, threads=1, **part):
    """Returns (picked, statuses); logits and log change in place."""
    if log is None:
        log = np.zeros((len(step.sequences), LOG_STRIDE), np.uint32)
    picked = poisoned(len(step.rows), np.uint32)
    params = pack_params("sample", logits.shape[1], log.shape[1], soft_cap)
    statuses = run("sample", [logits, log, picked], params, step, On(target, threads), **part)
    return picked, statuses


def row(*values: float) -> np.ndarray:
    return np.array([values], np.float32)


# --- Greedy ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("vocab_size", [1, 7, 8, 9, 1000, 150001])
def test_greedy_takes_the_largest(target, rng, vocab_size):
    logits = rng.standard_normal((3, vocab_size)).astype(np.float32)
    before = logits.copy()
    picked, statuses = sample(target, logits, setting(3), threads=2)
    assert picked.tolist() == before.argmax(axis=1).tolist()
    assert not statuses
    assert_same_bits(logits, before)


@pytest.mark.parametrize(
    ("logits", "expected"),
    [
        (row(1, 3, 3, 3, 0, 0, 0, 0, 0, 3), 1),
        (row(0.0, -0.0, 0.0), 0),
        (row(-0.0, 0.0), 0),
        (row(-5, -3, -3), 1),
        (row(*[-np.inf] * 9, -1e30), 9),
        (row(1, np.inf, np.inf), 1),
        (row(*[0.0] * 40), 0),
    ],
)
def test_greedy_takes_the_lowest_index_on_ties(target, logits, expected):
    assert sample(target, logits, setting())[0].tolist() == [expected]


# --- What goes wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("place", [0, 7, 8, 18])
def test_nan_is_reported_never_chosen(target, rng, temperature, place):
    logits = rng.standard_normal((3, 19)).astype(np.float32)
    logits[1, place] = np.nan
    step = setting(3, temperature=temperature)
    step.rows["flags"] |= CHAINED
    log = np.full((1, LOG_STRIDE), 77, np.uint32)
    picked, statuses = sample(target, logits, step, log)
    assert statuses == {1: (1, 11, 0)}
    assert step.rows["flags"].tolist() == [ACTIVE | CHAINED, CHAINED, ACTIVE | CHAINED]
    assert picked[1] == 0xFFFFFFFF  # as poisoned
    assert (picked[[0, 2]] < 19).all()
    assert log[0, 12] == 77, "a row without a token logs none"


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_no_candidate_is_reported(target, temperature):
    logits = np.full((1, 21), -np.inf, np.float32)
    step = setting(temperature=temperature)
    picked, statuses = sample(target, logits, step)
    assert statuses == {0: (3, 10, 0)}
    assert step.rows["flags"].tolist() == [0]
    assert picked.tolist() == [0xFFFFFFFF]  # as poisoned


@pytest.mark.parametrize("filters", [{}, {"top_k": 5}, {"top_p": 0.9}, {"min_p": 0.1}])
def test_minus_infinity_is_never_picked_and_infinity_always(target, rng, filters):
    for draw in range(50):
        step = setting(temperature=1.0, **filters)
        step.rows["draw"] = draw
        logits = np.full((1, 30), -np.inf, np.float32)
        logits[0, [3, 17, 22]] = 0
        assert sample(target, logits, step)[0][0] in (3, 17, 22)
        logits[0, [25, 28]] = np.inf
        assert sample(target, logits, step)[0][0] == 25


@pytest.mark.parametrize(("head_row", "flags"), [(NONE, ACTIVE | CHAINED), (0, CHAINED), (0, 0)])
def test_rows_that_are_inactive_or_without_logits_write_nothing(target, head_row, flags):
    step = setting()
    step.rows["head_row"], step.rows["flags"] = head_row, flags
    logits = row(1, 2, np.nan)
    log = np.full((1, LOG_STRIDE), 77, np.uint32)
    picked, statuses = sample(target, logits, step, log)
    assert not statuses
    assert picked.tolist() == [0xFFFFFFFF]  # as poisoned
    assert (log == 77).all()


# --- The log --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "position", "written"),
    [(ACTIVE | CHAINED, 10, True), (ACTIVE, 10, False), (ACTIVE | CHAINED, LOG_STRIDE - 1, False)],
)
def test_a_chained_row_logs_its_token_inside_the_log(target, flags, position, written):
    step = setting(position=position)
    step.rows["flags"] = flags
    log = np.full((2, LOG_STRIDE), 77, np.uint32)
    picked, _ = sample(target, row(1, 2, 9), step, log)
    assert picked.tolist() == [2]
    expected = np.full_like(log, 77)
    if written:
        expected[0, position + 1] = 2
    assert_same_bits(log, expected)


# --- Penalties and soft cap -----------------------------------------------------------------------


@pytest.mark.parametrize("window", [0, 1, 5, 11, 64])
@pytest.mark.parametrize(
    "penalties", [(1.3, 0.0, 0.0), (1.0, 0.25, 0.0), (1.0, 0.0, 0.7), (1.1, 0.3, -0.4)]
)
def test_penalties_count_the_window_s_tokens(target, rng, window, penalties):
    repetition, frequency, presence = penalties
    step = setting(
        penalty_window=window,
        repetition_penalty=repetition,
        frequency_penalty=frequency,
        presence_penalty=presence,
    )
    logits = (rng.standard_normal((1, 20)) * 3).astype(np.float32)
    log = rng.integers(0, 24, (1, LOG_STRIDE)).astype(np.uint32)  # some outside the vocabulary
    expected = ref.penalise(logits[0], log[0], 10, step.sequences[0])
    picked, _ = sample(target, logits, step, log)
    assert_same_bits(logits[0], expected)
    assert picked[0] == expected.argmax()


def test_a_long_window_counts_every_token(target, rng):
    """More tokens than a device compares one by one, over more of the vocabulary than it counts."""
    position, vocab_size = 2600, 9001
    step = setting(position=position, penalty_window=2500, frequency_penalty=0.01)
    step.sequences["repetition_penalty"] = 1.2
    logits = (rng.standard_normal((1, vocab_size)) * 3).astype(np.float32)
    log = rng.integers(0, vocab_size + 9, (1, 4096)).astype(np.uint32)
    log[0, 300:1300] = rng.integers(0, 40, 1000)  # some of them often
    expected = ref.penalise(logits[0], log[0], position, step.sequences[0])
    picked, _ = sample(target, logits, step, log)
    assert_same_bits(logits[0], expected)
    assert picked[0] == expected.argmax()


def test_rows_of_a_span_are_penalised_up_to_their_own_position(target, rng):
    step = setting(4, penalty_window=8, repetition_penalty=1.5)
    logits = (rng.standard_normal((4, 50)) * 3).astype(np.float32)
    log = rng.integers(0, 50, (1, LOG_STRIDE)).astype(np.uint32)
    expected = [ref.penalise(logits[r], log[0], 10 + r, step.sequences[0]) for r in range(4)]
    sample(target, logits, step, log, threads=3)
    assert_same_bits(logits, np.stack(expected))


def test_soft_cap_comes_before_penalties(target):
    step = setting(penalty_window=64, repetition_penalty=2.0)
    values = np.concatenate(
        [[-1e30, -100, -3, -1e-3, 0, 1e-3, 1, 50, 1e30], np.linspace(-40, 40, 41)]
    )
    logits = values[None].astype(np.float32)
    log = np.full((1, LOG_STRIDE), 7, np.uint32)
    expected = 30 * np.tanh(logits[0].astype(np.float64) / 30)
    expected[7] /= 2
    sample(target, logits, step, log, soft_cap=30.0)
    # quotient, tanh to 3 ulp = 6 units, product, the penalty
    np.testing.assert_array_less(
        np.abs(logits[0] - expected), 12 * ref.UNIT * np.abs(expected) + 1e-44
    )


# --- Draws ----------------------------------------------------------------------------------------


def test_philox_matches_the_published_vectors():
    """Random123's known answers for philox4x32-10: the noise is that generator's."""
    ones, digits = [0xFFFFFFFF] * 4, [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344]
    cases = [
        ([0] * 4, (0, 0), "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        (ones, (0xFFFFFFFF, 0xFFFFFFFF), "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (digits, (0xA4093822, 0x299F31D0), "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ]
    for counter, key, expected in cases:
        words = ref.philox4x32_10(np.array(counter, np.uint32), key)
        assert " ".join(f"{word:08x}" for word in words) == expected


FILTERS = [
    pytest.param({}, id="none"),
    pytest.param({"top_k": 1}, id="top_k-1"),
    pytest.param({"top_k": 40}, id="top_k-40"),
    pytest.param({"top_k": 900}, id="top_k-900"),
    pytest.param({"top_p": 0.9}, id="top_p"),
    pytest.param({"top_p": 0.0}, id="top_p-0"),
    pytest.param({"top_p": 0.9999}, id="top_p-most"),
    pytest.param({"min_p": 0.05}, id="min_p"),
    pytest.param({"top_k": 50, "top_p": 0.8, "min_p": 0.02}, id="all"),
    pytest.param({"top_k": 5000, "top_p": 0.7}, id="top_k-over"),
]


@pytest.mark.parametrize("filters", FILTERS)
@pytest.mark.parametrize("temperature", [0.3, 1.0, 5.0])
@pytest.mark.parametrize("vocab_size", [13, 1003])
def test_picks_what_the_reference_picks(target, rng, filters, temperature, vocab_size):
    rows = 60
    step = setting(
        rows, temperature=temperature, seed_low=0x9ABC, seed_high=0xFFFF0001, choice=3, **filters
    )
    step.rows["draw"] = np.arange(rows) * 1000003
    logits = (rng.standard_normal((rows, vocab_size)) * 2).astype(np.float32)
    logits[:20] = np.round(logits[:20])  # many ties
    step.rows["flags"][7] = 0
    picked, statuses = sample(target, logits, step, threads=2)
    assert not statuses
    uncertain = 0
    for r in np.delete(np.arange(rows), 7):
        expected = ref.pick(logits[r], step.sequences[0], int(step.rows["draw"][r]))
        if expected.certain:
            assert picked[r] == expected.token, f"row {r}"
        uncertain += not expected.certain
    assert uncertain <= 3


@pytest.mark.parametrize("shape", ["ascending", "descending", "equal", "two-sizes"])
@pytest.mark.parametrize("filters", [{"top_k": 100}, {"top_p": 0.5}, {}])
def test_orders_that_are_hard_on_a_heap(target, shape, filters):
    n = 4099
    logits = {
        "ascending": np.linspace(-5, 5, n),
        "descending": np.linspace(5, -5, n),
        "equal": np.ones(n),
        "two-sizes": np.arange(n) % 2,
    }[shape][None].astype(np.float32)
    step = setting(temperature=1.0, seed_low=5, **filters)
    for draw in range(20):
        step.rows["draw"] = draw
        expected = ref.pick(logits[0], step.sequences[0], draw)
        picked, _ = sample(target, logits, step)
        assert not expected.certain or picked[0] == expected.token


def test_a_large_vocabulary(target, rng):
    logits = (rng.standard_normal((1, 150000)) * 3).astype(np.float32)
    for filters in ({}, {"top_k": 40}, {"top_k": 60000, "top_p": 0.99}, {"top_p": 0.95}):
        step = setting(temperature=0.9, seed_high=9, **filters)
        expected = ref.pick(logits[0], step.sequences[0], 0)
        assert expected.certain
        assert sample(target, logits, step)[0][0] == expected.token


def test_the_key_and_the_counter_all_matter(target, rng):
    """Another seed, choice or draw is another noise; each as the reference has it."""
    logits = np.zeros((1, 500), np.float32)
    seen = set()
    for field, value in [("choice", 1), ("seed_low", 1), ("seed_high", 1), ("draw", 1), ("", 0)]:
        step = setting(temperature=1.0)
        if field == "draw":
            step.rows["draw"] = value
        elif field:
            step.sequences[field] = value
        picked = int(sample(target, logits, step)[0][0])
        assert picked == ref.pick(logits[0], step.sequences[0], int(step.rows["draw"][0])).token
        seen.add(picked)
    assert len(seen) == 5


def test_noise_is_as_exact_as_stated(target):
    """Two tokens whose logits differ by the reference's noise: a nudge of the bound decides.

    Draws at which a word is near 0 or 2^32 come from a search: there the logarithms are hardest.
    """
    record = setting(temperature=1.0).sequences[0]
    draws = np.arange(200000, dtype=np.uint32)
    counter = np.zeros((len(draws), 4), np.uint32)
    counter[:, 1] = draws
    words = ref.philox4x32_10(counter, (0, 0))[:, 0]
    hardest = np.concatenate([np.argsort(words)[:40], np.argsort(words)[-40:], np.arange(120)])
    for draw in draws[hardest]:
        g = ref.noise(np.arange(2), int(draw), record)
        gap = g[1] - g[0]  # token 0 wins when it leads by more than this
        error = 2 * ref.noise_error(g).max() + 4 * ref.UNIT * np.abs(g).max()
        step = setting(temperature=1.0)
        step.rows["draw"] = draw
        for nudge, winner in ((error, 0), (-error, 1)):
            lead = np.float32(gap + nudge)
            logits = row(lead, 0) if lead > 0 else row(0, -lead)
            assert sample(target, logits, step)[0][0] == winner, f"draw {draw}"


def test_rows_and_threads_change_no_pick(target, rng):
    rows = 33
    step = setting(rows, temperature=1.0, top_p=0.9, seed_low=3)
    step.rows["draw"] = np.arange(rows)
    logits = rng.standard_normal((rows, 777)).astype(np.float32)
    together, _ = sample(target, logits, step, threads=3)
    alone, _ = sample(target, logits, step, first_row=20, n_rows=1)
    assert alone[20] == together[20]
    assert (np.delete(alone, 20) == 0xFFFFFFFF).all()
