"""add_bias: one rounding, the same bias for every row."""

from __future__ import annotations

import numpy as np
from harness import On, assert_same_bits, pack_params, plain_step, run
from tables import table


@table(n=[1, 7, 40, 1000], rows=[1, 17])
def test_is_the_rounded_sum(target, rng, n, rows):
    data = rng.standard_normal((rows, n)).astype(np.float32)
    bias = rng.standard_normal(n).astype(np.float32)
    out = data.copy()
    run("add_bias", [out, bias], pack_params("add_bias", n), plain_step(rows), On(target, 2))
    assert_same_bits(out, data + bias)
