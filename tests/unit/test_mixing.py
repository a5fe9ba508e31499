"""Mixes of formats: the smallest error within a size, against all combinations there are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from akunu.convert.mixing import FormatChoice as Choice
from akunu.convert.mixing import Mixed, best_mix
from akunu.errors import ArgumentError
from lines import each_line


def some_tensors(seed: int) -> list[Mixed[int]]:
    """Choices as formats have them: more bytes, less error, by a factor of four per bit or so."""
    rng = np.random.default_rng(seed)
    tensors = []
    for number in range(5):
        numbers = int(rng.integers(1, 20))
        depends = float(rng.lognormal())
        choices = [
            Choice(f"Q{bits}", bits * numbers, depends * 4.0**-bits * float(rng.uniform(0.8, 1.2)))
            for bits in (2, 3, 4, 6, 8)
        ]
        tensors.append(Mixed(number, choices))
    return tensors


@each_line("seed", range(8))
def test_a_mix_is_nearly_the_best_of_all(seed: int) -> None:
    tensors = some_tensors(seed)
    every = list(itertools.product(*[each.choices for each in tensors]))
    sizes = sorted({sum(choice.size for choice in mix) for mix in every})
    for most in (sizes[0], sizes[len(sizes) // 3], sizes[len(sizes) // 2], sizes[-1]):
        mix = best_mix(tensors, most)
        assert sum(choice.size for choice in mix) <= most
        best = min(
            sum(choice.error for choice in each)
            for each in every
            if sum(choice.size for choice in each) <= most
        )
        assert sum(choice.error for choice in mix) <= 1.25 * best


def test_a_size_that_nothing_has_is_refused() -> None:
    tensors = some_tensors(0)
    least = sum(each.choices[0].size for each in tensors)
    assert {choice.type_name for choice in best_mix(tensors, least)} == {"Q2"}
    with pytest.raises(
        ArgumentError, match=f"the smallest mix has {least} bytes, the limit is {least - 1}"
    ):
        best_mix(tensors, least - 1)
