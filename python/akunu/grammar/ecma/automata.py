"""Rewrites an expression with intersections and complements (Both, Not) as one without them.

Its automaton is built by derivatives: a state is the expression of what may follow a text that was
read (Brzozowski). States that continue alike are merged (Moore), and then states are eliminated
one by one until an expression is left.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from itertools import pairwise

from akunu.grammar.ecma.parsing import EMPTY, NEVER, Both, Node, Not, Properties
from akunu.grammar.expressions import LAST, Chars, Choice, Ranges, Repeat, Sequence, united

_MOST_STATES = 600
# Parts are the characters and operators of an expression:
_MOST_PARTS_IN = 1500  # of the one that is rewritten
_MOST_PARTS_OF_STATES = 100_000  # of all states together
_MOST_PARTS_OUT = 6000  # of the result


class TooLargeError(Exception):
    """The automaton has more states than are worth their time."""


@lru_cache(maxsize=4096)
def nullable(node: Node) -> bool:
    """Whether the empty text fits."""
    if isinstance(node, Sequence | Both):
        return all(map(nullable, node.parts))
    if isinstance(node, Choice):
        return any(map(nullable, node.options))
    if isinstance(node, Repeat):
        return node.least == 0 or nullable(node.part)
    return isinstance(node, Not) and not nullable(node.part)


def without_both(node: Node) -> Node:
    """Return an expression of the same texts that has neither Both nor Not; TooLargeError."""
    letters = _letters(node)
    numbers: dict[Node, int] = {node: 0}
    moves: list[list[int]] = []
    open_states = [node]
    n_parts = 0
    for state in open_states:
        moves.append([])
        for letter in letters:
            following = _after(state, letter[0][0])
            if following not in numbers:
                if len(numbers) >= _MOST_STATES:
                    raise TooLargeError(f"more than {_MOST_STATES} states")
                n_parts += _size(following)
                if n_parts > _MOST_PARTS_OF_STATES:
                    raise TooLargeError("its states are too large")
                numbers[following] = len(numbers)
                open_states.append(following)
            moves[-1].append(numbers[following])
    return _expression(moves, [nullable(state) for state in open_states], letters)


def _letters(node: Node) -> list[Ranges]:
    """Classes of characters: each part of the expression has all of a class, or none."""
    classes: list[Ranges] = []
    left = [node]
    n_parts = 0
    while left:
        part = left.pop()
        n_parts += 1
        if n_parts > _MOST_PARTS_IN:
            raise TooLargeError(f"more than {_MOST_PARTS_IN} parts")
        if isinstance(part, Properties):
            raise TooLargeError("it has properties of Unicode")
        if isinstance(part, Chars):
            classes.append(part.ranges)
        elif isinstance(part, Sequence | Both):
            left += part.parts
        elif isinstance(part, Choice):
            left += part.options
        elif isinstance(part, Repeat | Not):
            left.append(part.part)
    classes = list(dict.fromkeys(classes))
    cuts = sorted(
        {0, 0xD800, 0xE000, LAST + 1}
        | {c for each in classes for low, high in each for c in (low, high + 1)}
    )
    if len(cuts) > 1000:
        raise TooLargeError("more than 1000 kinds of characters")
    found: dict[tuple[bool, ...], list[tuple[int, int]]] = {}
    for low, after in pairwise(cuts):
        if 0xD800 <= low < 0xE000:
            continue
        key = tuple(_has(each, low) for each in classes)
        found.setdefault(key, []).append((low, after - 1))
    return [united(ranges) for ranges in found.values()]


def _has(ranges: Ranges, code: int) -> bool:
    return any(low <= code <= high for low, high in ranges)


@lru_cache(maxsize=4096)
def _after(node: Node, code: int) -> Node:
    """The derivative: what may follow in a text that begins with this character."""
    if isinstance(node, Chars):
        return EMPTY if _has(node.ranges, code) else NEVER
    if isinstance(node, Choice):
        return _one(*(_after(option, code) for option in node.options))
    if isinstance(node, Both):
        return _all(*(_after(part, code) for part in node.parts))
    if isinstance(node, Not):
        return _not(_after(node.part, code))
    if isinstance(node, Repeat):
        if node.most == 0:
            return NEVER
        most = None if node.most is None else node.most - 1
        again = EMPTY if most == 0 else Repeat(node.part, max(0, node.least - 1), most)
        return _then(_after(node.part, code), again)
    assert isinstance(node, Sequence)
    ways = []
    for i, part in enumerate(node.parts):
        ways.append(_then(_after(part, code), *node.parts[i + 1 :]))
        if not nullable(part):
            break
    return _one(*ways)


def _then(*parts: Node) -> Node:
    flat: list[Node] = []
    for part in parts:
        flat += part.parts if isinstance(part, Sequence) else [part]
    if NEVER in flat:
        return NEVER
    return flat[0] if len(flat) == 1 else Sequence(tuple(flat))


def _one(*options: Node) -> Node:
    flat: dict[Node, None] = {}
    for option in options:
        flat |= dict.fromkeys(option.options if isinstance(option, Choice) else [option])
    if _EVERY_TEXT in flat:
        return _EVERY_TEXT
    ordered = sorted(flat, key=hash)
    return ordered[0] if len(ordered) == 1 else Choice(tuple(ordered))


def _all(*parts: Node) -> Node:
    flat: dict[Node, None] = {}
    for part in parts:
        flat |= dict.fromkeys(part.parts if isinstance(part, Both) else [part])
    if NEVER in flat:
        return NEVER
    flat.pop(_EVERY_TEXT, None)
    if not flat:
        return _EVERY_TEXT
    ordered = sorted(flat, key=hash)
    return ordered[0] if len(ordered) == 1 else Both(tuple(ordered))


def _not(part: Node) -> Node:
    if isinstance(part, Not):
        return part.part
    if part == NEVER:
        return _EVERY_TEXT
    return NEVER if part == _EVERY_TEXT else Not(part)


_EVERY_TEXT: Node = Repeat(Chars(united([(0, LAST)])), 0, None)


def _expression(moves: list[list[int]], ends: list[bool], letters: list[Ranges]) -> Node:
    classes = _classes(moves, ends)
    n = max(classes) + 1
    useful = _useful(moves, ends)
    start, end = n, n + 1
    edges: dict[tuple[int, int], Node] = {(start, classes[0]): EMPTY}
    chars: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for state, row in enumerate(moves):
        if ends[state]:
            edges[classes[state], end] = EMPTY
        for letter, following in zip(letters, row, strict=True):
            if following in useful:
                chars.setdefault((classes[state], classes[following]), []).extend(letter)
    edges |= {pair: Chars(united(ranges)) for pair, ranges in chars.items()}
    left = set(range(n))
    while left:
        # That with the fewest ways through it first: the expression stays short.
        n_in, n_out = Counter(b for _, b in edges), Counter(a for a, _ in edges)
        state = min(left, key=lambda one: n_in[one] * n_out[one])
        left.remove(state)
        loop = edges.pop((state, state), None)
        around = [] if loop is None else [Repeat(loop, 0, None)]
        into = [(a, node) for (a, b), node in edges.items() if b == state]
        out = [(b, node) for (a, b), node in edges.items() if a == state]
        edges = {pair: node for pair, node in edges.items() if state not in pair}
        for before, first in into:
            for after, last in out:
                way = _then(first, *around, last)
                known = edges.get((before, after), NEVER)
                edges[before, after] = _shortened(_one(known, way))
        if sum(map(_size, edges.values())) > _MOST_PARTS_OUT:
            raise TooLargeError("the expression is too long")
    return edges.get((start, end), NEVER)


def _shortened(node: Node) -> Node:
    """`(|a)` as `a?`, which is easier to read."""
    if isinstance(node, Choice) and EMPTY in node.options:
        others = [option for option in node.options if option != EMPTY]
        return Repeat(_one(*others), 0, 1) if others else EMPTY
    return node


def _size(node: Node) -> int:
    if isinstance(node, Sequence | Both):
        return 1 + sum(map(_size, node.parts))
    if isinstance(node, Choice):
        return 1 + sum(map(_size, node.options))
    return 1 + _size(node.part) if isinstance(node, Repeat | Not) else 1


def _classes(moves: list[list[int]], ends: list[bool]) -> list[int]:
    """The class of each state: those of one class continue alike."""
    found = [int(each) for each in ends]
    while True:
        keys = [
            (own, *(found[following] for following in row))
            for own, row in zip(found, moves, strict=True)
        ]
        numbers = {key: i for i, key in enumerate(dict.fromkeys(keys))}
        refined = [numbers[key] for key in keys]
        if len(numbers) == len(set(found)):
            return refined
        found = refined


def _useful(moves: list[list[int]], ends: list[bool]) -> set[int]:
    """The states from which a text can end."""
    found = {state for state, is_end in enumerate(ends) if is_end}
    while True:
        more = {state for state, row in enumerate(moves) if found & set(row)} | found
        if more == found:
            return found
        found = more
