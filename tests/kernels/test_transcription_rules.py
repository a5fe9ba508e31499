"""transcription_rules: against transformers' processors of logits, over histories of all kinds."""

from __future__ import annotations

import numpy as np
import pytest
from harness import NONE, OPTION_WORDS, On, Run, assert_same_bits, make_step, pack_params, run
from tables import table

VOCAB, END, FIRST = 200, 100, 120  # text, then tokens that are none, then timestamps
N_PROMPT = 3


def apply(
    target, logits, histories, *, last_initial=FIRST + 5, first=FIRST, banned=(), start=(), **on
):
    """The logits of a row behind each history, after the rules."""
    step = make_step([Run(i, N_PROMPT + len(h) - 1, 1) for i, h in enumerate(histories)])
    step.rows["head_row"] = np.arange(len(histories))
    record = step.sequences
    record["n_prompt"] = record["n_before"] = N_PROMPT
    record["first_timestamp"], record["end_of_text"] = first, END
    record["last_initial"] = last_initial
    record["rules_banned_first"], record["rules_banned_n"] = 7, len(banned)
    record["rules_banned_first_first"], record["rules_banned_first_n"] = 40, len(start)
    log = np.zeros((len(histories), 64), np.uint32)
    options = np.zeros((len(histories), OPTION_WORDS), np.uint32)
    options[:, 7 : 7 + len(banned)] = banned
    options[:, 40 : 40 + len(start)] = start
    for i, history in enumerate(histories):
        log[i, N_PROMPT : N_PROMPT + len(history)] = history
    out = logits.copy()
    params = pack_params("transcription_rules", VOCAB, log.shape[1])
    run("transcription_rules", [out, log, options], params, step, On(target, **on))
    return out


def by_transformers(logits, history, last_initial=5):
    import torch
    import transformers

    config = transformers.GenerationConfig(
        no_timestamps_token_id=FIRST - 1,
        eos_token_id=END,
        bos_token_id=END,
        max_initial_timestamp_index=last_initial,
    )
    processor = transformers.WhisperTimeStampLogitsProcessor(config, begin_index=N_PROMPT)
    ids = torch.tensor([[0] * N_PROMPT + history])
    return processor(ids, torch.from_numpy(logits[None].copy()))[0].numpy()


HISTORIES = [
    [],
    [FIRST],
    [FIRST + 3, 5],
    [FIRST, 5, 6, FIRST + 30],
    [FIRST, 5, FIRST + 30, FIRST + 30],
    [FIRST, 5, FIRST + 30, FIRST + 30, 9],
    [FIRST, 5, FIRST + 79],
    [5, 6],
    [FIRST, 5, FIRST + 30, 7],
]


@pytest.mark.oracle
@table(louder=["text", "timestamps", "neither"])
def test_equals_transformers(target, rng, louder):
    logits = rng.standard_normal((len(HISTORIES), VOCAB)).astype(np.float32)
    logits[:, :END] += 8 * (louder == "text")
    logits[:, FIRST:] += 8 * (louder == "timestamps")
    out = apply(target, logits, HISTORIES, banned=[FIRST - 1])
    for row, history in enumerate(HISTORIES):
        assert_same_bits(out[row], by_transformers(logits[row], history), str(history))


def forbidden(row):
    return set(np.flatnonzero(row == -np.inf).tolist())


def test_a_text_begins_with_a_timestamp_and_not_a_late_one(target):
    out = apply(target, np.zeros((1, VOCAB), np.float32), [[]])
    assert forbidden(out[0]) == {*range(FIRST), *range(FIRST + 6, VOCAB)}


def test_a_pair_ends_a_segment_and_begins_the_next(target):
    logits = np.zeros((3, VOCAB), np.float32)
    logits[:, :FIRST] = 9  # no timestamp is forced
    out = apply(
        target, logits, [[FIRST, 5, FIRST + 30], [FIRST, 5, FIRST + 30, FIRST + 31], [FIRST]]
    )
    assert forbidden(out[0]) == {*range(END), *range(FIRST, FIRST + 30)}
    assert forbidden(out[1]) == set(range(FIRST, VOCAB))
    assert forbidden(out[2]) == set(range(FIRST, VOCAB))


@table(timestamp=[0.0, 1.0])
def test_timestamps_that_together_are_likelier_win(target, timestamp):
    """80 of e^0 have 4.38 together, of e^1 one more; the likeliest text has 4.9."""
    logits = np.full((1, VOCAB), -20, np.float32)
    logits[0, FIRST:] = timestamp
    logits[0, 8] = 4.9
    out = apply(target, logits, [[FIRST, 5]])
    text = set(range(FIRST)) if timestamp else set()
    assert forbidden(out[0]) == {FIRST, *text}


def test_listed_tokens_are_banned_and_some_only_at_the_beginning(target):
    logits = np.zeros((2, VOCAB), np.float32)
    out = apply(target, logits, [[], [5]], first=0, banned=[3, 199, VOCAB], start=[4])
    assert forbidden(out[0]) == {3, 4, 199}
    assert forbidden(out[1]) == {3, 199}


def test_rows_that_choose_nothing_stay_as_they_are(target):
    step = make_step([Run(0, 0, 3)])
    step.rows["head_row"] = [0, 1, NONE]
    step.rows["flags"][1] = 0
    step.sequences["n_prompt"] = step.sequences["n_before"] = 2
    step.sequences["first_timestamp"] = FIRST
    logits = np.zeros((2, VOCAB), np.float32)
    out = logits.copy()
    log, options = np.zeros((1, 64), np.uint32), np.zeros((1, OPTION_WORDS), np.uint32)
    params = pack_params("transcription_rules", VOCAB, 64)
    run("transcription_rules", [out, log, options], params, step, On(target))
    assert_same_bits(out, logits)


def test_rows_and_threads_change_no_bit(target, rng):
    logits = rng.standard_normal((len(HISTORIES), VOCAB)).astype(np.float32)
    together = apply(target, logits, HISTORIES)
    assert_same_bits(apply(target, logits, HISTORIES, threads=3), together)
    for row, history in enumerate(HISTORIES):
        assert_same_bits(apply(target, logits[row : row + 1], [history])[0], together[row])
