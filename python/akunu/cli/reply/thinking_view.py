"""How thoughts are shown at a terminal: folded into a line, dim, or marked by their tags."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from akunu.cli.reply.output import CLOSE, OPEN
from akunu.cli.reply.renderer import ReplyLook, ReplyRenderer
from akunu.cli.terminal import console
from akunu.cli.terminal.live_rows import LiveRows
from akunu.cli.terminal.rows import Row, Span, chars_of, wrap

_FAINT = "2"
_ROWS = 2  # of the latest thoughts
_INDENT = Span("  ")


class Thoughts(Protocol):
    """Takes thoughts as they come."""

    def push(self, text: str, tokens: int, seconds: float) -> None:
        """Take a part; `tokens` and `seconds` are those of the reply so far."""

    def hint(self, text: str) -> None:
        """Show the thinking while it is generated."""

    def finish(self, *, is_cut: bool = False) -> None:
        """No more thoughts come; `is_cut`: nor does anything else. More than once is fine."""


class MarkedThoughts:
    """Where the screen has no styles: text between tags."""

    def __init__(self, renderer: ReplyRenderer) -> None:
        """`renderer` shows the answer as well."""
        self._renderer = renderer
        self._is_open = False

    def push(self, text: str, tokens: int, seconds: float) -> None:
        """Show it as text."""
        self._renderer.push(text if self._is_open else OPEN + text)
        self._is_open = True

    def hint(self, text: str) -> None:
        """Say it between them."""
        self._renderer.insert(text, _FAINT)

    def finish(self, *, is_cut: bool = False) -> None:
        """Close them."""
        if self._is_open and not is_cut:
            self._renderer.push(CLOSE)
            self._is_open = False


class VisibleThoughts:
    """All of the thoughts, dim, and a line about them below."""

    def __init__(self, painter: LiveRows, size: Callable[[], tuple[int, int]]) -> None:
        """`size` returns how many columns and rows the terminal has."""
        self._painter = painter
        self._renderer = ReplyRenderer(painter, ReplyLook(markdown=False, style=_FAINT), size)
        self._summary = _Summary()

    def push(self, text: str, tokens: int, seconds: float) -> None:
        """Show it."""
        self._renderer.push(self._summary.take(text, tokens, seconds))

    def hint(self, text: str) -> None:
        """Say it between them."""
        self._renderer.insert(text, _FAINT)

    def finish(self, *, is_cut: bool = False) -> None:
        """Add the line about them."""
        if self._summary.is_over:
            return
        self._renderer.finish()
        _fold(self._painter, self._summary, is_cut)


class FoldedThoughts:
    """The latest of the thoughts while they come; a line about them once they are over."""

    def __init__(self, painter: LiveRows, size: Callable[[], tuple[int, int]]) -> None:
        """`size` returns how many columns and rows the terminal has."""
        self._painter = painter
        self._size = size
        self._summary = _Summary()
        self._before: list[Row] = []  # rows of the lines before the last
        self._line = ""
        self._hint = ""

    def push(self, text: str, tokens: int, seconds: float) -> None:
        """Show it in place of the earlier thinking."""
        text = console.for_terminal(self._summary.take(text, tokens, seconds))
        width = self._size()[0]
        if width != self._painter.width:
            self._painter.leave_row(width)
        *whole, last = text.split("\n")
        for part in whole:
            rows = self._wrapped(self._line + part, width)
            self._before = [*self._before, *rows][-_ROWS:]
            self._line = ""
        self._line += last
        rows = self._wrapped(self._line, width)
        if len(rows) > _ROWS:
            self._line = self._line[rows[-_ROWS - 1].source_end :].lstrip()
        if self._summary.has_text:
            head = [Row((Span(f"thinking, {seconds:.1f} s", _FAINT),))]
            head += wrap(chars_of(self._hint, _FAINT), width)
            latest = [*self._before, *rows][-_ROWS:]
            self._painter.show((head + latest)[: max(1, self._size()[1] - 2)])

    def hint(self, text: str) -> None:
        """Say it above them, until they are folded."""
        self._hint = text

    def finish(self, *, is_cut: bool = False) -> None:
        """Leave the line about them in their place."""
        if not self._summary.is_over:
            _fold(self._painter, self._summary, is_cut)

    @staticmethod
    def _wrapped(line: str, width: int) -> list[Row]:
        return wrap(chars_of(line, _FAINT), width, first=(_INDENT,), rest=(_INDENT,))


class _Summary:
    """What the thoughts took."""

    def __init__(self) -> None:
        self.has_text = False
        self.is_over = False
        self._tokens = 0
        self._seconds = 0.0

    def take(self, text: str, tokens: int, seconds: float) -> str:
        """Count a part of the thoughts and return it."""
        self._tokens, self._seconds = tokens, seconds
        self.has_text = self.has_text or bool(text.strip())
        return text

    def line(self, *, is_cut: bool) -> str:
        unit = "token" if self._tokens == 1 else "tokens"
        end = ", and did not finish" if is_cut else ""
        return f"thought for {self._seconds:.1f} s, {self._tokens} {unit}{end}"


def _fold(painter: LiveRows, summary: _Summary, is_cut: bool) -> None:
    summary.is_over = True
    if summary.has_text:
        rows = wrap(chars_of(summary.line(is_cut=is_cut), _FAINT), painter.width)
        painter.show(rows)
        painter.settle()
        if not is_cut:
            painter.skip_line()
