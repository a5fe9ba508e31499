"""Colours for a line of code; they depend on the lines before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from akunu.cli.terminal.rows import Span

if TYPE_CHECKING:
    from pygments.lexer import Lexer

# A line is coloured by what it is part of, such as a string of several lines; that is looked for
# this far back. More would be slower for every token of a long file, and seldom better.
_LINES_BACK = 40

# Colours of the terminal's own palette that can be read on dark and on light.
_STYLES = {
    "Token.Comment": "2;3",
    "Token.Keyword": "35",
    "Token.Keyword.Constant": "36",
    "Token.Operator.Word": "35",
    "Token.Name.Builtin": "36",
    "Token.Name.Function": "34;1",
    "Token.Name.Class": "34;1",
    "Token.Name.Decorator": "33",
    "Token.Name.Tag": "35",
    "Token.Name.Attribute": "33",
    "Token.Name.Exception": "36",
    "Token.Literal.String": "32",
    "Token.Literal.Number": "36",
    "Token.Generic.Inserted": "32",
    "Token.Generic.Deleted": "31",
    "Token.Generic.Heading": "1",
    "Token.Generic.Subheading": "1",
    "Token.Generic.Prompt": "2",
}
UNKNOWN = "36"  # code without a named language


class CodeColours:
    """Colours the lines of one block of code, one after the other.

    >>> CodeColours("python").spans("x = 1")
    (Span(text='x = ', style=''), Span(text='1', style='36'))
    """

    def __init__(self, language: str) -> None:
        """`language` is what the block calls itself; an unknown one has a single colour."""
        self._lexer = _lexer(language)
        self._before: list[str] = []

    def spans(self, line: str) -> tuple[Span, ...]:
        """Return a line, which may not be whole yet, in colours."""
        if not line:
            return ()
        if self._lexer is None:
            return (Span(line, UNKNOWN),)
        return _last_line(self._lexer, [*self._before, line]) or (Span(line),)

    def add(self, line: str) -> None:
        """Take a line as done."""
        self._before.append(line)
        del self._before[:-_LINES_BACK]


def _lexer(language: str) -> Lexer | None:
    if not language:
        return None
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        return get_lexer_by_name(language.lower(), stripnl=False, stripall=False, ensurenl=False)
    except ClassNotFound:
        return None


def _last_line(lexer: Lexer, lines: Sequence[str]) -> tuple[Span, ...]:
    """Return the last line's pieces; () where the lexer does not give back its text."""
    spans: list[Span] = []
    for kind, text in lexer.get_tokens("\n".join(lines)):
        before, newline, after = text.rpartition("\n")
        if newline:
            spans = []
        del before
        if after:
            style = _style(str(kind))
            if spans and spans[-1].style == style:
                spans[-1] = Span(spans[-1].text + after, style)
            else:
                spans.append(Span(after, style))
    return tuple(spans) if "".join(span.text for span in spans) == lines[-1] else ()


def _style(kind: str) -> str:
    while kind != "Token":
        if kind in _STYLES:
            return _STYLES[kind]
        kind = kind.rpartition(".")[0]
    return ""
