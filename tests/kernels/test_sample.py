"""sample: exact picks against the reference, step by step; distributions are in
test_sample_distribution.py."""

from __future__ import annotations

import numpy as np
import pytest
import sample_reference as ref
from harness import (
    ACTIVE,
    CHAINED,
    MASKED,
    NONE,
    OPTION_WORDS,
    On,
    Run,
    assert_same_bits,
    make_step,
    pack_params,
    poisoned,
    run,
)
from tables import table

LOG_STRIDE = 64


def setting(n_rows=1, position=10, **record):
    step = make_step([Run(0, position, n_rows)])
    step.rows["head_row"] = np.arange(n_rows)
    for name, value in record.items():
        step.sequences[name] = value
    return step


def sample(target, logits, step, log=None, *, masks=None, options=None, threads=1, **part):
    """Returns (picked, statuses); the log changes in place, and nothing else."""
    if log is None:
        log = np.zeros((len(step.sequences), LOG_STRIDE), np.uint32)
    picked = poisoned(len(step.rows), np.uint32)
    params = pack_params("sample", logits.shape[1], log.shape[1])
    operands = [logits, log, picked, masks, options]
    statuses = run("sample", operands, params, step, On(target, threads), **part)
    return picked, statuses


def bits(allowed):
    """A mask: bit i % 32 of word i / 32 is token i; those behind the last are set, for nothing."""
    words = np.full(-(-len(allowed) // 32) * 32, True)
    words[: len(allowed)] = allowed
    return np.packbits(words, bitorder="little").view(np.uint32)


def options_of(step, biases, first=3):
    """The buffer of options, with a list of biases, to which every record points."""
    options = poisoned((len(step.sequences), OPTION_WORDS), np.uint32)
    words = options[:, first : first + 2 * len(biases)].reshape(len(options), -1, 2)
    words[:, :, 0] = list(biases)
    words[:, :, 1] = np.array(list(biases.values()), np.float32).view(np.uint32)
    step.sequences["biases_first"], step.sequences["biases_n"] = first, len(biases)
    return options


def assert_changed_to(target, logits, expected, log, position, records, **operands):
    """That a row's logits count as `expected`, bit for bit: `logits` and `expected` have a token
    per column, and one more, the last, which is the challenger and which nothing changes. Of each
    token and a challenger of the expected logit the former is picked, being first; of a challenger
    with the next higher one the latter."""
    n = logits.shape[-1] - 1
    tokens = np.flatnonzero(np.isfinite(expected[:n]))
    step = make_step([Run(0, 0, 2 * len(tokens))])
    step.rows["position"] = position
    step.rows["head_row"] = np.arange(2 * len(tokens))
    step.sequences[:] = records
    duels = np.full((len(tokens), 2, n + 1), -np.inf, np.float32)
    for duel, token in zip(duels, tokens, strict=True):
        duel[:, token] = logits[token]
        duel[:, n] = expected[token], np.nextafter(expected[token], np.float32(np.inf))
    picked, _ = sample(target, duels.reshape(-1, n + 1), step, log, **operands)
    assert picked.reshape(-1, 2).tolist() == [[token, n] for token in tokens]


def row(*values: float) -> np.ndarray:
    return np.array([values], np.float32)


# --- Greedy ---------------------------------------------------------------------------------------


@table(vocab_size=[1, 7, 8, 9, 1000, 150001])
def test_greedy_takes_the_largest(target, rng, vocab_size):
    logits = rng.standard_normal((3, vocab_size)).astype(np.float32)
    before = logits.copy()
    picked, statuses = sample(target, logits, setting(3), threads=2)
    assert picked.tolist() == before.argmax(axis=1).tolist()
    assert not statuses
    assert_same_bits(logits, before)


@table(
    {
        "logits, expected": [
            (row(1, 3, 3, 3, 0, 0, 0, 0, 0, 3), 1),
            (row(0.0, -0.0, 0.0), 0),
            (row(-0.0, 0.0), 0),
            (row(-5, -3, -3), 1),
            (row(*[-np.inf] * 9, -1e30), 9),
            (row(1, np.inf, np.inf), 1),
            (row(*[0.0] * 40), 0),
        ]
    },
)
def test_greedy_takes_the_lowest_index_on_ties(target, logits, expected):
    assert sample(target, logits, setting())[0].tolist() == [expected]


# --- What goes wrong ------------------------------------------------------------------------------


@table(temperature=[0.0, 1.0], place=[0, 7, 8, 18])
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


@table(temperature=[0.0, 1.0])
def test_no_candidate_is_reported(target, temperature):
    logits = np.full((1, 21), -np.inf, np.float32)
    step = setting(temperature=temperature)
    picked, statuses = sample(target, logits, step)
    assert statuses == {0: (3, 10, 0)}
    assert step.rows["flags"].tolist() == [0]
    assert picked.tolist() == [0xFFFFFFFF]  # as poisoned


@table(filters=[{}, {"top_k": 5}, {"top_p": 0.9}, {"min_p": 0.1}])
def test_minus_infinity_is_never_picked_and_infinity_always(target, rng, filters):
    for draw in range(50):
        step = setting(temperature=1.0, **filters)
        step.rows["draw"] = draw
        logits = np.full((1, 30), -np.inf, np.float32)
        logits[0, [3, 17, 22]] = 0
        assert sample(target, logits, step)[0][0] in (3, 17, 22)
        logits[0, [25, 28]] = np.inf
        assert sample(target, logits, step)[0][0] == 25


@table({"head_row, flags": [(NONE, ACTIVE | CHAINED), (0, CHAINED), (0, 0)]})
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


@table(
    {
        "flags, position, written": [
            (ACTIVE | CHAINED, 10, True),
            (ACTIVE, 10, False),
            (ACTIVE | CHAINED, LOG_STRIDE - 1, False),
        ]
    },
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


# --- Biases, penalties and masks ------------------------------------------------------------------


@table(
    window=[0, 1, 5, 11, 64],
    penalties=[(1.3, 0.0, 0.0), (1.0, 0.25, 0.0), (1.0, 0.0, 0.7), (1.1, 0.3, -0.4)],
)
def test_penalties_count_the_window_s_tokens(target, rng, window, penalties):
    repetition, frequency, presence = penalties
    step = setting(
        penalty_window=window,
        repetition_penalty=repetition,
        frequency_penalty=frequency,
        presence_penalty=presence,
    )
    logits = (rng.standard_normal((1, 21)) * 3).astype(np.float32)
    before = logits.copy()
    log = rng.integers(0, 24, (1, LOG_STRIDE)).astype(np.uint32)  # some outside the vocabulary
    log[log == 20] = 19  # nobody's token: the challenger's
    expected = ref.penalise(logits[0], log[0], 10, step.sequences[0])
    picked, _ = sample(target, logits, step, log)
    assert picked[0] == expected.argmax()
    assert_same_bits(logits, before)
    assert_changed_to(target, logits[0], expected, log, 10, step.sequences)


def test_a_long_window_counts_every_token(target, rng):
    """More tokens than a device compares one by one, over more of the vocabulary than it counts."""
    position, vocab_size = 2600, 9001
    step = setting(position=position, penalty_window=2500, frequency_penalty=0.01)
    step.sequences["repetition_penalty"] = 1.2
    logits = (rng.standard_normal((1, vocab_size)) * 3).astype(np.float32)
    log = rng.integers(0, vocab_size + 9, (1, 4096)).astype(np.uint32)
    log[0, 300:1300] = rng.integers(0, 40, 1000)  # some of them often
    log[log == vocab_size - 1] = 7
    expected = ref.penalise(logits[0], log[0], position, step.sequences[0])
    picked, _ = sample(target, logits, step, log)
    assert picked[0] == expected.argmax()
    seldom = np.r_[0:3, 38:42, 4094:4098, vocab_size - 3 : vocab_size - 1]
    some = np.full_like(expected, -np.inf)
    some[seldom] = expected[seldom]
    assert_changed_to(target, logits[0], some, log, position, step.sequences)


def test_rows_of_a_span_are_penalised_up_to_their_own_position(target):
    step = setting(4, penalty_window=3, presence_penalty=10.0)
    logits = np.tile(row(*range(20)), (4, 1))
    log = np.zeros((1, LOG_STRIDE), np.uint32)
    log[0, 8:15] = [19, 18, 17, 16, 18, 17, 19]  # row r at position 10 + r sees three up to it
    picked, _ = sample(target, logits, step, log, threads=3)
    assert picked.tolist() == [16, 19, 19, 19]


@table(vocab_size=[20, 70])
def test_biases_are_added_before_penalties(target, rng, vocab_size):
    step = setting(penalty_window=64, repetition_penalty=2.0)
    logits = rng.standard_normal((1, vocab_size + 1)).astype(np.float32)
    log = np.full((1, LOG_STRIDE), 7, np.uint32)
    biases = {3: 1.5, 7: -9.0, 11: 0.1, 19: -np.inf, 0: 2.0, vocab_size + 1: 50.0}
    expected = ref.penalise(ref.bias(logits[0], biases), log[0], 10, step.sequences[0])
    options = options_of(step, biases)
    assert_changed_to(target, logits[0], expected, log, 10, step.sequences, options=options)
    picked, _ = sample(target, logits, step, log, options=options)
    assert picked[0] == expected.argmax()


def test_a_banned_token_is_not_picked_however_likely(target):
    step = setting()
    options = options_of(step, {2: -np.inf, 1: 0.5})
    assert sample(target, row(0, 1, np.inf), step, options=options)[0].tolist() == [1]


def test_each_sequence_has_biases_of_its_own(target):
    step = make_step([Run(s, 10, 1) for s in range(3)])
    step.rows["head_row"] = [2, 0, 1]
    options = options_of(step, {5: 9.0})
    options[1, 3] = 6
    step.sequences["biases_n"][2] = 0
    picked, _ = sample(target, np.tile(row(*[0.0] * 8, 1.0), (3, 1)), step, options=options)
    assert picked.tolist() == [5, 6, 8]


@table(vocab_size=[1, 31, 32, 33, 64, 1003], temperature=[0.0, 1.0])
def test_a_mask_that_allows_one_token_picks_it(target, rng, vocab_size, temperature):
    n = min(vocab_size, 17)
    wanted = np.linspace(0, vocab_size - 1, n).astype(int)
    step = make_step([Run(s, 10, 1) for s in range(n)])
    step.rows["head_row"] = np.arange(n)[::-1]
    step.sequences["temperature"] = temperature
    step.rows["flags"] |= MASKED
    logits = rng.standard_normal((n, vocab_size)).astype(np.float32)
    masks = np.stack([bits(np.arange(vocab_size) == token) for token in wanted[::-1]])
    picked, statuses = sample(target, logits, step, masks=masks, threads=2)
    assert picked.tolist() == wanted.tolist()
    assert not statuses


def test_a_mask_that_allows_none_leaves_no_candidate(target):
    step = setting(2)
    step.rows["flags"] |= MASKED
    masks = np.stack([bits([False] * 40)] * 2)
    picked, statuses = sample(target, np.zeros((2, 40), np.float32), step, masks=masks)
    assert statuses == {0: (3, 10, 0), 1: (3, 11, 0)}
    assert picked.tolist() == [0xFFFFFFFF] * 2  # as poisoned


def test_a_row_without_mask_may_pick_every_token(target):
    step = setting()
    masks = bits([False] * 3)[None]
    assert sample(target, row(0, 1, 9), step, masks=masks)[0].tolist() == [2]


@table(filters=[{}, {"top_k": 12}, {"top_p": 0.9}, {"min_p": 0.05}], temperature=[0.0, 1.3])
def test_masks_biases_penalties_and_filters_combine(target, rng, filters, temperature):
    """More rows than a device works on at a time: 40."""
    rows, vocab_size = 40, 203
    step = setting(
        rows, temperature=temperature, penalty_window=9, repetition_penalty=1.4, **filters
    )
    step.sequences["presence_penalty"] = 0.25
    step.rows["draw"] = np.arange(rows) * 77
    logits = (rng.standard_normal((rows, vocab_size)) * 2).astype(np.float32)
    before = logits.copy()
    log = rng.integers(0, vocab_size, (1, LOG_STRIDE)).astype(np.uint32)
    allowed = rng.random(vocab_size) < 0.4
    biases = dict(zip(rng.permutation(vocab_size)[:30].tolist(), rng.normal(size=30), strict=True))
    options = options_of(step, biases)
    step.rows["flags"] |= MASKED
    masks = np.stack([bits(np.roll(allowed, r)) for r in range(rows)])
    picked, statuses = sample(
        target, logits, step, log.copy(), masks=masks, options=options, threads=3
    )
    assert not statuses
    assert_same_bits(logits, before)
    uncertain = 0
    for r in range(rows):
        record = step.sequences[0]
        own = ref.mask(ref.bias(logits[r], biases), np.roll(allowed, r))
        text = {"log": log[0], "position": 10 + r}
        expected = ref.pick(own, record, int(step.rows["draw"][r]), **text)
        if expected.certain:
            assert picked[r] == expected.token, f"row {r}"
        uncertain += not expected.certain
    assert uncertain <= 3


def breakers_of(step, options, breakers, first=100):
    """Puts a table of breakers, tuples of tokens, into the buffer of options."""
    by_tail = {}
    for head, *tail in breakers:
        by_tail.setdefault(tuple(tail), []).append(head)
    words = []
    for tail in sorted(by_tail, key=len, reverse=True):
        words += [len(tail), len(by_tail[tail]), *tail, *sorted(by_tail[tail])]
    options[:, first : first + len(words)] = words
    step.sequences["dry_breakers_first"], step.sequences["dry_breakers_n"] = first, len(by_tail)


@table(
    {"base, allowed, last_n": [(1.75, 2, 64), (1.0, 1, 20), (3.0, 4, 40)]},
    breakers=[(), [(3,)], [(3,), (1, 2), (1, 0, 4)], [(9,), (7, 7)]],
)
def test_dry_costs_what_a_repetition_is_long(target, breakers, base, allowed, last_n):
    """Texts of few tokens, which repeat much; every token and its challenger, see above."""
    rng = np.random.default_rng(5)
    for n_tokens in (2, 5, 9):
        step = setting(
            position=50,
            dry_multiplier=0.8,
            dry_base=base,
            dry_allowed_length=allowed,
            dry_penalty_last_n=last_n,
        )
        log = rng.integers(0, n_tokens, (1, LOG_STRIDE)).astype(np.uint32)
        log[0, 20:30] = log[0, 41:51] = rng.integers(0, n_tokens, 10)
        logits = (rng.standard_normal((1, 14)) * 3).astype(np.float32)
        options = options_of(step, {})
        breakers_of(step, options, breakers)
        expected = ref.dry(logits[0], log[0], 50, step.sequences[0], breakers)
        assert_changed_to(target, logits[0], expected, log, 50, step.sequences, options=options)


def test_dry_in_a_long_text_that_says_the_same_again_and_again(target):
    step = setting(position=4000, dry_multiplier=0.5, dry_penalty_last_n=2**31 - 1)
    log = np.tile(np.arange(7, dtype=np.uint32), 600)[None, :4100].copy()
    logits = np.zeros((1, 5000), np.float32)
    expected = ref.dry(logits[0], log[0], 4000, step.sequences[0])
    assert np.count_nonzero(expected) == 1, "the one that goes on"
    assert expected.min() == np.float32(-1e30)
    some = np.full_like(expected, -np.inf)
    some[:8] = expected[:8]
    assert_changed_to(target, logits[0], some, log, 4000, step.sequences)


@table(n_prompt=[0, 4, 9, 11, 12])
def test_penalties_may_look_at_the_reply_alone(target, rng, n_prompt):
    step = setting(penalize_prompt=0, n_prompt=n_prompt, presence_penalty=2.0, dry_multiplier=1.0)
    step.sequences["dry_allowed_length"], step.sequences["dry_penalty_last_n"] = 1, 50
    log = rng.integers(0, 4, (1, LOG_STRIDE)).astype(np.uint32)
    logits = (rng.standard_normal((1, 9)) * 3).astype(np.float32)
    record = step.sequences[0]
    expected = ref.dry(ref.penalise(logits[0], log[0], 10, record), log[0], 10, record)
    if n_prompt > 10:
        assert_same_bits(expected, logits[0])
    assert_changed_to(target, logits[0], expected, log, 10, step.sequences)


def test_no_stop_id_is_picked_before_there_are_enough_tokens(target):
    step = setting(4, min_tokens=2, n_stop_ids=2)
    step.sequences["stop_ids"][0, :3] = [3, 1, 2]
    step.rows["draw"] = np.arange(4)
    picked, _ = sample(target, np.tile(row(0, 8, 7, 9), (4, 1)), step)
    assert picked.tolist() == [2, 2, 3, 3]


@table(temperature=[0.0, 1.2])
def test_penalties_behind_a_filter_change_what_it_left(target, rng, temperature):
    """Both kinds of candidates, a list and a whole row, before them."""
    rows = 40
    step = setting(
        rows, temperature=temperature, top_k=8, presence_penalty=1.5, top_p=0.9, seed_low=4
    )
    # top_k, temperature, penalties, top_p; and the other way round
    step.rows["draw"] = np.arange(rows)
    for samplers in (0x6194, 0x4196):
        step.sequences["samplers_low"], step.sequences["samplers_high"] = samplers, 0
        log = rng.integers(0, 200, (1, LOG_STRIDE)).astype(np.uint32)
        logits = (rng.standard_normal((rows, 203)) * 2).astype(np.float32)
        logits[:, log[0, :20]] += 3
        picked, _ = sample(target, logits, step, log, threads=2)
        uncertain = 0
        for r in range(rows):
            text = {"log": log[0], "position": 10 + r}
            expected = ref.pick(logits[r], step.sequences[0], r, **text)
            if expected.certain:
                assert picked[r] == expected.token, f"row {r}"
            uncertain += not expected.certain
        assert uncertain <= 3


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
    pytest.param({"top_n_sigma": 1.0}, id="top_n_sigma"),
    pytest.param({"typical_p": 0.4}, id="typical_p"),
    pytest.param({"typical_p": 0.95}, id="typical_p-most"),
    pytest.param({"xtc_probability": 1.0, "xtc_threshold": 0.01}, id="xtc"),
    pytest.param({"xtc_probability": 0.5, "xtc_threshold": 0.0}, id="xtc-0"),
    pytest.param(
        {"top_n_sigma": 2.0, "top_k": 300, "typical_p": 0.9, "top_p": 0.9, "xtc_probability": 0.7},
        id="many",
    ),
    pytest.param(
        {"top_k": 30, "top_p": 0.8, "xtc_probability": 0.5, "xtc_threshold": 0.05}
        | {
            "samplers_low": 0x46895,
            "samplers_high": 0,
        },  # typical_p, temperature, xtc, top_p, top_k
        id="another-order",
    ),
]


@table(filters=FILTERS, temperature=[0.0, 0.3, 1.0, 5.0], vocab_size=[13, 1003])
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


@table(
    shape=["ascending", "descending", "equal", "two-sizes"],
    filters=[{"top_k": 100}, {"top_p": 0.5}, {}],
)
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


@pytest.mark.cpu  # in an emulator they take minutes
@table(shape=["flat", "peaked", "ties"])
def test_filters_by_mass_leave_what_they_should_of_a_large_vocabulary(target, rng, shape):
    """A few tokens, and tens of thousands, in whatever order their ranks are found."""
    logits = (rng.standard_normal((1, 150000)) * 3).astype(np.float32)
    if shape == "peaked":
        logits[0, 7::5000] += 12 + np.arange(30, dtype=np.float32) / 8
    if shape == "ties":
        logits = np.round(logits)
    certain = 0
    all_filters = (
        {"top_p": 0.6},
        {"typical_p": 0.8},
        {"typical_p": 0.95, "top_k": 5000, "top_p": 0.9, "min_p": 0.01},
        {"top_n_sigma": 2.0, "xtc_probability": 1.0, "xtc_threshold": 0.01},
    )
    for filters in all_filters:
        step = setting(temperature=0.9, seed_high=9, **filters)
        expected = ref.pick(logits[0], step.sequences[0], 0)
        assert not expected.certain or sample(target, logits, step)[0][0] == expected.token
        certain += expected.certain
    assert certain >= 3


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
