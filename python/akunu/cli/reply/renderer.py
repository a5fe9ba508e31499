"""Shows a reply on a terminal while it comes: broken at words, Markdown rendered.

A line of the reply is a block. The one that is not whole yet is shown up to its last whole word
and written anew only where its meaning changes: when `**` turns out to be text, when a table's
column widens. A whole one is never touched again; so nothing that has scrolled away can be wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from akunu.cli.reply.code_colours import CodeColours
from akunu.cli.reply.inline_markdown import Inline, parse_inline
from akunu.cli.reply.markdown_lines import (
    ASCII,
    Fence,
    Line,
    Symbols,
    may_open_fence,
    opened_fence,
    read_line,
)
from akunu.cli.reply.table_layout import Table, is_delimiter, may_become_delimiter
from akunu.cli.terminal import console
from akunu.cli.terminal.live_rows import LiveRows
from akunu.cli.terminal.rows import Row, Span, chars_of, ready_to_show, wrap

_FAINT = "2"

# A longer line is settled up to its last row before it is whole: to find its markup and to break
# it anew for every word would take longer and longer.
_MOST_ROWS = 4


@dataclass(frozen=True, slots=True)
class ReplyLook:
    """How replies are shown."""

    markdown: bool = True
    styles: bool = True
    symbols: Symbols = ASCII
    style: str = ""
    """The style of text that is not Markdown."""


@dataclass(frozen=True, slots=True)
class _RenderedLine:
    """How a line is shown: its source, how it is read, and its rows."""

    source: str
    line: Line
    rows: list[Row]
    inline: Inline = Inline([], [])  # noqa: RUF009 - it is frozen


class ReplyRenderer:
    r"""Takes a reply in pieces and shows it.

    >>> from akunu.cli.terminal.live_rows import LiveRows
    >>> written = []
    >>> renderer = ReplyRenderer(LiveRows(written.append, 20), ReplyLook(), lambda: (20, 24))
    >>> renderer.push("Some **bo")
    >>> renderer.push("ld** words.")
    >>> renderer.finish()
    >>> written
    ['Some', ' \x1b[1mbold\x1b[0m', ' words.']
    """

    def __init__(
        self, painter: LiveRows, look: ReplyLook, size: Callable[[], tuple[int, int]]
    ) -> None:
        """`size` returns how many columns and rows the terminal has at the moment."""
        self._painter = painter
        self._look = look
        self._size = size
        self._height = size()[1]
        self._line = ""  # the one that is not whole yet
        self._rest_of: Line | None = None  # what _line is the rest of, once its start is settled
        self._open = ""  # the markup that is open where that rest begins
        self._fence: Fence | None = None
        self._colours = CodeColours("")
        self._code_shown = 0  # characters of the line of code that are settled
        self._header = ""  # a whole line that may be a table's header
        self._table: Table | None = None
        self._is_in_list = False
        self._may_be_code = True
        self._is_empty = True

    def push(self, text: str) -> None:
        """Take the next piece and show the part that cannot change any more."""
        self._look_at_size()
        *whole, last = console.for_terminal(text).split("\n")
        for part in whole:
            self._line += part
            self._end_line()
        if last:
            self._line += last
            self._show_line()

    def finish(self) -> None:
        """Show the text that was held back, at the end of the reply; the cursor stays after it."""
        self._look_at_size()
        if self._line:
            self._end_line()
        self._end_table()

    def insert(self, note: str, style: str) -> None:
        """Show a note on separate rows; the reply continues below it."""
        self._look_at_size()
        painter = self._painter
        if painter.shown:
            self._leave_line(painter.width)
            painter.end_row()
        painter.show(wrap(chars_of(note, style), painter.width))
        painter.settle()

    def restart(self) -> None:
        """Go on at the beginning of an empty row: something else was shown meanwhile."""
        if self._painter.shown:
            self._leave_line(self._painter.width)
        self._painter.restart()

    # A line comes to its end.

    def _end_line(self) -> None:
        line, self._line = self._line, ""
        if self._fence:
            self._end_code_line(line, self._fence)
            return
        if not line.strip() and self._rest_of is None:
            self._end_table()
            self._leave_blank()
            return
        fence = opened_fence(line) if self._rest_of is None else None
        if fence is None and self._look.markdown and self._took_for_table(line):
            return
        self._end_table()
        if fence:
            self._open_fence(fence, line)
            return
        self._show(self._text(line, whole=True).rows)
        self._painter.settle()
        self._rest_of, self._open = None, ""

    def _leave_blank(self) -> None:
        if not self._is_empty and (self._painter.newlines < 2 or not self._look.markdown):
            self._painter.skip_line()
        self._may_be_code = not self._is_in_list

    def _open_fence(self, fence: Fence, line: str) -> None:
        self._fence = fence
        self._colours = CodeColours(fence.info.split()[0] if fence.info else "")
        if not self._look.markdown:
            self._show(wrap(chars_of(line, self._look.style), self._painter.width))
        elif fence.item or fence.info:
            item = read_line(fence.item, self._look.symbols, may_be_code=False).first
            self._show([Row((*item, Span(fence.info, _FAINT)))])
        self._painter.settle()

    def _end_code_line(self, line: str, fence: Fence) -> None:
        if fence.is_left_by(line):
            self._fence = None
            self._line = line
            self._end_line()
        elif fence.closes(line) and not self._code_shown:
            self._fence = None
            if not self._look.markdown:
                self._show(wrap(chars_of(line, self._look.style), self._painter.width))
                self._painter.settle()
        else:
            code = fence.code_of(line) if self._look.markdown else line
            self._show([self._code_row(code)])
            self._painter.settle()
            self._colours.add(code)
            self._code_shown = 0

    def _took_for_table(self, line: str) -> bool:
        """Take a line that belongs to a table; False where it does not."""
        if self._rest_of is not None:
            return False
        if self._table and "|" in line:
            self._table.add(line)
        elif self._header and is_delimiter(line, self._header):
            columns = self._look.symbols.columns
            self._table, self._header = Table.of(self._header, line, column_rule=columns), ""
        elif "|" in line and not line.lstrip().startswith(">") and not self._table:
            self._end_table()  # the line before was not a header
            self._header = line
        else:
            return False
        self._show_unfinished([])
        return True

    def _end_table(self) -> None:
        """Settle a table, or a line that might have become the header of one."""
        if self._table or self._header:
            self._show(self._table_rows())
            self._painter.settle()
            self._table, self._header = None, ""

    # A line is on its way.

    def _show_line(self) -> None:
        line = self._line
        if self._fence:
            self._show_code_line(line, self._fence)
            return
        if self._rest_of is None and may_open_fence(line):
            return
        if self._header:
            if may_become_delimiter(line):
                return
            self._end_table()
        text = self._text(line, whole=False)
        self._show_unfinished(text.rows)
        if len(text.rows) > self._most_rows and not self._table:
            self._painter.settle(len(text.rows) - 1)
            self._continue(text, text.rows[-2].source_end)

    def _show_code_line(self, line: str, fence: Fence) -> None:
        if not self._code_shown and (fence.may_close(line) or fence.is_left_by(line)):
            return
        row = self._code_row(fence.code_of(line) if self._look.markdown else line)
        self._show([row])
        if row.height(self._painter.width, self._painter.column) > self._most_rows:
            self._painter.leave_row(self._painter.width)
            self._code_shown += len(row.text)

    def _continue(self, text: _RenderedLine, settled: int) -> None:
        """Go on with the rest of a line after what is settled, its markup opened anew."""
        self._open = text.inline.open_at(settled)
        self._line = text.source[text.line.start + settled :]
        self._rest_of = text.line

    # What is shown.

    @property
    def _most_rows(self) -> int:
        return max(1, min(_MOST_ROWS, self._height - 2))

    def _show(self, rows: list[Row]) -> None:
        if rows:
            self._is_empty = False
        self._painter.show(rows)

    def _show_unfinished(self, rows: list[Row]) -> None:
        """Show the table that is open, with these rows of an unfinished line below it."""
        above = self._table_rows()
        self._show(above + rows)
        if self._table and len(above) + len(rows) > max(1, self._height - 2):
            self._painter.settle(len(above))
            self._table.forget(self._painter.width)

    def _table_rows(self) -> list[Row]:
        if self._table:
            return list(self._table.rows(self._painter.width))
        return self._text(self._header, whole=True).rows if self._header else []

    def _code_row(self, code: str) -> Row:
        if not self._look.markdown:
            rest = code[self._code_shown :]
            return Row((Span(rest, self._look.style),) if rest else (), flows=True)
        left, spans = self._code_shown, []
        for text, style in self._colours.spans(code):
            spans.append(Span(text[left:], style))
            left = max(0, left - len(text))
        return Row(tuple(span for span in spans if span.text), flows=True)

    def _read(self, text: str) -> Line:
        if self._rest_of:
            rest = self._rest_of
            return Line((), rest.rest, rest.style, 0, len(text), is_verbatim=rest.is_verbatim)
        if not self._look.markdown:
            return Line(start=0, end=len(text))
        return read_line(text, self._look.symbols, may_be_code=self._may_be_code)

    def _text(self, text: str, *, whole: bool) -> _RenderedLine:
        """Return how a line of text is shown."""
        width, column, opened = self._painter.width, self._painter.column, 0
        if self._rest_of:
            bare = text.lstrip()
            before = (text[: len(text) - len(bare)] if column else "") + self._open
            text, opened = before + bare, len(before)
        line = self._read(text)
        end = line.end if whole else min(line.end, ready_to_show(text, width))
        if whole:
            self._note_context(text, line)
        shown = text[line.start : end]
        if line.is_rule:
            rule = self._look.symbols.rule * min(width - len(line.first), 40)
            return _RenderedLine(
                text, line, [Row((*line.first, Span(rule, _FAINT)))] if whole else []
            )
        if line.is_verbatim:
            row = Row((Span(shown),) if shown else (), flows=True, source_end=len(shown))
            return _RenderedLine(text, line, [row])
        if self._look.markdown:
            inline = parse_inline(shown, whole=whole, style=line.style, opened=opened)
        else:
            inline = Inline(chars_of(shown, self._look.style), [])
        first = line.rest if self._rest_of and not column else line.first
        rows = wrap(inline.chars, width, first=first, rest=line.rest, column=column)
        if not rows and whole and line.first:
            rows = [Row(line.first)]
        return _RenderedLine(text, line, rows, inline)

    def _note_context(self, text: str, line: Line) -> None:
        """Remember what the meaning of the next line depends on."""
        if self._rest_of:
            return
        self._is_in_list = line.is_item or (self._is_in_list and text[:1].isspace())
        self._may_be_code = line.is_verbatim

    # The terminal changes.

    def _look_at_size(self) -> None:
        width, self._height = self._size()
        if width == self._painter.width:
            return
        if self._painter.shown:
            self._leave_line(width)
        self._painter.width = width

    def _leave_line(self, width: int) -> None:
        """Settle all that is shown, so that later text continues from there."""
        painter = self._painter
        if self._fence:
            self._code_shown += len(painter.shown[-1].text)
            painter.leave_row(width)
        elif self._table or self._header:
            # Shown rows stay; the part that may still change is shown once more below them.
            painter.settle()
            if self._table:
                self._table.forget(width)
        else:
            text = self._text(self._line, whole=False)
            settled = painter.shown[-1].source_end
            painter.leave_row(width)
            self._continue(text, settled)
