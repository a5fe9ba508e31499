"""logprobs: of scored rows, the log-softmax of the next token, and of the most likely ones."""

from __future__ import annotations

import numpy as np
from harness import ACTIVE, CHAINED, PROMPT, SCORED, On, Run, make_step, pack_params, poisoned, run
from reference import UNIT
from tables import table

from akunu import _core

PLACES = 64  # of a sequence's ring
SCORES = _core.step_dtypes()["logprobs"]


def logprobs(target, logits, step, log, threads=1, picked=None, **part):
    if picked is None:
        picked = poisoned(len(step.rows), np.uint32)
    out = np.empty((len(step.sequences), PLACES), SCORES)
    out.view(np.uint8)[...] = 0xFF
    params = pack_params("logprobs", logits.shape[1], log.shape[1])
    statuses = run(
        "logprobs", [logits, log, picked, out], params, step, On(target, threads), **part
    )
    return out, statuses


def scored(n_rows, position=10, n_logprobs=0):
    step = make_step([Run(0, position, n_rows)])
    step.rows["head_row"] = np.arange(n_rows)
    step.rows["flags"] |= SCORED | PROMPT
    step.sequences["n_logprobs"] = n_logprobs
    return step


def log_softmax(logits):
    wide = logits.astype(np.float64)
    wide -= wide.max(axis=1, keepdims=True)
    return wide - np.log(np.exp(wide).sum(axis=1, keepdims=True))


@table(vocab_size=[1, 7, 9, 1000, 50001], n=[0, 1, 5, 20])
def test_logprobs_are_the_log_softmax(target, rng, vocab_size, n):
    step = scored(3, position=62, n_logprobs=n)  # across the ring's end
    logits = (rng.standard_normal((3, vocab_size)) * 4).astype(np.float32)
    logits[1] = np.round(logits[1])  # ties
    log = rng.integers(0, vocab_size, (1, 100)).astype(np.uint32)
    out, statuses = logprobs(target, logits, step, log, threads=2)
    assert not statuses
    exact = log_softmax(logits)
    bound = 2e-6 + 4 * UNIT * np.abs(logits - logits.max(axis=1, keepdims=True))
    for r, place in enumerate((62, 63, 0)):
        token = log[0, 62 + r + 1]
        assert abs(out[0, place]["chosen"] - exact[r, token]) <= bound[r, token]
        best = np.lexsort((np.arange(vocab_size), -logits[r]))[:n]
        assert out[0, place]["tokens"][: len(best)].tolist() == best.tolist()
        error = np.abs(out[0, place]["logprobs"][: len(best)] - exact[r, best])
        assert (error <= bound[r, best]).all()
        rest = slice(len(best), n)  # a vocabulary of fewer
        assert (out[0, place]["tokens"][rest] == 0xFFFFFFFF).all()
        assert (out[0, place]["logprobs"][rest] == -np.inf).all()
    assert (out[0, 1:62].view(np.uint8) == 0xFF).all()


def test_the_token_behind_a_row_that_picks_is_the_one_that_it_picked(target):
    """The log may have another: a drafted one, or an old one. Of a prompt the last row may pick."""
    step = scored(4, position=20)
    flags = ACTIVE | SCORED
    step.rows["flags"] = [flags | PROMPT, flags, flags | CHAINED, flags | PROMPT | CHAINED]
    logits = np.tile(np.log(np.array([1, 2, 5, 8], np.float32) / 16), (4, 1))
    log = np.zeros((1, 64), np.uint32)
    picked = np.array([1, 1, 2, 3], np.uint32)
    out, _ = logprobs(target, logits, step, log, picked=picked)
    chosen = np.exp(out[0, 20:24]["chosen"]) * 16
    assert chosen.round(3).tolist() == [1, 2, 5, 8]


def test_a_row_without_a_next_token_has_minus_infinity(target):
    step = scored(2, position=8)
    log = np.full((2, 10), 99, np.uint32)  # row 1 is the log's last; 99 is not a token
    log[1] = 2  # another sequence's
    out, _ = logprobs(target, np.zeros((2, 4), np.float32), step, log)
    assert out[0, 8:10]["chosen"].tolist() == [-np.inf, -np.inf]


@table(flags=[ACTIVE, ACTIVE | CHAINED, SCORED, ACTIVE | PROMPT])
def test_rows_that_are_not_scored_or_inactive_write_nothing(target, flags):
    step = scored(1)
    step.rows["flags"] = flags
    log = np.zeros((1, 64), np.uint32)
    out, statuses = logprobs(target, np.full((1, 4), np.nan, np.float32), step, log)
    assert not statuses
    assert (out.view(np.uint8) == 0xFF).all()


@table(value=[np.nan, np.inf])
def test_what_is_no_number_is_reported(target, value):
    step = scored(3)
    logits = np.zeros((3, 9), np.float32)
    logits[1, 8] = value
    _, statuses = logprobs(target, logits, step, np.zeros((1, 64), np.uint32))
    assert statuses == {1: (1, 11, 0)}
    assert (step.rows["flags"] & ACTIVE).tolist() == [ACTIVE, 0, ACTIVE]


def test_rows_and_threads_change_no_bit(target, rng):
    step = scored(21, n_logprobs=20)
    logits = rng.standard_normal((21, 777)).astype(np.float32)
    log = rng.integers(0, 777, (1, 64)).astype(np.uint32)
    together, _ = logprobs(target, logits, step, log, threads=3)
    alone, _ = logprobs(target, logits, step, log, first_row=9, n_rows=1)
    assert alone[0, 19].tobytes() == together[0, 19].tobytes()


def test_sample_passes_over_rows_of_a_prompt_that_are_only_scored(target):
    step = scored(3)
    step.rows["flags"] = [
        ACTIVE | SCORED | PROMPT,
        ACTIVE | SCORED | PROMPT | CHAINED,
        ACTIVE | SCORED,
    ]
    picked = poisoned(3, np.uint32)
    log = np.zeros((1, 64), np.uint32)
    logits = np.tile(np.arange(5, dtype=np.float32), (3, 1))
    run("sample", [logits, log, picked], pack_params("sample", 5, 64), step, On(target))
    assert picked.tolist() == [0xFFFFFFFF, 4, 4]  # as poisoned
