"""Which of a test's many parameters every change runs: enough that every two values meet once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import pytest

Pair = tuple[tuple[str, int], ...]

# Tests with fewer variants on a device run all of them.
MANY = 24


def pairs_of(item: pytest.Function) -> set[Pair]:
    """Every two of its parameters with their values; of a test with one parameter, that."""
    values = sorted(
        (name, id(value))  # not all values have a hash; the same value is the same object
        for name, value in item.callspec.params.items()
        if name not in ("target", "gpu_target")
    )
    return set(combinations(values, min(2, len(values))))


def covering(items: Sequence[pytest.Function]) -> set[pytest.Function]:
    """Some of a test's items, in which every pair of values that occurs in any occurs.

    Most faults of a kernel show with one value of one parameter, nearly all others with two.
    """
    left = [(item, pairs_of(item)) for item in items]
    covered: set[Pair] = set()
    chosen: set[pytest.Function] = set()
    # Those that bring most first; otherwise the first values of each parameter would be in all.
    for wanted in range(max(len(pairs) for _, pairs in left), 0, -1):
        for item, pairs in left:
            if item not in chosen and len(pairs - covered) >= wanted:
                chosen.add(item)
                covered |= pairs
    return chosen
