"""advance: chained rows move on in place or stop; the others stay as they are."""

from __future__ import annotations

import numpy as np
from harness import ACTIVE, CHAINED, NONE, PROMPT, On, Run, make_step, pack_params, run
from tables import table

STOP_IDS = [7, 2]


def advanced(target, flags, picked, *, last_position=100, n_rows=1):
    step = make_step([Run(0, 10 * i, 1) for i in range(n_rows)])
    step.rows["draw"] = 5
    step.rows["flags"] = flags
    step.rows["last_position"] = last_position
    step.sequences["n_stop_ids"] = len(STOP_IDS)
    step.sequences["stop_ids"] = 9  # past n_stop_ids: not one of them
    step.sequences["stop_ids"][:, : len(STOP_IDS)] = STOP_IDS
    before = step.rows.copy()
    tokens = np.zeros((1, 1024), np.uint32)
    run(
        "advance",
        [np.array(picked, np.uint32), tokens],
        pack_params("advance", 1024),
        step,
        On(target),
    )
    assert (tokens == 0).all()
    return before, step.rows


def test_a_chained_row_moves_on(target):
    before, after = advanced(target, ACTIVE | CHAINED, [9])
    expected = before.copy()
    for field in ("position", "kv_length", "draw"):
        expected[field] += 1
    assert after.tobytes() == expected.tobytes()


@table(token=[7, 2])
def test_a_stop_token_clears_the_active_flag_only(target, token):
    before, after = advanced(target, ACTIVE | CHAINED | PROMPT, [token])
    expected = before.copy()
    expected["flags"] = CHAINED | PROMPT
    assert after.tobytes() == expected.tobytes()


def test_the_last_position_stops_the_row(target):
    before, after = advanced(
        target, ACTIVE | CHAINED, [9, 9, 9], last_position=[0, 10, 21], n_rows=3
    )
    assert (after["flags"] == [CHAINED, CHAINED, ACTIVE | CHAINED]).all()
    assert (after["position"] - before["position"]).tolist() == [0, 0, 1]


@table(flags=[0, ACTIVE, CHAINED, ACTIVE | PROMPT], token=[9, 7, NONE])
def test_other_rows_stay_as_they_are(target, flags, token):
    before, after = advanced(target, flags, [token])
    assert after.tobytes() == before.tobytes()


def test_all_24_stop_ids_count(target):
    step = make_step([Run(0, 0, 1)])
    step.rows["flags"] = ACTIVE | CHAINED
    step.sequences["n_stop_ids"] = 24
    step.sequences["stop_ids"] = np.arange(24) + 100
    operands = [np.array([123], np.uint32), np.zeros((1, 8), np.uint32)]
    run("advance", operands, pack_params("advance", 8), step, On(target))
    assert step.rows["flags"][0] == CHAINED


def test_rows_outside_the_call_stay_as_they_are(target):
    step = make_step([Run(0, 0, 4)])
    step.rows["flags"] = ACTIVE | CHAINED
    operands = [np.full(4, 9, np.uint32), np.zeros((1, 8), np.uint32)]
    run("advance", operands, pack_params("advance", 8), step, On(target), first_row=1, n_rows=2)
    assert step.rows["position"].tolist() == [0, 2, 3, 3]
