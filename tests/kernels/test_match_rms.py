"""match_rms: a row becomes as large, on average, as another."""

from __future__ import annotations

import numpy as np
import reference as ref
from harness import On, assert_same_bits, assert_within, pack_params, plain_step, run
from tables import table


def match(target, data, like, *, first=0, stride=None, least=1e-5, threads=1, rows=None):
    n, dim = data.shape
    out = ref.activation_array("f32", n, stride or dim)
    run(
        "match_rms",
        [data, like, out],
        pack_params("match_rms", dim, first, stride or dim, least),
        plain_step(n),
        On(target, threads),
        first_row=0 if rows is None else rows.start,
        n_rows=None if rows is None else rows.stop - rows.start,
    )
    return out


def expected_of(data, like, least=1e-5):
    has = np.maximum((data.astype(np.float64) ** 2).mean(axis=-1), least)
    wanted = (like.astype(np.float64) ** 2).mean(axis=-1)
    out = data * np.sqrt(wanted / has)[:, None]
    return out, np.abs(out) * ref.growth(data.shape[1] + 8) + ref.TINY


@table(dim=[1, 7, 64, 416, 2080])
def test_agrees_with_float64(target, rng, dim):
    data = (rng.standard_normal((3, dim)) * 5).astype(np.float32)
    like = rng.standard_normal((3, dim)).astype(np.float32)
    assert_within(match(target, data, like), *expected_of(data, like))


@table(size=[0, 1e-6, 1e-3])
def test_a_row_of_next_to_nothing_does_not_grow_without_bound(target, rng, size):
    data = (rng.standard_normal((2, 96)) * size).astype(np.float32)
    like = rng.standard_normal((2, 96)).astype(np.float32)
    assert_within(match(target, data, like), *expected_of(data, like))


@table({"dim, first, stride": [(64, 128, 192), (37, 5, 80)]})
def test_the_result_may_be_a_part_of_longer_rows(target, rng, dim, first, stride):
    data = rng.standard_normal((3, dim)).astype(np.float32)
    like = rng.standard_normal((3, dim)).astype(np.float32)
    out = match(target, data, like, first=first, stride=stride)
    alone = match(target, data, like)
    if dim % 4 == 0:
        assert_same_bits(out[:, first : first + dim], alone)
    assert_within(out[:, first : first + dim], *expected_of(data, like))
    untouched = np.delete(out, range(first, first + dim), axis=1)
    assert (np.ascontiguousarray(untouched).view(np.uint8) == 0xFF).all()


def test_rows_and_threads_change_no_bit(target, rng):
    data = rng.standard_normal((9, 416)).astype(np.float32)
    like = rng.standard_normal((9, 416)).astype(np.float32)
    together = match(target, data, like)
    assert_same_bits(match(target, data, like, threads=3), together)
    part = match(target, data, like, rows=slice(4, 6))
    assert_same_bits(part[4:6], together[4:6])
    assert (np.delete(part, [4, 5], axis=0).view(np.uint8) == 0xFF).all()
