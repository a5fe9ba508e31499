"""head_norm: an rms norm per head, in place."""

from __future__ import annotations

import numpy as np
import reference as ref
from harness import On, assert_same_bits, assert_within, pack_params, plain_step, run
from tables import table


def normalise(target, data, weight, n_heads, threads=1):
    out = data.copy()
    run(
        "head_norm",
        [out, weight],
        pack_params("head_norm", n_heads, len(weight), 1e-6),
        plain_step(len(data)),
        On(target, threads),
    )
    return out


@table({"n_heads, head_dim": [(1, 1), (7, 40), (3, 64), (2, 80), (5, 128)]})
def test_agrees_with_float64_and_rows_change_no_bit(target, rng, n_heads, head_dim):
    rows = 9
    data = rng.standard_normal((rows, n_heads * head_dim)).astype(np.float32)
    weight = rng.uniform(0.5, 1.5, head_dim).astype(np.float32)
    expected, bound = ref.rms_norm(data.reshape(rows, n_heads, head_dim), weight, 1e-6)
    out = normalise(target, data, weight, n_heads)
    assert_within(out.reshape(expected.shape), expected, bound)
    assert_same_bits(normalise(target, data, weight, n_heads, threads=3), out)
    assert_same_bits(normalise(target, data[4:5], weight, n_heads), out[4:5])
