"""Medians and quartiles of paired measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles


@dataclass(frozen=True, slots=True)
class Spread:
    """The middle of some numbers, and between what half of them lies."""

    lower_quartile: float
    median: float
    upper_quartile: float


def spread(values: Sequence[float]) -> Spread:
    """Quartiles of two or more numbers; the ends of the range count as its 0 and 100 %."""
    lower, _, upper = quantiles(values, n=4, method="inclusive")
    return Spread(lower, median(values), upper)


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """How much faster we were in each pair of measurements that were made one after the other.

    From seconds: 2.0 means that ours took half as long.
    """
    return [b / a for a, b in zip(ours, theirs, strict=True)]
