"""sparsify: of a row, what is above its mean by so many standard deviations stays, less that."""

from __future__ import annotations

import numpy as np
import pytest
import reference as ref
from harness import On, assert_same_bits, assert_within, pack_params, plain_step, run
from tables import table


def sparsify(target, data, deviations, threads=1, first_row=0, n_rows=None):
    out = data.copy()
    run(
        "sparsify",
        [out],
        pack_params("sparsify", data.shape[1], deviations),
        plain_step(len(data)),
        On(target, threads),
        first_row=first_row,
        n_rows=n_rows,
    )
    return out


@table(deviations=[1.6448536, 0.25, -0.5], mean=[0, 3], n=[1, 7, 64, 416, 4100])
def test_agrees_with_float64(target, rng, n, mean, deviations):
    data = (rng.standard_normal((3, n)) + mean).astype(np.float32)
    exact = data.astype(np.float64)
    std = exact.std(axis=-1, keepdims=True)
    cut = exact.mean(axis=-1, keepdims=True) + np.float64(np.float32(deviations)) * std
    sizes = np.abs(exact).mean(axis=-1, keepdims=True)
    bound = (1 + abs(deviations)) * (sizes + std) * ref.growth(n + 8)
    bound = bound + (np.abs(exact) + np.abs(cut)) * 2 * ref.UNIT
    out = sparsify(target, data, deviations)
    assert_within(out, np.maximum(exact - cut, 0), bound)
    if n >= 64:  # as much is left as of a normal distribution
        assert (out > 0).mean() == pytest.approx((exact > cut).mean(), abs=0.01)


def test_not_a_number_spreads_over_its_row_alone(target, rng):
    data = rng.standard_normal((2, 64)).astype(np.float32)
    data[0, 3] = np.nan
    out = sparsify(target, data, 0.5)
    assert np.isnan(out[0]).all()
    assert not np.isnan(out[1]).any()


def test_rows_and_threads_change_no_bit(target, rng):
    data = rng.standard_normal((9, 2112)).astype(np.float32)
    together = sparsify(target, data, 1.5)
    assert_same_bits(sparsify(target, data, 1.5, threads=3), together)
    part = sparsify(target, data, 1.5, first_row=4, n_rows=2)
    assert_same_bits(part[4:6], together[4:6])
    assert_same_bits(np.delete(part, [4, 5], axis=0), np.delete(data, [4, 5], axis=0))
