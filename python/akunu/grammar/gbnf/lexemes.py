"""Which parts of a grammar in GBNF may be lexemes: read in one go, which is what makes masks fast.

llguidance reads greedily: a lexeme continues as long as it can, together with every other lexeme
that may stand at the same place. GBNF knows no lexemes, only characters, so that a part may be one
only where greed changes nothing: where no lexeme that may begin at the same place can continue,
where another one has ended, with a character that may also follow that one. At first every part
without recursion is one lexeme; those in a conflict are cut into their parts until there is none.
Single characters never conflict.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from akunu.grammar.expressions import Chars, Choice, Ranges, Repeat, Sequence
from akunu.grammar.gbnf.automata import Automaton, TooLarge, automaton, goes_on, share_a_text
from akunu.grammar.gbnf.parsing import Expression, Rule, Token

_MOST_PLACES = 400
"""Beyond this many places for lexemes, each character is one: comparing them all takes too long."""


@dataclass(frozen=True, slots=True)
class Lexeme:
    """A part that is read in one go; `text` is it without references to rules."""

    text: Expression


Shape = Lexeme | Token | Rule | Sequence["Shape"] | Choice["Shape"] | Repeat["Shape"]
"""A rule's expression with lexemes in place of characters."""


def with_lexemes(rules: dict[str, Expression]) -> dict[str, Shape]:
    """The rules that the root needs, with lexemes in them."""
    chooser = _Chooser(rules)
    while True:
        shapes = chooser.shapes()
        places = _Places(shapes)
        if len(places.lexemes) > _MOST_PLACES:
            return shapes if chooser.all_split else chooser.split_everything()
        conflicts = set(places.conflicts())
        if not conflicts:
            return shapes
        chooser.split |= conflicts


class _Chooser:
    def __init__(self, rules: dict[str, Expression]) -> None:
        self.split: set[Expression] = set()
        """Lexemes, without references, that must be cut."""
        self.all_split = False
        self._rules = rules
        self._texts: dict[Expression, Expression | None] = {}

    def split_everything(self) -> dict[str, Shape]:
        self.all_split = True
        return self.shapes()

    def shapes(self) -> dict[str, Shape]:
        shapes: dict[str, Shape] = {}
        needed = ["root"]
        while needed:
            name = needed.pop()
            if name not in shapes:
                shapes[name] = self._shape(self._rules[name])
                needed += _references(shapes[name])
        return shapes

    def _shape(self, part: Expression) -> Shape:
        if isinstance(part, Token):
            return part
        if isinstance(part, Chars):
            return Lexeme(part)
        if part != Sequence(()) and not self.all_split:
            text = self._text(part)
            if text is not None and text not in self.split and text != Sequence(()):
                return Lexeme(text)
        if isinstance(part, Rule):
            return part
        if isinstance(part, Repeat):
            return Repeat(self._shape(part.part), part.least, part.most)
        if isinstance(part, Choice):
            return Choice(tuple(map(self._shape, part.options)))
        return Sequence(tuple(map(self._shape, part.parts)))

    def _text(self, part: Expression) -> Expression | None:
        """The expression without references; None where it is recursive, has tokens or is large."""
        if part not in self._texts:
            self._texts[part] = None  # while it is looked at: a reference to itself is recursion
            text = self._without_rules(part)
            if text is not None:
                try:
                    automaton(text)
                except TooLarge:
                    text = None
            self._texts[part] = text
        return self._texts[part]

    def _without_rules(self, part: Expression) -> Expression | None:
        if isinstance(part, Chars):
            return part
        if isinstance(part, Token):
            return None
        if isinstance(part, Rule):
            return self._text(self._rules[part.name])
        if isinstance(part, Repeat):
            inner = self._text(part.part)
            return None if inner is None else Repeat(inner, part.least, part.most)
        inside = part.options if isinstance(part, Choice) else part.parts
        texts = [self._text(one) for one in inside]
        found = tuple(text for text in texts if text is not None)
        if len(found) < len(texts):
            return None
        return Choice(found) if isinstance(part, Choice) else Sequence(found)


def _references(shape: Shape | Expression) -> Iterator[str]:
    if isinstance(shape, Rule):
        yield shape.name
    elif isinstance(shape, Repeat):
        yield from _references(shape.part)
    elif isinstance(shape, Choice | Sequence):
        for part in shape.options if isinstance(shape, Choice) else shape.parts:
            yield from _references(part)


@dataclass(slots=True)
class _Ends:
    """The places that a part may begin and end with, and whether it may be empty."""

    first: set[int] = field(default_factory=set)
    last: set[int] = field(default_factory=set)
    nullable: bool = False


class _Places:
    """Every place where a lexeme or a token stands, and which may follow which."""

    def __init__(self, shapes: dict[str, Shape]) -> None:
        self.lexemes: list[Lexeme | Token] = []
        self._after: list[set[int]] = []
        self._automata: dict[Expression, Automaton] = {}
        self._numbers: dict[tuple[int, ...], int] = {}
        self._ends = {name: _Ends() for name in shapes}
        before: object = None
        while before != (now := self._sizes()):  # rules refer to each other: until nothing changes
            before = now
            for i, (name, shape) in enumerate(shapes.items()):
                ends = self._visit(shape, (i,))
                self._ends[name].first |= ends.first
                self._ends[name].last |= ends.last
                self._ends[name].nullable |= ends.nullable

    def conflicts(self) -> Iterator[Expression]:
        """Lexemes that greed would read wrongly: those to cut."""
        for i, j in self._together:
            left, right = self.lexemes[i], self.lexemes[j]
            if isinstance(left, Token) or isinstance(right, Token):
                continue
            if goes_on(self._of(left), self._of(right), self._following(i)):
                larger = max((right, left), key=lambda one: len(self._of(one).chars))
                yield larger.text

    def _sizes(self) -> tuple[int, ...]:
        ends = self._ends.values()
        return (
            sum(len(one.first) + len(one.last) + one.nullable for one in ends),
            sum(map(len, self._after)),
        )

    def _visit(self, shape: Shape | Expression, path: tuple[int, ...]) -> _Ends:
        if isinstance(shape, Lexeme | Token):
            if path not in self._numbers:
                self._numbers[path] = len(self.lexemes)
                self.lexemes.append(shape)
                self._after.append(set())
            number = self._numbers[path]
            nullable = isinstance(shape, Lexeme) and self._of(shape).nullable
            return _Ends({number}, {number}, nullable)
        if isinstance(shape, Rule):
            return self._ends[shape.name]
        if isinstance(shape, Repeat):
            ends = self._visit(shape.part, (*path, 0))
            if shape.most is None or shape.most > 1:
                self._follow(ends.last, ends.first)
            return _Ends(ends.first, ends.last, ends.nullable or shape.least == 0)
        if isinstance(shape, Choice):
            found = [self._visit(part, (*path, i)) for i, part in enumerate(shape.options)]
            return _Ends(
                {place for one in found for place in one.first},
                {place for one in found for place in one.last},
                any(one.nullable for one in found),
            )
        assert isinstance(shape, Sequence)
        whole = _Ends(nullable=True)
        for i, part in enumerate(shape.parts):
            ends = self._visit(part, (*path, i))
            self._follow(whole.last, ends.first)
            whole = _Ends(
                whole.first | (ends.first if whole.nullable else set()),
                ends.last | (whole.last if ends.nullable else set()),
                whole.nullable and ends.nullable,
            )
        return whole

    def _follow(self, places: set[int], following: set[int]) -> None:
        for place in places:
            self._after[place] |= following

    @cached_property
    def _together(self) -> set[tuple[int, int]]:
        """Pairs of places that the same beginning of a text may lead to."""
        first = self._ends["root"].first
        open_pairs = [(i, j) for i in first for j in first]
        seen = set(open_pairs)
        while open_pairs:
            i, j = open_pairs.pop()
            if i == j or self._may_be_same(self.lexemes[i], self.lexemes[j]):
                for k in self._after[i]:
                    for m in self._after[j]:
                        if (k, m) not in seen:
                            seen.add((k, m))
                            open_pairs.append((k, m))
        return seen

    def _may_be_same(self, left: Lexeme | Token, right: Lexeme | Token) -> bool:
        if left == right or (isinstance(left, Token) and isinstance(right, Token)):
            return True
        if isinstance(left, Token) or isinstance(right, Token):
            return False
        return share_a_text(self._of(left), self._of(right))

    def _of(self, lexeme: Lexeme) -> Automaton:
        if lexeme.text not in self._automata:
            self._automata[lexeme.text] = automaton(lexeme.text)
        return self._automata[lexeme.text]

    def _following(self, place: int) -> list[Ranges]:
        """Characters that may come after a place."""
        found: list[Ranges] = []
        for number in self._after[place]:
            lexeme = self.lexemes[number]
            if isinstance(lexeme, Lexeme):
                of = self._of(lexeme)
                found += [of.chars[state] for state in of.first]
        return found
