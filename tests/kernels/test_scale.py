"""scale: data = data * factor, in place."""

from __future__ import annotations

import numpy as np
from harness import On, assert_same_bits, pack_params, plain_step, run
from tables import table


def scale(target, data, factor, *, threads=1, **part):
    params = pack_params("scale", data.shape[1], factor)
    run("scale", [data], params, plain_step(len(data)), On(target, threads), **part)


@table(factor=[0.0625, 0.22, 8.0], n=[1, 13, 4099])
def test_is_one_rounding(target, rng, factor, n):
    data = rng.standard_normal((3, n)).astype(np.float32)
    data[1, : min(n, 5)] = [0, np.inf, -np.inf, 1e38, -1e-38][: min(n, 5)]
    with np.errstate(over="ignore", under="ignore"):
        expected = data * np.float32(factor)
    scale(target, data, factor, threads=2)
    if "metal" in str(target):  # a device may take numbers below the smallest normal one for 0
        data[np.abs(expected) < 1.2e-38] = expected[np.abs(expected) < 1.2e-38] = 0
    assert_same_bits(data, expected)


def test_covers_head_rows(target, rng):
    data = rng.standard_normal((5, 40)).astype(np.float32)
    before = data.copy()
    scale(target, data, 0.5, extent="head_rows", first_row=2, n_rows=2)
    assert_same_bits(data[[0, 1, 4]], before[[0, 1, 4]])
    assert_same_bits(data[2:4], before[2:4] * np.float32(0.5))
