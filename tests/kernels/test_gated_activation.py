"""gated_activation: silu and gelu_tanh in every activation kind, over the whole range of floats."""

from __future__ import annotations

import math

import numpy as np
import pytest
import reference as ref
from harness import On, assert_same_bits, pack_params, plain_step, run
from tables import table

ACTIVATIONS = [
    pytest.param(0, id="silu"),
    pytest.param(1, id="gelu_tanh"),
    pytest.param(6, id="sigmoid"),
]


def activate(
    target, kind, gate, up, activation, *, up_first=0, threads=1, first_row=0, n_rows=None
):
    rows, n = gate.shape
    up_stride = 0 if up.shape == gate.shape else up.shape[1]
    out = ref.activation_array(kind, rows, n)
    run(
        "gated_activation",
        [gate, up, out],
        pack_params("gated_activation", n, activation, up_first, up_stride),
        plain_step(rows),
        On(target, threads, kind),
        first_row=first_row,
        n_rows=n_rows,
    )
    return out


@table(activation=ACTIVATIONS, n=[1, 7, 64, 416, 2080, 4100], rows=[1, 3])
def test_agrees_with_float64(target, rng, kind, activation, n, rows):
    n = -(-n // 32) * 32 if kind == "q8_32" else n
    gate = (rng.standard_normal((rows, n)) * 3).astype(np.float32)
    up = rng.standard_normal((rows, n)).astype(np.float32)
    expected, bound = ref.gated_activation(gate, up, activation)
    ref.assert_activation(kind, activate(target, kind, gate, up, activation), expected, bound)


@table(activation=ACTIVATIONS)
def test_every_size_of_number(target, activation):
    """Each sign, exponents from the subnormals to 1e30, and every quarter up to 120."""
    sizes = np.concatenate([10.0 ** np.arange(-44, 31, 0.25), np.arange(0, 120, 0.25)])
    gate = np.concatenate([sizes, -sizes]).astype(np.float32)[None]
    up = np.ones_like(gate)
    expected, bound = ref.gated_activation(gate, up, activation)
    ref.assert_activation("f32", activate(target, "f32", gate, up, activation), expected, bound)


@table(activation=ACTIVATIONS)
def test_not_a_number_stays_one(target, activation):
    gate = np.array([[np.nan, 1, 2]], np.float32)
    out = activate(target, "f32", gate, np.ones_like(gate), activation)
    assert np.isnan(out[0]).tolist() == [True, False, False]


def test_gelu_with_the_error_function(target, rng, kind):
    gate = (rng.standard_normal((3, 416)) * 3).astype(np.float32)
    up = rng.standard_normal((3, 416)).astype(np.float32)
    exact = gate.astype(np.float64)
    act = exact / 2 * np.vectorize(math.erfc, otypes=[float])(-exact / math.sqrt(2))
    relative = 2.0**-21 * (1 + exact**2 / 2) + 2.0**-23
    bound = np.abs(act) * relative + 2.0**-24 * np.where(exact >= 0, exact, 0) + 2.0**-140
    found = activate(target, kind, gate, up, 2)
    ref.assert_activation(kind, found, act * up, bound * np.abs(up))


@table(up_first=[0, 32, 5 * 416])
def test_up_may_be_a_part_of_longer_rows(target, rng, kind, up_first):
    gate = (rng.standard_normal((3, 416)) * 3).astype(np.float32)
    wide = rng.standard_normal((3, 6 * 416)).astype(np.float32)
    part = np.ascontiguousarray(wide[:, up_first : up_first + 416])
    found = activate(target, kind, gate, wide, 1, up_first=up_first)
    assert_same_bits(found, activate(target, kind, gate, part, 1))


def test_rows_and_threads_change_no_bit(target, rng, kind):
    gate = rng.standard_normal((20, 2112)).astype(np.float32)
    up = rng.standard_normal((20, 2112)).astype(np.float32)
    together = activate(target, kind, gate, up, 0)
    assert_same_bits(activate(target, kind, gate, up, 0, threads=3), together)
    part = activate(target, kind, gate, up, 0, first_row=7, n_rows=2)
    assert_same_bits(part[7:9], together[7:9])
    assert (np.delete(part, [7, 8], axis=0).view(np.uint8) == 0xFF).all()
