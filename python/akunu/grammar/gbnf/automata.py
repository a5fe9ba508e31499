"""Which texts two lexemes share, and where one of them continues when the other has ended.

A lexeme is an expression without rules and tokens. Its automaton has a state for each of its
characters (Glushkov's construction): `first` are those that a text may begin with, `after[i]`
those that may come after the i-th, `last` those that it may end with.
"""

from __future__ import annotations

from dataclasses import dataclass

from akunu.grammar.expressions import Chars, Choice, Ranges, Repeat, Sequence
from akunu.grammar.gbnf.parsing import Expression


@dataclass(frozen=True, slots=True)
class Automaton:
    """The texts of one lexeme."""

    chars: tuple[Ranges, ...]
    first: frozenset[int]
    last: frozenset[int]
    after: tuple[frozenset[int], ...]
    nullable: bool


class TooLarge(Exception):  # noqa: N818, the caller tries smaller lexemes
    """An automaton with more characters than are worth their time."""


def automaton(expression: Expression, most: int = 300) -> Automaton:
    """The automaton of an expression without rules; TooLarge beyond `most` characters."""
    chars: list[Ranges] = []
    after: list[set[int]] = []

    def build(part: Expression) -> tuple[set[int], set[int], bool]:
        if isinstance(part, Chars):
            if len(chars) >= most:
                raise TooLarge
            chars.append(part.ranges)
            after.append(set())
            return {len(chars) - 1}, {len(chars) - 1}, False
        if isinstance(part, Choice):
            first: set[int] = set()
            last: set[int] = set()
            nullable = False
            for option in part.options:
                option_first, option_last, option_nullable = build(option)
                first |= option_first
                last |= option_last
                nullable |= option_nullable
            return first, last, nullable
        if isinstance(part, Sequence):
            return chain(list(part.parts))
        assert isinstance(part, Repeat)
        fixed = [part.part] * (part.least if part.most is None else part.most)
        optional_from = part.least
        if part.most is None:
            fixed = [part.part] * max(part.least, 1)
        found = chain(fixed, optional_from, loops=part.most is None)
        return found[0], found[1], found[2] or part.least == 0

    def chain(
        parts: list[Expression], optional_from: int | None = None, loops: bool = False
    ) -> tuple[set[int], set[int], bool]:
        first: set[int] = set()
        last: set[int] = set()
        nullable = True
        for i, part in enumerate(parts):
            part_first, part_last, part_nullable = build(part)
            if loops and i == len(parts) - 1:
                for state in part_last:
                    after[state] |= part_first
            may_end = part_nullable or (optional_from is not None and i >= optional_from)
            for state in last:
                after[state] |= part_first
            first |= part_first if nullable else set()
            last = part_last | (last if may_end else set())
            nullable = nullable and may_end
        return first, last, nullable

    first, last, nullable = build(expression)
    return Automaton(
        tuple(chars), frozenset(first), frozenset(last), tuple(map(frozenset, after)), nullable
    )


def overlap(left: Ranges, right: Ranges) -> bool:
    """Whether two classes have a character in common."""
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i][1] < right[j][0]:
            i += 1
        elif right[j][1] < left[i][0]:
            j += 1
        else:
            return True
    return False


def share_a_text(left: Automaton, right: Automaton) -> bool:
    """Whether some text is one of both."""
    return any(i in left.last and j in right.last for i, j in _pairs(left, right))


def goes_on(left: Automaton, right: Automaton, following: list[Ranges]) -> bool:
    """Whether `right` continues where `left` ends, with a character that may also follow `left`."""
    for i, j in _pairs(left, right):
        if i in left.last:
            for k in right.after[j]:
                if any(overlap(right.chars[k], ranges) for ranges in following):
                    return True
    return False


def _pairs(left: Automaton, right: Automaton) -> set[tuple[int, int]]:
    """States that both may be in after the same text."""
    open_pairs = [
        (i, j) for i in left.first for j in right.first if overlap(left.chars[i], right.chars[j])
    ]
    seen = set(open_pairs)
    while open_pairs:
        i, j = open_pairs.pop()
        for k in left.after[i]:
            for m in right.after[j]:
                if (k, m) not in seen and overlap(left.chars[k], right.chars[m]):
                    seen.add((k, m))
                    open_pairs.append((k, m))
    return seen
