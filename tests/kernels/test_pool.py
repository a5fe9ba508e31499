"""pool: rows with a head row, as they are or as their span's first, mean or maximum."""

from __future__ import annotations

import numpy as np
import reference as ref
from harness import NONE, On, Run, assert_same_bits, assert_within, make_step, pack_params, poisoned
from harness import run as run_operation
from tables import table

OWN, FIRST, MEAN, MAX = range(4)


def pooled(target, data, step, n_out, *, threads=2, **part):
    out = poisoned((n_out, data.shape[1]))
    params = pack_params("pool", data.shape[1])
    run_operation("pool", [data, out], params, step, On(target, threads), **part)
    return out


def step_of(kinds):
    """A span of 3 rows, one of 1 and one of 300; the last row of each has a head row."""
    step = make_step([Run(0, 0, 3), Run(1, 0, 1), Run(2, 0, 300)])
    for span, (kind, head_row) in enumerate(zip(kinds, [1, 3, 0], strict=True)):
        rows = step.rows[step.rows["span"] == span]
        rows["pool"] = kind
        rows["head_row"][-1] = head_row
        step.rows[step.rows["span"] == span] = rows
    return step


@table(dim=[1, 37, 384])
def test_takes_rows_firsts_and_maxima_as_they_are(target, rng, dim):
    data = rng.standard_normal((304, dim)).astype(np.float32)
    out = pooled(target, data, step_of([FIRST, OWN, MAX]), 4)
    assert_same_bits(out[[1, 3, 0]], np.stack([data[0], data[3], data[4:].max(axis=0)]))
    assert (out[2].view(np.uint8) == 0xFF).all()


@table(dim=[1, 37, 384])
def test_means_agree_with_float64(target, rng, dim):
    data = rng.standard_normal((304, dim)).astype(np.float32)
    out = pooled(target, data, step_of([MEAN, MEAN, MEAN]), 4)
    for head_row, rows in [(1, data[:3]), (3, data[3:4]), (0, data[4:])]:
        exact = rows.astype(np.float64)
        bound = ref.growth(len(rows) + 1) * np.abs(exact).sum(axis=0) / len(rows)
        assert_within(out[head_row], exact.mean(axis=0), bound)


def test_all_rows_may_have_one(target, rng):
    data = rng.standard_normal((5, 40)).astype(np.float32)
    step = make_step([Run(0, 0, 5)])
    step.rows["head_row"] = [4, 3, NONE, 1, 0]
    out = pooled(target, data, step, 5)
    assert_same_bits(out[[4, 3, 1, 0]], data[[0, 1, 3, 4]])


def test_threads_change_no_bit(target, rng):
    data = rng.standard_normal((304, 96)).astype(np.float32)
    step = step_of([MEAN, MAX, MEAN])
    assert_same_bits(
        pooled(target, data, step, 4, threads=3)[[0, 1, 3]],
        pooled(target, data, step, 4, threads=1)[[0, 1, 3]],
    )
