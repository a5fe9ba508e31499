"""Patterns of JSON schemas, which are ECMAScript's, as a tree.

A pattern is read as `new RegExp(pattern, "u")` reads it, and where that refuses it, as without "u"
(the standard's annex B). Two things that ECMAScript lacks are read as people mean them: the flags
`(?i)` and `(?s)`, and groups with names as `(?P<name>`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from akunu.grammar.expressions import ANY, LAST, Chars, Choice, Ranges, Repeat, Sequence, united
from akunu.grammar.expressions import inverted as all_but

DIGITS: Ranges = ((0x30, 0x39),)
WORDS: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
SPACES: Ranges = united(
    [(9, 13), (0x2000, 0x200A), *((c, c) for c in (0x20, 0xA0, 0x1680, 0x2028, 0x2029))]
    + [(c, c) for c in (0x202F, 0x205F, 0x3000, 0xFEFF)]
)
LINE_ENDS: Ranges = ((10, 10), (13, 13), (0x2028, 0x2029))
_CLASSES = {"d": DIGITS, "w": WORDS, "s": SPACES}
_CONTROLS = {"f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_SYNTAX = frozenset("^$\\.*+?()[]{}|/")
_GROUP = re.compile(r"\?(?:P?<(?![=!])[^>]*>|:)")
_FLAGS = re.compile(r"\?([a-zA-Z]*)(-[a-zA-Z]*)?([:)])")
_LOOK = re.compile(r"\?(<?)([=!])")
_COUNT = re.compile(r"\{(\d+)(,(\d*))?\}")


@dataclass(frozen=True, slots=True)
class Properties:
    r"""One character of ranges or of Unicode's properties, `L` or `Script=Greek`, or all others."""

    ranges: Ranges
    names: tuple[str, ...]
    r"""Those of `\P{...}` begin with `^`."""
    is_inverted: bool = False


@dataclass(frozen=True, slots=True)
class Edge:
    """The beginning of the text, or its end."""

    is_end: bool


@dataclass(frozen=True, slots=True)
class Look:
    """A lookahead or lookbehind, perhaps negative."""

    part: Node
    is_behind: bool
    is_negative: bool
    position: int


@dataclass(frozen=True, slots=True)
class Both:
    """A text of all of them."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """Any other text."""

    part: Node


Node = (
    Chars
    | Sequence["Node"]
    | Choice["Node"]
    | Repeat["Node"]
    | Properties
    | Edge
    | Look
    | Both
    | Not
)

EVERY = Chars(ANY)
NEVER: Node = Choice(())
EMPTY: Node = Sequence(())


class PatternError(Exception):
    """An error in a pattern, or a part without a grammar, and its position, from 0."""

    def __init__(self, position: int, what: str, *, is_syntax: bool = False) -> None:
        """`is_syntax`: whether it is not a pattern at all."""
        super().__init__(what)
        self.position = position
        self.what = what
        self.is_syntax = is_syntax


def parse_pattern(pattern: str) -> Node:
    """Return what a pattern says; raises PatternError."""
    try:
        return _Parser(pattern, is_unicode=True).parsed()
    except PatternError as error:
        if not error.is_syntax:
            raise
    return _Parser(pattern, is_unicode=False).parsed()


@dataclass(frozen=True, slots=True)
class _Flags:
    ignores_case: bool = False
    dot_is_all: bool = False


class _Parser:
    def __init__(self, pattern: str, *, is_unicode: bool) -> None:
        self._text = pattern
        self._at = 0
        self._is_unicode = is_unicode
        self._flags = _Flags()
        bare = re.sub(r"\\.|\[\^?(?:\\.|[^\]\\])*\]", "", pattern, flags=re.DOTALL)
        self._n_groups = len(re.findall(r"\((?!\?)|\(\?P?<(?![=!])", bare))
        self._has_names = re.search(r"\(\?P?<(?![=!])", bare) is not None

    def parsed(self) -> Node:
        found = self._choice()
        if self._at < len(self._text):
            raise self._wrong("a ) that closes nothing")
        return found

    def _wrong(self, what: str, at: int | None = None) -> PatternError:
        return PatternError(self._at if at is None else at, what, is_syntax=True)

    def _unsaid(self, what: str, at: int) -> PatternError:
        return PatternError(at, what)

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self, text: str) -> bool:
        if not self._text.startswith(text, self._at):
            return False
        self._at += len(text)
        return True

    def _matched(self, expression: re.Pattern[str]) -> re.Match[str] | None:
        found = expression.match(self._text, self._at)
        if found is not None:
            self._at = found.end()
        return found

    def _choice(self) -> Node:
        flags = self._flags
        options = [self._sequence()]
        while self._take("|"):
            options.append(self._sequence())
        self._flags = flags  # those of a group hold to its end
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while (char := self._peek()) and char not in "|)":
            begun = self._at
            part = self._part()
            if part is not None:
                parts.append(self._counted(part, begun))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _counted(self, part: Node, begun: int) -> Node:
        at = self._at
        if self._take("*"):
            least, most = 0, None
        elif self._take("+"):
            least, most = 1, None
        elif self._take("?"):
            least, most = 0, 1
        elif found := self._matched(_COUNT):
            least = int(found[1])
            most = least if found[2] is None else int(found[3]) if found[3] else None
            if most is not None and most < least:
                raise self._wrong("numbers out of order", at)
        else:
            return part
        self._take("?")  # as few as possible: the texts are the same
        if self._text.startswith(("^", "$", "(?<=", "(?<!"), begun):
            raise self._wrong("nothing to repeat", at)
        if isinstance(part, Look) and self._text.startswith(("(?=", "(?!"), begun):
            if self._is_unicode:
                raise self._wrong("nothing to repeat", at)
            return part if least else EMPTY
        if max(least, most or 0) >= 2**32:
            raise self._unsaid(f"more than {2**32 - 1} repetitions", at)
        return Repeat(part, least, most)

    def _part(self) -> Node | None:
        at, char = self._at, self._peek()
        self._at += 1
        if char == "^":
            return Edge(is_end=False)
        if char == "$":
            return Edge(is_end=True)
        if char == "(":
            return self._group(at)
        if char == ".":
            return EVERY if self._flags.dot_is_all else Chars(all_but(LINE_ENDS))
        if char == "[":
            return self._class(at)
        if char == "\\":
            return self._escape(at)
        if char in "*+?":
            raise self._wrong("nothing to repeat", at)
        if char in "{}]" and self._is_unicode:
            raise self._wrong(f"a {char} without a \\ before it", at)
        if char == "{" and _COUNT.match(self._text, at):
            raise self._wrong("nothing to repeat", at)
        return self._of(ord(char))

    def _group(self, at: int) -> Node | None:
        if found := self._matched(_LOOK):
            inner = self._choice()
            self._close(at)
            return Look(inner, found[1] == "<", found[2] == "!", at)
        if self._matched(_GROUP) is None and self._peek() == "?":
            if (flags := self._matched(_FLAGS)) is None:
                raise self._wrong("an unknown kind of group", at)
            return self._flagged(flags, at)
        inner = self._choice()
        self._close(at)
        return inner

    def _flagged(self, found: re.Match[str], at: int) -> Node | None:
        """Flags, which hold to the end of the group that they stand in, their own or."""
        if not found[1] or set(found[1]) - set("isu") or found[2]:
            raise self._unsaid(f"the flags ({found[0]}", at)
        before = self._flags
        self._flags = _Flags("i" in found[1] or before.ignores_case, "s" in found[1])
        if not found[1].count("s"):
            self._flags = replace(self._flags, dot_is_all=before.dot_is_all)
        if found[3] == ")":
            return None
        inner = self._choice()
        self._close(at)
        self._flags = before
        return inner

    def _close(self, at: int) -> None:
        if not self._take(")"):
            raise self._wrong("an unclosed group", at)

    def _escape(self, at: int) -> Node:
        char = self._peek()
        if not char:
            raise self._wrong("a \\ at the end", at)
        if char in "bB":
            raise self._unsaid("a word boundary", at)
        if char in "AzZG" and not self._is_unicode:
            instead = "^" if char in "AG" else "$"
            raise self._unsaid(f"\\{char}, which ECMAScript does not have (write {instead})", at)
        if char == "k" and (self._has_names or self._is_unicode):
            raise (
                self._unsaid("a backreference", at)
                if self._has_names
                else self._wrong("\\k without a group of that name", at)
            )
        if char in "123456789":
            found = re.compile(r"\d+").match(self._text, self._at)
            assert found is not None
            if int(found[0]) <= self._n_groups:
                raise self._unsaid("a backreference", at)
            if self._is_unicode:
                raise self._wrong("a reference to a group that is not there", at)
        return self._class_of_escape(at) or self._of(self._character(at, in_class=False))

    def _class_of_escape(self, at: int) -> Node | None:
        r"""What `\d` and its like are; None for a character's escape."""
        char = self._peek()
        if char.lower() in _CLASSES and char in "dDwWsS":
            self._at += 1
            ranges = _CLASSES[char.lower()]
            return Chars(all_but(ranges) if char.isupper() else ranges)
        if char in "pP" and self._is_unicode:
            found = re.compile(r"[pP]\{([A-Za-z_]+(?:=[A-Za-z0-9_]+)?)\}").match(
                self._text, self._at
            )
            if found is None:
                raise self._unsaid(f"\\{char} without a property as in \\p{{L}}", at)
            self._at = found.end()
            return Properties((), (("^" if char == "P" else "") + found[1],))
        return None

    def _character(self, at: int, *, in_class: bool) -> int:
        r"""The code point of an escape, whose `\` is read already."""
        char = self._peek()
        self._at += 1
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char == "c":
            return self._control(at, in_class=in_class)
        if char == "0" and not self._peek().isdigit():
            return 0
        if char in "01234567" and not self._is_unicode:
            found = re.compile(r"[0-3][0-7]{0,2}|[4-7][0-7]?").match(self._text, self._at - 1)
            assert found is not None
            self._at = found.end()
            return int(found[0], 8)
        if char == "x" and (found := self._matched(re.compile("[0-9a-fA-F]{2}"))):
            return int(found[0], 16)
        if char == "u" and (code := self._code()) is not None:
            return code
        if char in "pP" and not self._is_unicode:
            raise self._unsaid(f"\\{char} together with syntax of expressions without Unicode", at)
        if self._is_unicode and char not in _SYNTAX and not (in_class and char == "-"):
            raise self._wrong(f"the escape \\{char}", at)
        return ord(char)

    def _control(self, at: int, *, in_class: bool) -> int:
        char = self._peek()
        if char.isascii() and (char.isalpha() or (in_class and self._is_word_in_class(char))):
            self._at += 1
            return ord(char) % 32
        if self._is_unicode:
            raise self._wrong("\\c without a letter", at)
        self._at -= 1  # the c stands for itself, and so does the \
        return ord("\\")

    def _is_word_in_class(self, char: str) -> bool:
        return not self._is_unicode and (char.isdigit() or char == "_")

    def _code(self) -> int | None:
        if self._is_unicode and (found := self._matched(re.compile(r"\{0*([0-9a-fA-F]{1,6})\}"))):
            if int(found[1], 16) > LAST:
                raise self._wrong("a code point beyond Unicode", found.start())
            return int(found[1], 16)
        found = self._matched(re.compile("[0-9a-fA-F]{4}"))
        if found is None:
            return None
        high = int(found[0], 16)
        if 0xD800 <= high < 0xDC00:
            low = self._matched(re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})"))
            if low is not None:
                return 0x10000 + ((high - 0xD800) << 10) + int(low[1], 16) - 0xDC00
        return high

    def _class(self, at: int) -> Node:
        is_inverted = self._take("^")
        ranges: list[tuple[int, int]] = []
        names: list[str] = []
        while not self._take("]"):
            if not self._peek():
                raise self._wrong("an unclosed class", at)
            begun = self._at
            first = self._member()
            if self._peek() == "-" and self._text[self._at + 1 : self._at + 2] not in ("]", ""):
                self._at += 1
                last = self._member()
                if isinstance(first, int) and isinstance(last, int):
                    if last < first:
                        raise self._wrong("a range out of order", begun)
                    ranges.append((first, last))
                    continue
                if self._is_unicode:
                    raise self._wrong("a range with a class as an end", begun)
                self._add(last, ranges, names)
                ranges.append((0x2D, 0x2D))
            self._add(first, ranges, names)
        held = united(ranges)
        if self._flags.ignores_case:
            held = _in_both_cases(held)
        if names:
            return Properties(held, tuple(names), is_inverted)
        return Chars(all_but(held) if is_inverted else held)

    def _member(self) -> int | Node:
        at = self._at
        if not self._take("\\"):
            self._at += 1
            return ord(self._text[at])
        if not self._peek():
            raise self._wrong("an unclosed class", at)
        if self._take("b"):
            return 8
        return self._class_of_escape(at) or self._character(at, in_class=True)

    @staticmethod
    def _add(member: int | Node, ranges: list[tuple[int, int]], names: list[str]) -> None:
        if isinstance(member, int):
            ranges.append((member, member))
        elif isinstance(member, Chars):
            ranges += member.ranges
        elif isinstance(member, Properties):
            names += member.names

    def _of(self, code: int) -> Node:
        ranges = united([(code, code)])
        return Chars(_in_both_cases(ranges) if self._flags.ignores_case else ranges)


@lru_cache(maxsize=256)
def _in_both_cases(ranges: Ranges) -> Ranges:
    """Characters, and what they are in the other case."""
    found = list(ranges)
    for low, high in ranges:
        for code in range(low, min(high, 0x1E943) + 1):
            for other in (chr(code).lower(), chr(code).upper()):
                if len(other) == 1 and ord(other) != code:
                    found.append((ord(other), ord(other)))
    return united(found)
