"""rms_norm in every activation kind; with it, the rounding to q8_32."""

from __future__ import annotations

import numpy as np
import pytest
import reference as ref
from harness import On, assert_same_bits, pack_params, plain_step, run
from tables import table

EPSILON = 1e-5


def normalise(target, kind, x, weight, epsilon=EPSILON, *, threads=1, first_row=0, n_rows=None):
    rows, dim = x.shape
    out = ref.activation_array(kind, rows, dim)
    run(
        "rms_norm",
        [x, weight, out],
        pack_params("rms_norm", dim, epsilon),
        plain_step(rows),
        On(target, threads, kind),
        first_row=first_row,
        n_rows=n_rows,
    )
    return out


def operands(rng, rows, dim):
    x = rng.standard_normal((rows, dim)).astype(np.float32)
    return x, rng.uniform(0.5, 1.5, dim).astype(np.float32)


@table(dim=[1, 7, 8, 31, 32, 40, 96, 1000, 2048], rows=[1, 3, 17])
def test_agrees_with_float64(target, rng, kind, dim, rows):
    dim = -(-dim // 32) * 32 if kind == "q8_32" else dim
    x, weight = operands(rng, rows, dim)
    x[0] *= 1e-4  # epsilon matters here
    x[-1] *= 1e15  # and the squares are large here
    expected, bound = ref.rms_norm(x, weight, EPSILON)
    out = normalise(target, kind, x, weight)
    ref.assert_activation(kind, out, expected, bound)


def test_zeros_give_zeros(target, rng, kind):
    x, weight = operands(rng, 2, 64)
    x[:] = 0
    out = normalise(target, kind, x, weight)
    assert (out.view(np.uint8) & 0x7F == 0).all()


@pytest.mark.kind("q8_32")
@table(bad=[np.nan, np.inf, -np.inf])
def test_q8_32_keeps_what_is_not_finite_visible(target, rng, bad):
    """The group's scale is NaN, so that the matmul's result is, and the sampler can say so."""
    x, weight = operands(rng, 1, 96)
    weight[:] = 1
    weight[40] = bad
    q, scale, total = ref.split_q8_32(normalise(target, "q8_32", x, weight), 96)
    assert np.isnan(scale[0]).tolist() == [False, True, False]
    assert (q[0, 32:64] == 0).all()
    assert (total[0, 2:4] == 0).all()


@pytest.mark.kind("q8_32")
def test_q8_32_flushes_groups_too_small_to_divide_by(target, rng):
    x, weight = operands(rng, 1, 64)
    weight[:32] = 1e-44
    q, scale, total = ref.split_q8_32(normalise(target, "q8_32", x, weight), 64)
    assert scale[0, 0] == 0
    assert scale[0, 1] > 0
    assert (q[0, :32] == 0).all()
    assert (total[0, :2] == 0).all()


@pytest.mark.kind("q8_32")
@table(scale=[1.0, 1e-30, 3e-36, 1e30])
def test_q8_32_rounds_as_the_contract_says(target, rng, scale):
    """An identity norm (mean square 1) shows the rounding alone: it has to be exact."""
    x = rng.choice([-1.0, 1.0], (4, 96)).astype(np.float32)
    weight = (rng.uniform(-1, 1, 96) * scale).astype(np.float32)
    weight[:32] = (np.arange(32) + 0.5) * np.float32(scale / 127)  # ties, as far as floats go
    weight[31] = scale
    out = normalise(target, "q8_32", x, weight, epsilon=0.0)
    assert_same_bits(out, ref.quantize_q8_32(x * weight).data)


@pytest.mark.kind("q16_32")
@table(bad=[np.nan, np.inf, -np.inf])
def test_q16_32_keeps_what_is_not_finite_visible(target, rng, bad):
    x, weight = operands(rng, 1, 70)
    weight[40] = bad
    q, scale = ref.split_q16_32(normalise(target, "q16_32", x, weight), 70)
    assert np.isnan(scale[0]).tolist() == [False, True, False]
    assert (q[0, 1] == 0).all()


@pytest.mark.kind("q16_32")
@table(scale=[1.0, 2.0**-126, 1e-38, 1e38])
def test_q16_32_rounds_as_the_contract_says(target, rng, scale):
    """As above, with ties, the largest and the smallest powers of two, and a group of zeros."""
    x = rng.choice([-1.0, 1.0], (4, 130)).astype(np.float32)
    weight = (rng.uniform(-1, 1, 130) * scale).astype(np.float32)
    weight[:32] = (np.arange(32) + 0.5) * np.float32(scale / 4096)
    weight[31] = scale
    weight[32:64] = 0
    out = normalise(target, "q16_32", x, weight, epsilon=0.0)
    assert_same_bits(out, ref.make_activation("q16_32", x * weight).data)


def test_rows_and_threads_change_no_bit(target, rng, kind):
    x, weight = operands(rng, 40, 160)
    together = normalise(target, kind, x, weight)
    assert_same_bits(normalise(target, kind, x, weight, threads=3), together)
    for first_row, n_rows in [(0, 1), (39, 1), (5, 16)]:
        part = normalise(target, kind, x, weight, first_row=first_row, n_rows=n_rows)
        own = slice(first_row, first_row + n_rows)
        assert_same_bits(part[own], together[own])
        assert (np.delete(part, np.arange(40)[own], axis=0).view(np.uint8) == 0xFF).all()
