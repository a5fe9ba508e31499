"""rope: both styles, partial rotation, in place."""

from __future__ import annotations

import numpy as np
import pytest
import reference as ref
from harness import On, assert_same_bits, assert_within, pack_params, plain_step, run
from tables import table

STYLES = [pytest.param(0, id="interleaved"), pytest.param(1, id="halves")]


def rotate(target, data, angles, n_heads, head_dim, n_pairs, style, threads=1):
    out = data.copy()
    run(
        "rope",
        [out, angles],
        pack_params("rope", n_heads, head_dim, n_pairs, style),
        plain_step(len(data)),
        On(target, threads),
    )
    return out


def operands(rng, rows, n_heads, head_dim, n_pairs):
    data = rng.standard_normal((rows, n_heads * head_dim)).astype(np.float32)
    angle = rng.uniform(0, 2 * np.pi, (rows, n_pairs))
    angles = np.stack([np.cos(angle), np.sin(angle)], axis=2).astype(np.float32)
    return data, angles.reshape(rows, 2 * n_pairs)


@table(
    {
        "n_heads, head_dim, n_pairs": [
            (1, 2, 1),
            (7, 40, 20),
            (3, 64, 32),
            (2, 80, 16),
            (5, 128, 64),
        ]
    },
    style=STYLES,
)
def test_agrees_with_float64(target, rng, style, n_heads, head_dim, n_pairs):
    rows = 5
    data, angles = operands(rng, rows, n_heads, head_dim, n_pairs)
    expected, bound = ref.rope(data.reshape(rows, n_heads, head_dim), angles, n_pairs, style)
    out = rotate(target, data, angles, n_heads, head_dim, n_pairs, style)
    assert_within(out.reshape(expected.shape), expected, bound)


@table(style=STYLES)
def test_dimensions_past_the_rotation_keep_their_bits(target, rng, style):
    data, angles = operands(rng, 2, 3, 48, 8)
    out = rotate(target, data, angles, 3, 48, 8, style)
    assert_same_bits(
        out.reshape(2, 3, 48)[..., 16:].copy(), data.reshape(2, 3, 48)[..., 16:].copy()
    )


@table(style=STYLES)
def test_rows_and_threads_change_no_bit(target, rng, style):
    data, angles = operands(rng, 30, 4, 40, 20)
    together = rotate(target, data, angles, 4, 40, 20, style, threads=3)
    for r in (0, 13, 29):
        alone = rotate(target, data[r : r + 1], angles[r : r + 1], 4, 40, 20, style)
        assert_same_bits(alone, together[r : r + 1])
