"""Every text but a few words, or but what begins with one of them: a tree, without an automaton."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from akunu.grammar.ecma.parsing import EMPTY, EVERY, NEVER, Node
from akunu.grammar.expressions import Chars, Choice, Repeat, Sequence, inverted, united

_MOST_WORDS = 2000
_REST: Node = Repeat(EVERY, 0, None)

Word = tuple[int, ...]


def no_word(node: Node) -> Node | None:
    """Return every text that `node` is not, where that is words, or begins with words; or None."""
    if isinstance(node, Choice) and all(_goes_on(option) for option in node.options):
        node = Choice(tuple(_begun(option) for option in node.options))
        words, goes_on = _words(node), True
    elif _goes_on(node):
        words, goes_on = _words(_begun(node)), True
    else:
        words, goes_on = _words(node), False
    if words is None:
        return None
    return _none_begins(words) if goes_on else _none_is(words)


def _goes_on(node: Node) -> bool:
    return isinstance(node, Sequence) and bool(node.parts) and node.parts[-1] == _REST


def _begun(node: Node) -> Node:
    assert isinstance(node, Sequence)
    return Sequence(node.parts[:-1])


def _words(node: Node) -> set[Word] | None:
    """The words that a node is, where these are few; None where they are not."""
    if isinstance(node, Chars):
        ((low, high), *others) = node.ranges or ((0, 1),)
        return {(low,)} if low == high and not others else None
    if isinstance(node, Choice):
        found: set[Word] = set()
        for option in node.options:
            words = _words(option)
            if words is None or len(found) > _MOST_WORDS:
                return None
            found |= words
        return found
    if not isinstance(node, Sequence):
        return None
    parts, n_words = [], 1
    for part in node.parts:
        words = _words(part)
        if words is None or (n_words := n_words * len(words)) > _MOST_WORDS:
            return None
        parts.append(words)
    return {tuple(code for each in way for code in each) for way in product(*parts)}


def _none_is(words: set[Word]) -> Node:
    ways: list[Node] = [] if () in words else [EMPTY]
    return Choice((*ways, *_with_first(words, _none_is)))


def _none_begins(words: set[Word]) -> Node:
    if () in words:
        return NEVER
    return Choice((EMPTY, *_with_first(words, _none_begins)))


def _with_first(words: set[Word], rest_of: Callable[[set[Word]], Node]) -> list[Node]:
    firsts = sorted({word[0] for word in words if word})
    ways: list[Node] = []
    others = inverted(united([(code, code) for code in firsts]))
    ways.append(Sequence((Chars(others), _REST)))
    for first in firsts:
        rest = rest_of({word[1:] for word in words if word and word[0] == first})
        if rest != NEVER:
            ways.append(Sequence((Chars(((first, first),)), rest)))
    return ways
