"""The best mix of number formats for a size: bits go where they take most from the error.

Each tensor is quantised to each format, and the error is measured: the squares of the differences
over those of the numbers, each column by its importance. Errors of different tensors are added up,
because small errors add up in a model's output. Each is weighted by how much the text depends on
its kind of matrix (`_DEPENDS`). Among the mixes that are small enough, the one with the smallest
sum is taken.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from akunu.errors import ArgumentError

FORMATS: Final = ("Q2_K", "Q3_K", "Q4_0", "Q4_K", "Q5_0", "Q5_1", "Q5_K", "Q6_K", "Q8_0")
"""What mixes are made of: formats that akunu computes with, none that another always beats."""

_DEPENDS: Final = {
    "token_embd": 5.0,
    "output": 5.0,
    "attn_q": 0.06,
    "attn_k": 0.05,
    "attn_v": 0.32,
    "attn_output": 0.1,
    "ffn_gate": 0.06,
    "ffn_up": 0.09,
    "ffn_down": 0.19,
}
"""KL divergence of a model with one kind of matrix in Q4_0, over the sum of their errors.

Between those of Ember and of SmolLM2-135M, in both of which the embedding is the output as well.
"""
_OTHERS: Final = 0.1


@dataclass(frozen=True, slots=True)
class FormatChoice:
    """What a tensor may be."""

    type_name: str
    size: int
    """Bytes."""
    error: float


Tensor = TypeVar("Tensor")


@dataclass(frozen=True, slots=True)
class Mixed(Generic[Tensor]):
    """A tensor with its choices."""

    tensor: Tensor
    choices: Sequence[FormatChoice]


def dependence(name: str) -> float:
    """Return how much a text depends on a matrix of this name.

    >>> dependence("blk.3.unheard_of.weight")
    0.1
    """
    found = re.search(r"(\w+)\.weight$", name)
    return _DEPENDS.get(found[1], _OTHERS) if found else _OTHERS


def best_mix(tensors: Sequence[Mixed[Tensor]], most_bytes: int) -> list[FormatChoice]:
    """Return a choice for each tensor, together of at most this many bytes, with little error.

    Raises ArgumentError where the smallest choices are larger.

    >>> small, large = FormatChoice("Q4_K", 10, 0.4), FormatChoice("Q6_K", 20, 0.1)
    >>> tensors = [Mixed("a", [small, large]), Mixed("b", [small, FormatChoice("Q6_K", 20, 0.3)])]
    >>> [choice.type_name for choice in best_mix(tensors, 30)]
    ['Q6_K', 'Q4_K']
    """
    least = sum(min(choice.size for choice in each.choices) for each in tensors)
    if least > most_bytes:
        raise ArgumentError(f"the smallest mix has {least} bytes, the limit is {most_bytes}")

    def at(price: float) -> list[FormatChoice]:
        """What is best where a byte costs so much error."""
        return [
            min(each.choices, key=lambda choice: (choice.error + price * choice.size, choice.size))
            for each in tensors
        ]

    # The size falls with the price: between a price that is too low and one that is not, halve.
    low, high = 0.0, 1e-12
    if _size(at(low)) <= most_bytes:
        return at(low)
    while _size(at(high)) > most_bytes:
        low, high = high, high * 4
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _size(at(middle)) > most_bytes else (low, middle)
    chosen = at(high)
    return _filled_up(tensors, chosen, most_bytes - _size(chosen))


def _filled_up(
    tensors: Sequence[Mixed[Tensor]], chosen: list[FormatChoice], left: int
) -> list[FormatChoice]:
    """Spend what is left over, each time where a byte takes most."""
    while True:
        best, gain = None, 0.0
        for number, each in enumerate(tensors):
            now = chosen[number]
            for choice in each.choices:
                more = choice.size - now.size
                if more > left or choice.error >= now.error:
                    continue
                here = (now.error - choice.error) / max(more, 1)
                if here > gain:
                    best, gain = (number, choice), here
        if best is None:
            return chosen
        left -= best[1].size - chosen[best[0]].size
        chosen[best[0]] = best[1]


def _size(choices: Sequence[FormatChoice]) -> int:
    return sum(choice.size for choice in choices)
