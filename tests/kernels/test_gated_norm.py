"""gated_norm: what a gate lets through, normed by groups."""

from __future__ import annotations

import numpy as np
import reference as ref
from harness import On, assert_same_bits, assert_within, pack_params, plain_step, poisoned, run
from tables import table

EPSILON = 1e-5


def make(rng, n_rows, dim):
    values = 3 * rng.standard_normal((n_rows, dim)).astype(np.float32)
    gate = poisoned((n_rows, dim + 7))
    gate[:, 2 : 2 + dim] = 2 * rng.standard_normal((n_rows, dim))
    return values, gate, rng.standard_normal(dim).astype(np.float32)


def normed(target, operands, group, kind="f32", *, factor=1.0, **part):
    values, gate, weight = operands
    n_rows, dim = values.shape
    out = ref.activation_array(kind, n_rows, dim)
    run(
        "gated_norm",
        [values, gate, weight, out],
        pack_params("gated_norm", dim, group, gate.shape[1], 2, EPSILON, factor),
        plain_step(n_rows),
        On(target, activation=kind, row_class="many"),
        **part,
    )
    return out


def let_through(operands, factor=1.0):
    """What the gate lets through, and a bound: `factor` rounds what it multiplies once."""
    values, gate, _ = operands
    own = factor * gate[:, 2 : 2 + values.shape[1]].astype(np.float64)
    gated, error = ref.gated_activation(own, values, 0)
    return gated, error + (factor != 1) * ref.growth(1) * np.abs(gated) * (1 + np.abs(own))


def expected(operands, group, factor=1.0):
    values, _, weight = operands
    gated, error = let_through(operands, factor)
    by_group = gated.reshape(len(values), -1, group)
    result, bound = ref.rms_norm(by_group.reshape(-1, group), np.ones(group, np.float32), EPSILON)
    shape = values.shape
    factor = np.abs(result) / np.maximum(np.abs(by_group.reshape(-1, group)), 1e-300)
    # An error of every number, and what their squares make of it: the factor's own error is at most
    # the largest relative one.
    relative = (error / np.maximum(np.abs(gated), 1e-300)).reshape(-1, group)
    worst = np.minimum(relative, 1).max(axis=1, keepdims=True)
    bound = bound + factor * error.reshape(-1, group) + np.abs(result) * worst
    weighted = np.abs(weight) * bound.reshape(shape)
    return result.reshape(shape) * weight, weighted + ref.TINY


@table({"n_rows, dim, group": [(1, 1, 1), (3, 96, 96), (5, 120, 40), (2, 1536, 192)]})
def test_groups_are_normed_by_themselves(target, rng, n_rows, dim, group):
    operands = make(rng, n_rows, dim)
    values, bound = expected(operands, group)
    assert_within(normed(target, operands, group), values, bound)


def test_in_every_kind(target, rng, kind):
    operands = make(rng, 4, 192)
    values, bound = expected(operands, 96)
    ref.assert_activation(kind, normed(target, operands, 96, kind), values, bound)


def test_the_gate_is_multiplied_first(target, rng):
    operands = make(rng, 3, 96)
    values, bound = expected(operands, 48, 0.375)
    found = normed(target, operands, 48, factor=0.375)
    assert_within(found, values, bound)
    assert (np.abs(found - expected(operands, 48)[0]) > bound).any()


@table({"n_rows, dim, group": [(1, 32, 8), (5, 192, 48), (2, 1536, 1536)]})
def test_without_a_weight_nothing_is_normed(target, rng, kind, n_rows, dim, group):
    values, gate, _ = make(rng, n_rows, dim)
    gated, bound = let_through((values, gate, None), 1.75)
    found = normed(target, (values, gate, None), group, kind, factor=1.75)
    ref.assert_activation(kind, found, gated, bound + ref.TINY)


def test_a_row_has_the_same_bits_alone(target, rng):
    operands = make(rng, 6, 160)
    together = normed(target, operands, 80)
    for row in range(6):
        alone = normed(target, operands, 80, first_row=row, n_rows=1)
        assert_same_bits(alone[row], together[row])
