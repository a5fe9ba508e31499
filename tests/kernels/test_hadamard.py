"""hadamard: every `width` numbers of a row times an orthogonal matrix that is its own inverse."""

from __future__ import annotations

import numpy as np
import reference as ref
from harness import On, assert_same_bits, pack_params, plain_step, run
from tables import table


def rotate(target, data, width, kind="f32", threads=1, row_class=""):
    rows, n = data.shape
    out = ref.activation_array(kind, rows, n)
    params = pack_params("hadamard", n, width)
    run(
        "hadamard",
        [data, out],
        params,
        plain_step(rows),
        On(target, threads, kind, "f16", row_class),
    )
    return out


def rotated(data, width):
    """In float64, and what as many float additions and two products may be off."""
    places = np.arange(width)
    matrix = (-1.0) ** np.bitwise_count(places[:, None] & places) / np.sqrt(width)
    parts = data.reshape(len(data), -1, width).astype(np.float64)
    n_roundings = np.log2(width) + 3
    bound = n_roundings * 2.0**-24 * (np.abs(parts) @ np.abs(matrix))
    return (parts @ matrix).reshape(data.shape), bound.reshape(data.shape)


@table({"n, width": [(32, 32), (96, 32), (192, 64), (576, 64), (384, 128), (1024, 256), (160, 32)]})
def test_agrees_with_float64_and_rows_change_no_bit(target, rng, n, width):
    data = (rng.standard_normal((9, n)) * np.exp(rng.standard_normal(n))).astype(np.float32)
    expected, bound = rotated(data, width)
    out = rotate(target, data, width)
    ref.assert_activation("f32", out, expected, bound)
    assert_same_bits(rotate(target, data, width, threads=3), out)
    assert_same_bits(rotate(target, data[4:5], width), out[4:5])


@table(width=[32, 64, 256])
def test_twice_is_not_at_all(target, rng, width):
    data = rng.standard_normal((3, 256)).astype(np.float32)
    once = rotate(target, data, width)
    twice = rotate(target, once, width)
    np.testing.assert_allclose(twice, data, atol=2e-6)
    np.testing.assert_allclose(np.square(once).sum(axis=1), np.square(data).sum(axis=1), rtol=1e-5)


def test_what_matmuls_read_is_written_as_they_read_it(target, rng, kind):
    data = rng.standard_normal((4, 192)).astype(np.float32)
    expected, bound = rotated(data, 64)
    out = rotate(target, data, 64, kind)
    ref.assert_activation(kind, out, expected, bound)


def test_what_is_not_finite_stays_in_its_part(target, rng):
    data = rng.standard_normal((2, 128)).astype(np.float32)
    data[0, 70] = np.nan
    out = rotate(target, data, 64)
    assert np.isnan(out[0, 64:]).all()
    assert np.isfinite(out[0, :64]).all()
    assert np.isfinite(out[1]).all()
