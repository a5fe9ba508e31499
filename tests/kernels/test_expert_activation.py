"""expert_activation: gated_activation of each of a row's experts, bit for bit."""

from __future__ import annotations

import numpy as np
import reference as ref
from harness import On, assert_same_bits, pack_params, plain_step, run
from tables import table

SILU, GELU_TANH, CLAMPED, RELU_SQUARED = 0, 1, 5, 7
LIMIT, ALPHA = 1.5, 1.702


def activate(target, kind, gate, up, activation, *, threads=1, **part):
    rows, n_chosen, n = gate.shape
    out = ref.activation_array(kind, rows * n_chosen, n)
    operands = [gate.reshape(rows, -1), None if up is None else up.reshape(rows, -1), out]
    params = pack_params("expert_activation", n, n_chosen, activation, LIMIT, ALPHA)
    run("expert_activation", operands, params, plain_step(rows), On(target, threads, kind), **part)
    return out.reshape(rows, n_chosen, -1)


@table(activation=[SILU, GELU_TANH], n=[32, 2880], rows=[1, 7])
def test_is_gated_activation_of_each(target, rng, kind, activation, n, rows):
    gate, up = rng.standard_normal((2, rows, 3, n)).astype(np.float32)
    found = activate(target, kind, gate, up, activation)
    out = ref.activation_array(kind, rows * 3, n)
    operands = [gate.reshape(-1, n), up.reshape(-1, n), out]
    params = pack_params("gated_activation", n, activation, 0, 0)
    run("gated_activation", operands, params, plain_step(rows * 3), On(target, 1, kind))
    assert_same_bits(found.reshape(out.shape), out)


@table(activation=[SILU, RELU_SQUARED], n=[32, 1856])
def test_without_a_gate_it_is_the_activation_of_each(target, rng, kind, activation, n):
    made = rng.standard_normal((5, 3, n)).astype(np.float32)
    found = activate(target, kind, made, None, activation)
    out = ref.activation_array(kind, 15, n)
    params = pack_params("activate", n, activation, 0, 0)
    run("activate", [made.reshape(-1, n), out], params, plain_step(15), On(target, 1, kind))
    assert_same_bits(found.reshape(out.shape), out)


@table(n=[32, 2880])
def test_clamped_agrees_with_float64(target, rng, kind, n):
    gate, up = (3 * rng.standard_normal((2, 5, 2, n))).astype(np.float32)
    gate[0, 0, :4] = [-100, 100, 0, LIMIT]
    found = activate(target, kind, gate, up, CLAMPED)
    g = np.minimum(gate.astype(np.float64), LIMIT)
    u = np.clip(up.astype(np.float64), -LIMIT, LIMIT)
    alpha = float(np.float32(ALPHA))
    exact = g / (1 + np.exp(-alpha * g)) * (u + 1)
    # The exponent is rounded, which counts as much as it is large.
    bound = ref.growth(9) * np.abs(exact) * (1 + np.abs(alpha * g)) + 2.0**-119
    out = found.reshape(10, -1)
    ref.assert_activation(kind, out, exact.reshape(10, n), bound.reshape(10, n))


def test_a_row_has_the_same_bits_alone_and_beside_others(target, rng, kind):
    gate, up = rng.standard_normal((2, 9, 2, 64)).astype(np.float32)
    together = activate(target, kind, gate, up, SILU)
    assert_same_bits(activate(target, kind, gate, up, SILU, threads=3), together)
    part = activate(target, kind, gate, up, SILU, first_row=4, n_rows=2)
    assert_same_bits(part[4:6], together[4:6])
    assert (np.delete(part, [4, 5], axis=0).view(np.uint8) == 0xFF).all()
