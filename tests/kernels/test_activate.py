"""activate: silu, gelu_tanh, gelu, tanh, none, squared ReLU, quick_gelu; every kind, all floats."""

from __future__ import annotations

import math

import numpy as np
import pytest
import reference as ref
from harness import On, assert_same_bits, pack_params, plain_step, run
from tables import table

SILU, GELU_TANH, GELU, TANH, NONE = range(5)
RELU_SQUARED, QUICK_GELU = 7, 8
ACTIVATIONS = [
    pytest.param(SILU, id="silu"),
    pytest.param(GELU_TANH, id="gelu_tanh"),
    pytest.param(GELU, id="gelu"),
    pytest.param(TANH, id="tanh"),
    pytest.param(NONE, id="none"),
    pytest.param(RELU_SQUARED, id="relu_squared"),
    pytest.param(QUICK_GELU, id="quick_gelu"),
]


def activate(target, kind, x, activation, *, threads=1, **part):
    rows, n = x.shape
    out = ref.activation_array(kind, rows, n)
    params = pack_params("activate", n, activation, 0, 0)
    run("activate", [x, out], params, plain_step(rows), On(target, threads, kind), **part)
    return out


def reference(x, activation):
    if activation in (SILU, GELU_TANH):
        return ref.gated_activation(x, np.ones_like(x), activation)
    exact = x.astype(np.float64)
    if activation == NONE:
        return exact, np.zeros_like(exact)
    if activation == RELU_SQUARED:
        values = np.maximum(exact, 0) ** 2
        return values, ref.growth(1) * values + ref.TINY
    if activation == QUICK_GELU:
        exponent = -np.float64(np.float32(1.702)) * exact
        with np.errstate(over="ignore"):
            values, share = exact / (1 + np.exp(exponent)), 1 / (1 + np.exp(-exponent))
        # The exponent is rounded; past 88.7 the power is infinite and the result 0.
        relative = share * (ref.growth(4) + ref.growth(1) * np.abs(exponent)) + ref.growth(3)
        return values, np.abs(values) * relative + 2.0**-119
    if activation == TANH:
        values = np.tanh(exact)
        return values, ref.growth(5) * np.abs(values) + 2 * ref.TINY
    values = exact / 2 * np.vectorize(math.erfc, otypes=[float])(-exact / math.sqrt(2))
    relative = 2.0**-21 * (1 + exact**2 / 2)
    positive = np.where(exact >= 0, np.abs(exact), 0)
    # e^-104 and less counts as e^-104, which rounds to the smallest numbers.
    return values, np.abs(values) * relative + 2.0**-24 * positive + 2.0**-140


@table(activation=ACTIVATIONS, n=[1, 7, 64, 416, 1536])
def test_agrees_with_float64(target, rng, kind, activation, n):
    n = -(-n // 32) * 32 if kind == "q8_32" else n
    x = (rng.standard_normal((3, n)) * 3).astype(np.float32)
    expected, bound = reference(x, activation)
    ref.assert_activation(kind, activate(target, kind, x, activation), expected, bound)


@table(first=[0, 32, 64])
def test_the_input_may_be_a_part_of_longer_rows(target, rng, kind, first):
    wide = rng.standard_normal((3, 160)).astype(np.float32)
    part = np.ascontiguousarray(wide[:, first : first + 96])
    out = ref.activation_array(kind, 3, 96)
    params = pack_params("activate", 96, NONE, first, 160)
    run("activate", [wide, out], params, plain_step(3), On(target, 2, kind))
    assert_same_bits(out, activate(target, kind, part, NONE))


@table(activation=ACTIVATIONS)
def test_every_size_of_number(target, activation):
    """Each sign, exponents from the subnormals to 1e15, and every eighth up to 20."""
    sizes = np.concatenate([10.0 ** np.arange(-44, 15, 0.25), np.arange(0, 20, 0.125)])
    x = np.concatenate([sizes, -sizes]).astype(np.float32)[None]
    expected, bound = reference(x, activation)
    ref.assert_activation("f32", activate(target, "f32", x, activation), expected, bound)


@table(activation=ACTIVATIONS)
def test_not_a_number_stays_one(target, activation):
    out = activate(target, "f32", np.array([[np.nan, 1, 2]], np.float32), activation)
    assert np.isnan(out[0]).tolist() == [True, False, False]


def test_rows_and_threads_change_no_bit(target, rng, kind):
    x = rng.standard_normal((20, 352)).astype(np.float32)
    together = activate(target, kind, x, GELU)
    assert_same_bits(activate(target, kind, x, GELU, threads=3), together)
    part = activate(target, kind, x, GELU, first_row=7, n_rows=2)
    assert_same_bits(part[7:9], together[7:9])
