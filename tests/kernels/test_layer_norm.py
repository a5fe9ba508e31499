"""layer_norm in every activation kind, with and without a bias."""

from __future__ import annotations

import numpy as np
import reference as ref
from harness import On, assert_same_bits, pack_params, plain_step, run
from tables import table

EPSILON = 1e-5


def normalise(target, kind, x, weight, bias, *, threads=1, **part):
    rows, dim = x.shape
    out = ref.activation_array(kind, rows, dim)
    run(
        "layer_norm",
        [x, weight, bias, out],
        pack_params("layer_norm", dim, EPSILON),
        plain_step(rows),
        On(target, threads, kind),
        **part,
    )
    return out


def reference(x, weight, bias):
    x, weight = x.astype(np.float64), weight.astype(np.float64)
    dim = x.shape[1]
    mean = x.mean(axis=1, keepdims=True)
    sigma = np.sqrt(((x - mean) ** 2).mean(axis=1, keepdims=True) + np.float64(np.float32(EPSILON)))
    scaled = (x - mean) / sigma * weight
    added = np.zeros(dim) if bias is None else bias.astype(np.float64)
    # The mean is off by a share of the mean magnitude; so is every difference from it.
    of_mean = np.abs(x).mean(axis=1, keepdims=True) / sigma * np.abs(weight)
    error = ref.growth(dim / 8 + 24) * (np.abs(scaled) + of_mean) + ref.UNIT * np.abs(added)
    return scaled + added, error + 2 * ref.TINY


@table(has_bias=[False, True], dim=[1, 7, 8, 31, 40, 96, 384, 1000], rows=[1, 17])
def test_agrees_with_float64(target, rng, kind, dim, rows, has_bias):
    dim = -(-dim // 32) * 32 if kind == "q8_32" else dim
    x = (rng.standard_normal((rows, dim)) + 2).astype(np.float32)
    x[0] *= 1e-3  # epsilon matters here
    weight = rng.uniform(0.5, 1.5, dim).astype(np.float32)
    bias = rng.standard_normal(dim).astype(np.float32) if has_bias else None
    expected, bound = reference(x, weight, bias)
    ref.assert_activation(kind, normalise(target, kind, x, weight, bias), expected, bound)


def test_equal_numbers_give_the_bias(target, rng):
    x = np.full((2, 64), 3.0, np.float32)
    bias = rng.standard_normal(64).astype(np.float32)
    out = normalise(target, "f32", x, np.ones(64, np.float32), bias)
    assert_same_bits(out, np.stack([bias, bias]))


def test_rows_and_threads_change_no_bit(target, rng, kind):
    x = rng.standard_normal((40, 160)).astype(np.float32)
    weight, bias = rng.standard_normal((2, 160)).astype(np.float32)
    together = normalise(target, kind, x, weight, bias)
    assert_same_bits(normalise(target, kind, x, weight, bias, threads=3), together)
    part = normalise(target, kind, x, weight, bias, first_row=5, n_rows=16)
    assert_same_bits(part[5:21], together[5:21])
