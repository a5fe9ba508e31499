"""add: one rounding."""

from __future__ import annotations

import numpy as np
from harness import On, assert_same_bits, pack_params, plain_step, run
from tables import table


@table(n=[1, 7, 40, 1000], rows=[1, 17])
def test_is_the_rounded_sum(target, rng, n, rows):
    data = rng.standard_normal((rows, n)).astype(np.float32)
    other = (rng.standard_normal((rows, n)) * 1e3).astype(np.float32)
    out = data.copy()
    run("add", [out, other], pack_params("add", n, 0), plain_step(rows), On(target, 2))
    assert_same_bits(out, data + other)


def test_to_each_of_several_runs_of_a_row(target, rng):
    data = rng.standard_normal((5, 3, 40)).astype(np.float32)
    other = rng.standard_normal((5, 40)).astype(np.float32)
    out = data.reshape(5, -1).copy()
    run("add", [out, other], pack_params("add", 40, 3), plain_step(5), On(target, 2))
    assert_same_bits(out, (data + other[:, None]).reshape(5, -1))


def test_leaves_other_rows_alone(target):
    data = np.ones((4, 8), np.float32)
    step = plain_step(4)
    run(
        "add",
        [data, data.copy()],
        pack_params("add", 8, 0),
        step,
        On(target),
        first_row=1,
        n_rows=2,
    )
    assert data[:, 0].tolist() == [1, 2, 2, 1]
