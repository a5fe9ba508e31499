"""soft_cap: cap * tanh(x / cap), in place."""

from __future__ import annotations

import numpy as np
import reference as ref
from harness import On, assert_same_bits, pack_params, plain_step, run
from tables import table

EXTREMES = [-np.inf, -1e30, -100, -3, -1e-3, -1e-38, 0, 1e-38, 1e-3, 1, 50, 1e30, np.inf]


def soft_cap(target, data, cap, *, threads=1, **part):
    params = pack_params("soft_cap", data.shape[1], cap)
    run("soft_cap", [data], params, plain_step(len(data)), On(target, threads), **part)


@table(cap=[0.5, 30.0], n=[1, 13, 4099])
def test_bends_numbers_below_the_cap(target, rng, cap, n):
    data = (rng.standard_normal((3, n)) * 2 * cap).astype(np.float32)
    data[1, : len(EXTREMES)] = EXTREMES[:n]
    expected = cap * np.tanh(data.astype(np.float64) / cap)
    soft_cap(target, data, cap, threads=2)
    # quotient, tanh to 3 ulp = 6 units, product; the last term: quotients near zero
    bound = 10 * ref.UNIT * np.abs(expected) + (cap + 1) * 2.0**-149
    np.testing.assert_array_less(np.abs(data - expected), bound)


def test_what_is_not_a_number_stays_so(target):
    data = np.array([[1, np.nan, 2]], np.float32)
    soft_cap(target, data, 30.0)
    assert np.isnan(data).tolist() == [[False, True, False]]


def test_covers_head_rows(target, rng):
    data = rng.standard_normal((5, 40)).astype(np.float32)
    before = data.copy()
    soft_cap(target, data, 1.0, extent="head_rows", first_row=2, n_rows=2)
    assert_same_bits(data[[0, 1, 4]], before[[0, 1, 4]])
    assert (data[2:4] != before[2:4]).any(axis=1).all()
