"""Which lines of a table every change runs."""

from __future__ import annotations

from collections.abc import Hashable, Sequence, Set


def covering(lines: Sequence[Set[Hashable]]) -> set[int]:
    """The indices of some lines, in which everything occurs that occurs in any.

    What a line has is for example every pair of its values: most faults of a kernel show with one
    value of one column, nearly all others with two.
    """
    covered: set[Hashable] = set()
    chosen: set[int] = set()
    # Lines that add the most come first. In the table's order, the first value of each column would
    # be chosen far too often.
    for wanted in range(max(map(len, lines), default=0), 0, -1):
        for index, line in enumerate(lines):
            if index not in chosen and len(line - covered) >= wanted:
                chosen.add(index)
                covered |= line
    return chosen
