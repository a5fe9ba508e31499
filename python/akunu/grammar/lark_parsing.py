"""llguidance's variant of Lark as a tree: as much of it as shows which rules a text can end.

llguidance has read the text before, and says where it makes no sense. Whatever stands for
characters here (texts, expressions, TERMINALS, `%json`) is one token that a text can have; what it
matches is not looked at.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from akunu.grammar.expressions import Choice, Repeat, Sequence
from akunu.grammar.gbnf.parsing import Expression, Rule, Token


class NotRead(Exception):  # noqa: N818, its one caller does without what was to be read
    """A text in a form that is not known here."""


@dataclass(slots=True)
class Lark:
    """What was read."""

    rules: dict[str, Expression] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)
    """Where each rule begins, in characters from the text's beginning."""
    definitions: list[str] = field(default_factory=list)
    """The text of everything that is not a rule: TERMINALS, imports, options."""
    terminals: dict[str, int] = field(default_factory=dict)
    """Each TERMINAL's place."""
    expressions: dict[str, int] = field(default_factory=dict)
    """Each regular expression inside a rule, with its slashes, and its place."""


def parse_lark(text: str) -> Lark:
    """What a text in Lark says; NotRead where that is not certain."""
    return _Parser(text).parsed()


_LEXEME = re.compile(
    r"""(?P<skip>(?:\#|//)[^\n]*|[ \t]+)
    |(?P<newline>(?:\r?\n[ \t]*)+)
    |(?P<keyword>%[a-z]+)
    |(?P<string>"(?:\\.|[^"\\\n])*"i?)
    |(?P<regexp>/(?:\\.|[^/\\])+/[imslux]*)
    |(?P<special><[^<>\s]+>|@[A-Za-z0-9_-]+)
    |(?P<rule>!?[_?]?[a-z][_a-z0-9-]*)
    |(?P<terminal>_?[A-Z][_A-Z0-9-]*)
    |(?P<number>[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
    |(?P<mark>->|::|\.\.|[:,.(){}\[\]~|&=\#_+*?])""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class _Lexeme:
    kind: str
    text: str
    at: int
    end: int


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._lexemes = list(_lexemes(text))
        self._next = 0

    def parsed(self) -> Lark:
        found = Lark()
        while self._peek().kind != "end":
            first = self._peek()
            if first.kind == "newline":
                self._take()
            elif first.kind == "rule":
                name = first.text.lstrip("!?")
                self._take()
                self._skip_to_colon()
                found.places[name] = first.at
                found.rules[name] = self._options(found)
            else:
                if first.kind == "terminal":
                    found.terminals[first.text] = first.at
                elif first.text == "%override":
                    raise NotRead
                end = self._skip_definition()
                found.definitions.append(self._text[first.at : end])
        return found

    def _peek(self, ahead: int = 0) -> _Lexeme:
        return self._lexemes[min(self._next + ahead, len(self._lexemes) - 1)]

    def _take(self, text: str | None = None) -> _Lexeme:
        lexeme = self._peek()
        if text is not None and lexeme.text != text:
            raise NotRead
        self._next += 1
        return lexeme

    def _skip_to_colon(self) -> None:
        while (text := self._take().text) != ":":
            if text == "::" or self._peek().kind in ("newline", "end"):
                raise NotRead

    def _skip_definition(self) -> int:
        """Leaves after a definition, which ends where a line begins that is not `|`."""
        while True:
            lexeme = self._take()
            following = self._peek()
            if following.kind == "end" or (
                following.kind == "newline" and self._peek(1).text != "|"
            ):
                return lexeme.end

    def _options(self, found: Lark) -> Expression:
        options = [self._sequence(found)]
        while True:
            if self._peek().kind == "newline" and self._peek(1).text == "|":
                self._take()
            if self._peek().text != "|":
                return options[0] if len(options) == 1 else Choice(tuple(options))
            self._take()
            options.append(self._sequence(found))

    def _sequence(self, found: Lark) -> Expression:
        parts: list[Expression] = []
        while True:
            following = self._peek()
            if following.kind in ("newline", "end") or following.text in ("|", ")", "]"):
                return parts[0] if len(parts) == 1 else Sequence(tuple(parts))
            if following.text == "->":
                self._take()
                self._take()
            elif following.text == "&":  # of terminals alone
                self._take()
            else:
                parts.append(self._repeated(self._atom(found)))

    def _atom(self, found: Lark) -> Expression:
        first = self._take()
        if first.text == "~":
            self._atom(found)
            return Token("~")
        if first.text == "(":
            inside = self._options(found)
            self._take(")")
            return inside
        if first.text == "[":
            inside = self._options(found)
            self._take("]")
            return Repeat(inside, 0, 1)
        if first.kind == "rule":
            if self._peek().text == "::":
                raise NotRead
            return Rule(first.text.lstrip("!?"))
        if first.kind == "regexp":
            found.expressions.setdefault(first.text, first.at)
            return Token(first.text)
        if first.kind == "string" and self._peek().text == "..":
            self._take()
            self._take()
        elif first.kind not in ("string", "terminal", "special", "value"):
            raise NotRead
        return Token(first.text)

    def _repeated(self, part: Expression) -> Expression:
        following = self._peek().text
        if following in ("?", "*", "+"):
            self._take()
            return Repeat(part, 1 if following == "+" else 0, 1 if following == "?" else None)
        if following not in ("{", "~"):
            return part
        self._take()
        least = self._take().text
        if following == "{":
            while self._take().text != "}":
                if self._peek().kind == "end":
                    raise NotRead
        elif self._peek().text == "..":
            self._take()
            self._take()
        return Repeat(part, int(least) if least.isdigit() else 0, None)


def _lexemes(text: str) -> list[_Lexeme]:
    found: list[_Lexeme] = []
    at = 0
    while at < len(text):
        match = _LEXEME.match(text, at)
        if match is None or match.lastgroup is None:
            raise NotRead
        kind, end = match.lastgroup, match.end()
        if match[0] in ("%json", "%llguidance", "%regex"):
            start = re.compile(r"\s*").match(text, end)
            assert start is not None
            try:
                _, end = json.JSONDecoder().raw_decode(text, start.end())
            except ValueError as error:
                raise NotRead from error
            kind = "value" if match[0] != "%llguidance" else kind
        elif match[0] == "%lark":
            raise NotRead
        if kind != "skip":
            found.append(_Lexeme(kind, text[at:end], at, end))
        at = end
    found.append(_Lexeme("end", "", at, at))
    return found
