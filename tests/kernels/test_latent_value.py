"""latent_value: attended rows through the matrix of the values, per head."""

from __future__ import annotations

import numpy as np
import reference as ref
from harness import (
    assert_same_bits,
    assert_within,
)
from latent_cases import FLOATS, SHAPES, Heads
from tables import table


@table(number=FLOATS, form=["kv_b", "k_b"], shape=SHAPES)
def test_values_come_from_the_values_matrix(target, rng, shape, form, number):
    heads = Heads(rng, shape, form, number)
    rows = rng.standard_normal((3, heads.n_heads * heads.rank)).astype(np.float32)
    expected, bound = heads.expected_value(rows)
    assert_within(heads.value(target, rows, "f32"), expected, bound)


@table({"n_heads, value_dim": [(4, 32), (6, 16), (8, 12), (3, 96)]}, number=FLOATS)
def test_values_in_every_kind(target, rng, kind, n_heads, value_dim, number):
    heads = Heads(rng, (n_heads, 8, 4, 64, value_dim), "kv_b", number)
    rows = rng.standard_normal((19, n_heads * heads.rank)).astype(np.float32)
    expected, bound = heads.expected_value(rows)
    together = heads.value(target, rows, kind)
    ref.assert_activation(kind, together, expected, bound)
    assert_same_bits(heads.value(target, rows, kind, threads=3), together)
    for first, n in [(0, 1), (7, 9), (18, 1)]:
        alone = heads.value(target, rows, kind, first_row=first, n_rows=n)
        assert_same_bits(alone[first : first + n], together[first : first + n])
