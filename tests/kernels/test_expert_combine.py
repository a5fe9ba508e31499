"""expert_combine: the weighted sum of what a row's experts made, in the order of its routes."""

from __future__ import annotations

import numpy as np
from expert_cases import make_routes
from harness import On, assert_same_bits, pack_params, plain_step, poisoned, run
from tables import table


def combine(target, data, routes, *, threads=1, **part):
    rows, n_chosen, n = data.shape
    out = poisoned((rows, n))
    operands = [data.reshape(rows, -1), routes, out]
    params = pack_params("expert_combine", n, n_chosen)
    run("expert_combine", operands, params, plain_step(rows), On(target, threads), **part)
    return out


@table(n=[1, 33, 512, 2880], n_chosen=[1, 2, 8], rows=[1, 6])
def test_products_are_added_one_by_one(target, rng, n, n_chosen, rows):
    """Each rounded, and each sum: float32 of NumPy has the same bits."""
    data = rng.standard_normal((rows, n_chosen, n)).astype(np.float32)
    routes = make_routes(rng, rows, 2 * n_chosen, n_chosen, "even")
    expected = np.zeros((rows, n), np.float32)
    for s in range(n_chosen):
        expected = expected + routes["weight"][:, s, None] * data[:, s]
    assert_same_bits(combine(target, data, routes), expected)


def test_a_row_has_the_same_bits_alone_and_beside_others(target, rng):
    data = rng.standard_normal((20, 4, 700)).astype(np.float32)
    routes = make_routes(rng, 20, 8, 4, "skewed")
    together = combine(target, data, routes)
    assert_same_bits(combine(target, data, routes, threads=3), together)
    part = combine(target, data, routes, first_row=5, n_rows=3)
    assert_same_bits(part[5:8], together[5:8])
    assert (np.delete(part, [5, 6, 7], axis=0).view(np.uint8) == 0xFF).all()
