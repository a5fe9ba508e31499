r"""Patterns of JSON schemas in the words of llguidance, which reads Rust's dialect.

A pattern is searched for anywhere in a text. It becomes one or more expressions that the text has
to match as a whole, without edges (`^`, `$`) and lookarounds, which llguidance lacks.

>>> translated("a|^b")
('^(?:(?s:.)+a(?s:.)*|a(?s:.)*|b(?s:.)*)$',)
>>> translated("^(?!no$)[a-z]+$")[0]
'^[a-z]+$'
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from akunu.grammar.ecma.automata import TooLargeError, nullable, without_both
from akunu.grammar.ecma.excluded_words import no_word
from akunu.grammar.ecma.parsing import (
    EMPTY,
    EVERY,
    NEVER,
    Both,
    Edge,
    Look,
    Node,
    Not,
    PatternError,
    Properties,
    parse_pattern,
)
from akunu.grammar.expressions import Chars, Choice, Repeat, Sequence

MOST_CHARACTERS = 50_000
"""Most characters of a pattern: each of them costs time for each token of a text."""
_MOST_UNROLLED = 3  # repetitions of a part with an edge or a look, written out
_MOST_STEPS = 2000
_MOST_EMPTY = 50  # parts that may be empty in front of `(?!^)`: the square of it is written
_REST: Node = Repeat(EVERY, 0, None)


@lru_cache(maxsize=512)
def _kept(pattern: str) -> tuple[str, ...] | PatternError:
    try:
        return tuple(map(_anchored, _conditions(pattern)))
    except PatternError as error:
        return error


def translated(pattern: str) -> tuple[str, ...]:
    """Return expressions that a text must all match; raises PatternError."""
    found = _kept(pattern)
    if isinstance(found, PatternError):
        raise found
    return found


def translated_as_one(pattern: str) -> str:
    """Return one expression that says what a pattern does; raises PatternError."""
    found = translated(pattern)
    if len(found) == 1:
        return found[0]
    return _anchored(_plain(Both(tuple(_conditions(pattern)))))


def _conditions(pattern: str) -> list[Node]:
    if len(pattern) > MOST_CHARACTERS:
        raise PatternError(0, f"{len(pattern)} characters (at most {MOST_CHARACTERS})")
    whole = _Reader().texts(parse_pattern(pattern))
    parts = whole.parts if isinstance(whole, Both) else (whole,)
    return [_plain(part) for part in parts]


def _plain(node: Node) -> Node:
    """The same texts without Both and Not."""
    if not _holds(node, (Both, Not)):
        return node
    if isinstance(node, Sequence):
        return _sequence([_plain(part) for part in node.parts])
    if isinstance(node, Choice):
        return _choice([_plain(option) for option in node.options])
    if isinstance(node, Repeat):
        return Repeat(_plain(node.part), node.least, node.most)
    if isinstance(node, Not) and (found := no_word(node.part)) is not None:
        return found
    try:
        return without_both(node)
    except TooLargeError as error:
        raise PatternError(0, f"a lookahead or lookbehind that is too large ({error})") from None


class _Reader:
    """Rewrites edges and looks as expressions of whole texts, in a bounded number of steps."""

    def __init__(self) -> None:
        self._n_steps = 0

    def texts(self, node: Node) -> Node:
        """All texts in which a pattern is found."""
        items: list[Node] = list(node.parts) if isinstance(node, Sequence) else [node]
        ends: list[Node] = []
        # `(?<=x)$`: the whole text has to end with x.
        while len(items) > 1 and isinstance(items[-1], Edge) and items[-1].is_end:
            look = items[-2]
            if not isinstance(look, Look) or not look.is_behind:
                break
            if _holds(look.part, (Edge, Look)):
                raise PatternError(look.position, _called(look))
            before = _sequence([_REST, look.part])
            ends.append(Not(before) if look.is_negative else before)
            del items[-2]
        at_start = self._following(items, at_start=True)
        found = at_start
        if (later := self._following(items, at_start=False)) != NEVER:
            if later == at_start:
                found = _sequence([_REST, at_start])
            else:
                found = _choice([_sequence([Repeat(EVERY, 1, None), later]), at_start])
        return _both([found, *ends])

    def _following(self, items: list[Node], *, at_start: bool) -> Node:
        """What a text may be from here to its end, where it continues with these items in turn.

        `at_start`: whether "here" is the beginning of the text.
        """
        self._n_steps += 1
        if self._n_steps > _MOST_STEPS:
            raise PatternError(0, "too many alternatives with edges or lookarounds")
        if not items:
            return _REST
        n_plain = next(
            (i for i, each in enumerate(items) if _holds(each, (Edge, Look))), len(items)
        )
        if n_plain:
            own = items[:n_plain]
            rest = items[n_plain:]
            later = self._following(rest, at_start=False)
            if at_start and all(map(nullable, own)) and any(map(_begins, rest)):
                # If `own` matches the empty text, `rest` is still at the beginning of the text.
                before = [_not_empty(_sequence(own))] if any(map(_denies_begin, rest)) else own
                further = _sequence([*before, later])
                return _choice([self._following(rest, at_start=True), further])
            return _sequence([*own, later])
        first, rest = items[0], items[1:]
        if isinstance(first, Edge):
            if first.is_end:
                return EMPTY if nullable(self._following(rest, at_start=at_start)) else NEVER
            return self._following(rest, at_start=True) if at_start else NEVER
        if isinstance(first, Look):
            if first.is_behind:
                raise PatternError(first.position, _called(first))
            ahead = self._following([first.part], at_start=at_start)
            further = self._following(rest, at_start=at_start)
            return _both([further, Not(ahead) if first.is_negative else ahead])
        if isinstance(first, Sequence):
            return self._following([*first.parts, *rest], at_start=at_start)
        if isinstance(first, Choice):
            return _choice(
                [self._following([option, *rest], at_start=at_start) for option in first.options]
            )
        assert isinstance(first, Repeat)
        return self._repeated(first, rest, at_start)

    def _repeated(self, repeat: Repeat[Node], rest: list[Node], at_start: bool) -> Node:
        """What follows where something with an edge or a look in it is repeated."""
        part, least, most = repeat.part, repeat.least, repeat.most
        if most == 0:
            return self._following(rest, at_start=at_start)
        if most is not None and most <= _MOST_UNROLLED:
            again = self._following(
                [part, Repeat(part, max(0, least - 1), most - 1), *rest], at_start=at_start
            )
            return _choice(
                [again, self._following(rest, at_start=at_start)] if least == 0 else [again]
            )
        if (found := _without_looks(repeat)) is not None and rest == [Edge(is_end=True)]:
            return found
        # An option with `^` can only come first, and one with `$` last. Between them are options
        # without edges.
        options = list(part.options) if isinstance(part, Choice) else [part]
        options = [each for option in options for each in _spread(option)]
        plain = [each for each in options if not _holds(each, (Edge, Look))]
        ends = [each for each in options if _ends_text(each)]
        begins = [each for each in options if _begins_text(each)]
        if len(plain) + len(ends) + len(begins) < len(options):
            raise PatternError(_position(part), "a repeated lookaround or edge")

        # An option that is empty at the edge may be repeated there: `least` asks for nothing more.
        is_free = any(
            all(map(nullable, each.parts[:-1] if each in ends else each.parts[1:]))
            for each in (*ends, *begins)
            if isinstance(each, Sequence)
        ) or any(isinstance(each, Edge) for each in (*ends, *begins))

        def times(n: int) -> list[Node]:
            fewest = 0 if is_free and n else max(0, least - n)
            highest = None if most is None else most - n
            return [Repeat(_choice(plain), fewest, highest)]

        begin = _choice(begins)
        end = _choice(ends)
        ways = [[*times(0), *rest]]
        if ends:
            ways.append([*times(1), end, *rest])
        if begins:
            ways.append([begin, *times(1), *rest])
            if ends:
                ways.append([begin, *times(2), end, *rest])
        return _choice([self._following(way, at_start=at_start) for way in ways])


def _spread(node: Node) -> list[Node]:
    """The sequences that are meant where the first or last part is a choice with an edge."""
    if not isinstance(node, Sequence) or not node.parts:
        return [node]
    for i in (0, len(node.parts) - 1):
        part = node.parts[i]
        if isinstance(part, Choice) and _holds(part, (Edge,)):
            return [
                each
                for option in part.options
                for each in _spread(_sequence([*node.parts[:i], option, *node.parts[i + 1 :]]))
            ]
    return [node]


def _ends_text(node: Node) -> bool:
    parts = node.parts if isinstance(node, Sequence) else (node,)
    is_end = bool(parts) and parts[-1] == Edge(is_end=True)
    return is_end and not any(_holds(each, (Edge, Look)) for each in parts[:-1])


def _begins_text(node: Node) -> bool:
    parts = node.parts if isinstance(node, Sequence) else (node,)
    is_begin = bool(parts) and parts[0] == Edge(is_end=False)
    return is_begin and not any(_holds(each, (Edge, Look)) for each in parts[1:])


def _without_looks(repeat: Repeat[Node]) -> Node | None:
    """`((?!word).)*` up to the end of a text, as characters among which no word is; or None."""
    part = repeat.part
    if not isinstance(part, Sequence) or len(part.parts) != 2:
        return None
    look, char = part.parts
    if not isinstance(look, Look) or not look.is_negative or look.is_behind:
        return None
    ahead = look.part
    if not isinstance(char, Chars) or _holds(ahead, (Edge, Look)) or nullable(ahead):
        return None
    within = _sequence([_REST, ahead, _REST])
    return _both([Repeat(char, repeat.least, repeat.most), Not(within)])


def _holds(node: Node, kinds: tuple[type, ...]) -> bool:
    return any(isinstance(part, kinds) for part in _parts(node))


def _begins(node: Node) -> bool:
    """Whether the beginning of the text is requested in it."""
    return any(part == Edge(is_end=False) for part in _parts(node))


def _denies_begin(node: Node) -> bool:
    """Whether a look asks that this is not the beginning of the text."""
    return any(
        isinstance(part, Look) and part.is_negative and _begins(part.part) for part in _parts(node)
    )


def _not_empty(node: Node) -> Node:
    """The texts of an expression but the empty one."""
    if not nullable(node):
        return node
    if isinstance(node, Choice):
        return _choice([_not_empty(option) for option in node.options])
    if isinstance(node, Repeat):
        if node.most == 0:
            return NEVER
        if not nullable(node.part):
            return Repeat(node.part, 1, node.most)
        most = None if node.most is None else node.most - 1
        return _sequence([_not_empty(node.part), Repeat(node.part, 0, most)])
    assert isinstance(node, Sequence)
    parts = node.parts
    if len(parts) > _MOST_EMPTY:
        raise PatternError(0, f"more than {_MOST_EMPTY} possibly empty parts before a lookaround")
    return _choice([_sequence([_not_empty(parts[i]), *parts[i + 1 :]]) for i in range(len(parts))])


def _parts(node: Node) -> Iterator[Node]:
    left = [node]
    while left:
        part = left.pop()
        yield part
        if isinstance(part, Sequence | Both):
            left += part.parts
        elif isinstance(part, Choice):
            left += part.options
        elif isinstance(part, Repeat | Not | Look):
            left.append(part.part)


def _position(node: Node) -> int:
    """Where the first look of a part stands; 0 where there is none."""
    return min((part.position for part in _parts(node) if isinstance(part, Look)), default=0)


def _called(look: Look) -> str:
    return (
        f"a {'negative ' if look.is_negative else ''}look{'behind' if look.is_behind else 'ahead'}"
    )


def _sequence(parts: list[Node]) -> Node:
    flat: list[Node] = []
    for part in parts:
        own = part.parts if isinstance(part, Sequence) else (part,)
        flat += own[1:] if flat and own and flat[-1] == own[0] == _REST else own
    if NEVER in flat:
        return NEVER
    return flat[0] if len(flat) == 1 else Sequence(tuple(flat))


def _choice(options: list[Node]) -> Node:
    flat: dict[Node, None] = {}
    for option in options:
        flat |= dict.fromkeys(option.options if isinstance(option, Choice) else [option])
    return next(iter(flat)) if len(flat) == 1 else Choice(tuple(flat))


def _both(parts: list[Node]) -> Node:
    flat: dict[Node, None] = {}
    for part in parts:
        flat |= dict.fromkeys(part.parts if isinstance(part, Both) else [part])
    if NEVER in flat:
        return NEVER
    flat.pop(_REST, None) if len(flat) > 1 else None
    return next(iter(flat)) if len(flat) == 1 else Both(tuple(flat))


def _anchored(node: Node) -> str:
    inner = _source_of(node)
    return f"^(?:{inner})$" if isinstance(node, Choice) else f"^{inner}$"


def _source_of(node: Node) -> str:
    if isinstance(node, Chars):
        return _class(node)
    if isinstance(node, Properties):
        names = "".join(
            rf"\{'P' if n[0] == '^' else 'p'}{{{n.removeprefix('^')}}}" for n in node.names
        )
        return f"[{'^' if node.is_inverted else ''}{_ranges(node.ranges)}{names}]"
    if isinstance(node, Sequence):
        return "".join(
            f"(?:{_source_of(part)})" if isinstance(part, Choice) else _source_of(part)
            for part in node.parts
        )
    if isinstance(node, Choice):
        return "|".join(map(_source_of, node.options)) if node.options else _NOTHING
    assert isinstance(node, Repeat)
    inner = _source_of(node.part)
    if not isinstance(node.part, Chars | Properties):
        inner = f"(?:{inner})"
    least, most = node.least, node.most
    if most is None and least <= 1:
        return inner + "*+"[least]
    if (least, most) == (0, 1):
        return inner + "?"
    if least == most:
        return f"{inner}{{{least}}}"
    return f"{inner}{{{least},{'' if most is None else most}}}"


_NOTHING = r"[^\s\S]"


def _class(chars: Chars) -> str:
    if chars == EVERY:
        return "(?s:.)"
    if not chars.ranges:
        return _NOTHING
    if len(chars.ranges) == 1 and chars.ranges[0][0] == chars.ranges[0][1]:
        return _escaped(chars.ranges[0][0])
    return f"[{_ranges(chars.ranges)}]"


def _ranges(ranges: tuple[tuple[int, int], ...]) -> str:
    return "".join(
        _escaped(low) + (f"-{_escaped(high)}" if high > low else "") for low, high in ranges
    )


def _escaped(code: int) -> str:
    char = chr(code)
    return char if char.isascii() and (char.isalnum() or char in "_ ") else f"\\u{{{code:x}}}"
