"""llama.cpp's notation of grammars, GBNF, as a tree: what its parser reads, this one reads.

Rules (`name ::= ...`), alternatives, groups, `* + ? {m,n}`, texts, classes of characters, `.`,
comments, and tokens of the model (`<[123]>`, `<think>`). Names may have `_` too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from akunu.grammar.errors import GrammarError
from akunu.grammar.expressions import ANY, LAST, Chars, Choice, Repeat, Sequence, inverted, united

_MOST_REPEATS = 2000  # llama.cpp's own limit


@dataclass(frozen=True, slots=True)
class Rule:
    """A reference to a rule."""

    name: str


@dataclass(frozen=True, slots=True)
class Token:
    """A token of the model, as llguidance writes it: `<[123]>` or `<name>`."""

    text: str


Expression = (
    Chars | Sequence["Expression"] | Choice["Expression"] | Repeat["Expression"] | Rule | Token
)


def literal(text: str) -> Expression:
    """The characters of a text, one after the other."""
    chars = tuple(Chars(united([(ord(char), ord(char))])) for char in text)
    return chars[0] if len(chars) == 1 else Sequence(chars)


def parse_gbnf(text: str) -> dict[str, Expression]:
    """Rules by name; GrammarError with line and column where the text makes no sense."""
    return _Parser(text).rules()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._used: dict[str, int] = {}

    def rules(self) -> dict[str, Expression]:
        rules: dict[str, Expression] = {}
        self._space(lines=True)
        while self._at < len(self._text):
            name = self._name()
            self._space(lines=False)
            self._expect("::=", "expected ::= after the name of a rule")
            self._space(lines=True)
            rules[name] = self._choice(nested=False)  # the last one counts, as in llama.cpp
            if self._at < len(self._text) and self._text[self._at] not in "\r\n":
                raise self._error("expected the end of the line, or another part of the rule")
            self._space(lines=True)
        for name, position in self._used.items():
            if name not in rules:
                raise self._error(f"there is no rule {name}", position)
        if "root" not in rules:
            raise self._error("there is no rule root, where every text begins", 0)
        return rules

    def _choice(self, nested: bool) -> Expression:
        options = [self._sequence(nested)]
        while self._peek() == "|":
            self._at += 1
            self._space(lines=True)
            options.append(self._sequence(nested))
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _sequence(self, nested: bool) -> Expression:
        parts: list[Expression] = []
        repeatable = False  # an empty text is not a part
        while char := self._peek():
            start = self._at
            if char in "*+?{":
                if not repeatable:
                    raise self._error(f"there is nothing before {char} that it could repeat")
                least, most = self._repeats(nested)
                parts[-1] = Repeat(parts[-1], least, most)
            elif char == '"':
                text = self._literal()
                repeatable = bool(text)
                if text:
                    parts.append(literal(text))
            elif char == "[":
                chars = self._class()
                repeatable = chars is not None
                if chars is not None:
                    parts.append(chars)
            elif char == ".":
                self._at += 1
                parts.append(Chars(ANY))
                repeatable = True
            elif char == "(":
                self._at += 1
                self._space(lines=True)
                parts.append(self._choice(nested=True))
                if self._peek() != ")":
                    raise self._error("expected ) for the group", self._at or start)
                self._at += 1
                repeatable = True
            elif char in "<!":
                parts.append(self._token())
                repeatable = True
            elif _is_word(char):
                name = self._name()
                self._used.setdefault(name, start)
                parts.append(Rule(name))
                repeatable = True
            else:
                break
            self._space(lines=nested)
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _repeats(self, nested: bool) -> tuple[int, int | None]:
        char = self._peek()
        self._at += 1
        if char != "{":
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[char]
        self._space(lines=nested)
        least = self._number()
        self._space(lines=nested)
        most: int | None = least
        if self._peek() == ",":
            self._at += 1
            self._space(lines=nested)
            most = self._number() if self._peek().isdigit() else None
            self._space(lines=nested)
        start = self._at
        self._expect("}", "expected , or } in a repetition")
        if max(least, most or 0) > _MOST_REPEATS:
            raise self._error(f"at most {_MOST_REPEATS} repetitions are allowed", start)
        if most is not None and most < least:
            raise self._error(
                f"the least number of repetitions, {least}, is above the most, {most}", start
            )
        return least, most

    def _number(self) -> int:
        found = re.compile(r"[0-9]+").match(self._text, self._at)
        if found is None:
            raise self._error("expected a number of repetitions")
        self._at = found.end()
        return int(found[0])

    def _literal(self) -> str:
        start = self._at
        self._at += 1
        text = ""
        while self._peek() != '"':
            if not self._peek():
                raise self._error('the text that begins here has no closing "', start)
            text += chr(self._char())
        self._at += 1
        return text

    def _class(self) -> Chars | None:
        start = self._at
        self._at += 1
        negated = self._peek() == "^"
        self._at += negated
        ranges: list[tuple[int, int]] = []
        while self._peek() != "]":
            if not self._peek():
                raise self._error("the class that begins here has no closing ]", start)
            low = high = self._char()
            if self._peek() == "-" and self._text[self._at + 1 : self._at + 2] != "]":
                self._at += 1
                if not self._peek():
                    raise self._error("the class that begins here has no closing ]", start)
                high = self._char()
            ranges.append((low, high))
        self._at += 1
        if not ranges:  # llama.cpp takes [] and [^] for nothing at all
            return None
        return Chars(inverted(united(ranges)) if negated else united(ranges))

    def _char(self) -> int:
        char = self._text[self._at]
        if char != "\\":
            self._at += 1
            return ord(char)
        kind = self._text[self._at + 1 : self._at + 2]
        if kind in _HEX:
            digits = self._text[self._at + 2 : self._at + 2 + _HEX[kind]]
            if not re.fullmatch(rf"[0-9a-fA-F]{{{_HEX[kind]}}}", digits):
                raise self._error(f"\\{kind} needs {_HEX[kind]} hexadecimal digits")
            if int(digits, 16) > LAST:
                raise self._error(f"there is no character \\{kind}{digits}")
            self._at += 2 + _HEX[kind]
            return int(digits, 16)
        if kind not in _ESCAPES or not kind:
            raise self._error(f"there is no escape \\{kind}")
        self._at += 2
        return ord(_ESCAPES[kind])

    def _token(self) -> Token:
        negated = self._peek() == "!"
        found = re.compile(r"!?<(?:\[(\d+)\]|([^<>\s\[\]]+))>").match(self._text, self._at)
        if found is None:
            raise self._error("expected a token, such as <[123]> or <think>")
        if negated and found[1] is None:
            raise self._error("a token that is excluded is written with its number, as in !<[123]>")
        self._at = found.end()
        if found[1] is None:
            return Token(f"<{found[2]}>")
        return Token(f"<[{'^' if negated else ''}{found[1]}]>")

    def _name(self) -> str:
        start = self._at
        while _is_word(self._peek()):
            self._at += 1
        if self._at == start:
            raise self._error("expected the name of a rule")
        return self._text[start : self._at]

    def _space(self, lines: bool) -> None:
        while char := self._peek():
            if char == "#":
                while self._peek() and self._peek() not in "\r\n":
                    self._at += 1
            elif char in " \t" or (lines and char in "\r\n"):
                self._at += 1
            else:
                return

    def _expect(self, text: str, message: str) -> None:
        if not self._text.startswith(text, self._at):
            raise self._error(message)
        self._at += len(text)

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _error(self, reason: str, position: int | None = None) -> GrammarError:
        at = self._at if position is None else position
        line = self._text.count("\n", 0, at) + 1
        column = at - (self._text.rfind("\n", 0, at) + 1) + 1
        return GrammarError("grammar (GBNF)", reason, line, column)


_HEX = {"x": 2, "u": 4, "U": 8}
_ESCAPES = {"t": "\t", "r": "\r", "n": "\n", "\\": "\\", '"': '"', "[": "[", "]": "]"}


def _is_word(char: str) -> bool:
    return char.isascii() and (char.isalnum() or char in "-_") and char != ""
