"""What notations of grammars share: classes of characters, sequences, choices and repetitions.

`Part` is what a notation has as parts of these: its own nodes and these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

Part = TypeVar("Part", covariant=True)

Ranges = tuple[tuple[int, int], ...]
"""Characters, as ordered ranges of code points that neither overlap nor touch."""

LAST = 0x10FFFF
ANY: Ranges = ((0, 0xD7FF), (0xE000, LAST))


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of a class."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Sequence(Generic[Part]):
    """One after the other; without parts: the empty text."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Choice(Generic[Part]):
    """One of them."""

    options: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Repeat(Generic[Part]):
    """At least `least` and at most `most` times; None: any number."""

    part: Part
    least: int
    most: int | None


def united(ranges: list[tuple[int, int]]) -> Ranges:
    """Ranges in order, without overlaps and without surrogates, which no text has."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(pair for pair in ranges if pair[0] <= pair[1]):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    clipped = []
    for low, high in merged:
        for first, last in ANY:
            if low <= last and high >= first:
                clipped.append((max(low, first), min(high, last)))
    return tuple(clipped)


def inverted(ranges: Ranges) -> Ranges:
    """Every other character."""
    gaps, below = [], 0
    for low, high in ranges:
        gaps.append((below, low - 1))
        below = high + 1
    return united([*gaps, (below, LAST)])
