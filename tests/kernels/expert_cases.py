"""Routes for the tests of experts: even ones, where every expert has as many rows as the others,
and skewed ones, where one has all."""

from __future__ import annotations

import numpy as np

ROUTE = np.dtype([("expert", np.uint32), ("weight", np.float32)])


def make_routes(
    rng: np.random.Generator, rows: int, n_experts: int, n_chosen: int, how: str
) -> np.ndarray:
    """[rows, n_chosen] of ROUTE. "even": in turn; "skewed": all rows have expert 1, and the rest of
    theirs at random."""
    if how == "even":
        experts = np.arange(rows * n_chosen).reshape(rows, n_chosen) % n_experts
    else:
        others = np.delete(np.arange(n_experts), 1)
        experts = np.stack([rng.permutation(others)[:n_chosen] for _ in range(rows)])
        experts[np.arange(rows), rng.integers(0, n_chosen, rows)] = 1
    routes = np.zeros((rows, n_chosen), ROUTE)
    routes["expert"] = experts
    routes["weight"] = rng.uniform(0.05, 1, (rows, n_chosen))
    return routes
