"""latent_query: queries through the matrix of the keys, per head."""

from __future__ import annotations

from harness import (
    assert_same_bits,
    assert_within,
)
from latent_cases import FLOATS, SHAPES, STYLES, Heads, angles_of
from tables import table


@table(style=STYLES, number=FLOATS, form=["kv_b", "k_b"], shape=SHAPES)
def test_queries_go_through_the_keys_matrix(target, rng, shape, form, number, style):
    heads = Heads(rng, shape, form, number)
    rows, angles = heads.rows(rng, 3), angles_of(rng, 3, heads.n_pairs)
    expected, bound = heads.expected_query(rows, angles, style)
    assert_within(heads.query(target, rows, angles, style), expected, bound)


@table(shape=SHAPES)
def test_without_angles_nothing_rotates(target, rng, shape):
    heads = Heads(rng, shape, "kv_b", "f32")
    rows = heads.rows(rng, 3)
    expected, bound = heads.expected_query(rows, None, 0)
    assert_within(heads.query(target, rows, None, 0), expected, bound)


@table(form=["kv_b", "k_b"])
def test_queries_have_the_same_bits_alone_and_beside_others(target, rng, form):
    heads = Heads(rng, (3, 20, 5, 72, 12), form, "f32")
    rows, angles = heads.rows(rng, 37), angles_of(rng, 37, heads.n_pairs)
    together = heads.query(target, rows, angles, 0)
    assert_same_bits(heads.query(target, rows, angles, 0, threads=3), together)
    for first, n in [(0, 1), (5, 1), (7, 20), (36, 1)]:
        alone = heads.query(target, rows, angles, 0, first_row=first, n_rows=n)
        assert_same_bits(alone[first : first + n], together[first : first + n])
