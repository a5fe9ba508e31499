"""join_rows: queries, keys and values that were made apart, behind one another."""

from __future__ import annotations

import numpy as np
from harness import On, assert_same_bits, pack_params, plain_step, poisoned, run
from tables import table


@table({"lengths, rows": [((1, 1, 1), 1), ((64, 64, 96), 3), ((300, 20, 77), 17)]})
def test_rows_lie_behind_one_another(target, rng, lengths, rows):
    parts = [rng.standard_normal((rows, n)).astype(np.float32) for n in lengths]
    out = poisoned((rows, sum(lengths)))
    params = pack_params("join_rows", *lengths)
    run("join_rows", [*parts, out], params, plain_step(rows), On(target))
    assert_same_bits(out, np.concatenate(parts, axis=1))


@table({"n, rows": [(1, 1), (96, 3), (1030, 17)]})
def test_a_third_may_be_absent(target, rng, n, rows):
    first, second = (rng.standard_normal((rows, n)).astype(np.float32) for _ in range(2))
    out = poisoned((rows, 2 * n))
    params = pack_params("join_rows", n, n, 0)
    run("join_rows", [first, second, None, out], params, plain_step(rows), On(target))
    assert_same_bits(out, np.concatenate([first, second], axis=1))
