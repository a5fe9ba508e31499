"""A Markdown table as rows of a terminal: columns as wide as they must be, or broken at words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from akunu.cli.reply.inline_markdown import inline_chars
from akunu.cli.terminal.rows import Char, Row, Span, cell_count, spans_of, wrap

_BOLD, _FAINT = "1", "2"
_LEAST_WIDTH = 6  # of a column whose text is broken at words

_DELIMITER_CELL = re.compile(r"\s*:?-+:?\s*")
_BREAK = re.compile(r"<br\s*/?>")


def split_cells(line: str) -> list[str]:
    r"""Return the cells of a line of a table.

    >>> split_cells("| a | `b` \\| c |")
    ['a', '`b` | c']
    """
    line = line.strip()
    cells, cell, at = [], "", 1 if line.startswith("|") else 0
    while at < len(line):
        if line.startswith("\\|", at):
            cell += "|"
            at += 2
        elif line[at] == "|":
            cells.append(cell.strip())
            cell = ""
            at += 1
        else:
            cell += line[at]
            at += 1
    if cell.strip():
        cells.append(cell.strip())
    return cells


def may_become_delimiter(line: str) -> bool:
    """Whether the beginning of a line may be that of the line below a table's header."""
    return re.fullmatch(r"\s*\|?[\s:|-]*", line) is not None


def is_delimiter(line: str, header: str) -> bool:
    """Whether this line makes a table's header of the one before it."""
    inside = line.strip()
    if "-" not in inside or ("|" not in inside and ":" not in inside):
        return False
    cells = inside.removeprefix("|").removesuffix("|").split("|")
    return all(map(_DELIMITER_CELL.fullmatch, cells)) and len(cells) == len(split_cells(header))


@dataclass(slots=True)
class Table:
    """The lines of a table so far, and how they are laid out."""

    header: list[str]
    alignments: list[str]
    column_rule: str = " │ "
    lines: list[list[str]] = field(default_factory=list)
    _is_headless: bool = False
    _laid_out: tuple[int, list[Row]] | None = None  # for this width; an unfinished line is below it
    _least: list[int] = field(init=False)  # how wide columns are at least

    def __post_init__(self) -> None:
        """Let columns be as narrow as they can."""
        self._least = [1] * len(self.header)

    @classmethod
    def of(cls, header: str, delimiter: str, *, column_rule: str) -> Table:
        """Return a table of its first two lines."""
        inside = delimiter.strip().removeprefix("|").removesuffix("|")
        return cls(split_cells(header), [_alignment(c) for c in inside.split("|")], column_rule)

    def add(self, line: str) -> None:
        """Take a line; cells beyond the last column are part of it, so that none is lost."""
        cells = split_cells(line)
        count = len(self.header)
        if len(cells) > count:
            cells = [*cells[: count - 1], " | ".join(cells[count - 1 :])]
        self._laid_out = None
        self.lines.append(cells + [""] * (count - len(cells)))

    def forget(self, width: int) -> None:
        """Forget header and lines: they are on the screen for good."""
        self._least = self._column_widths(width) or self._least
        self._is_headless = True
        self._laid_out = None
        self.lines = []

    def rows(self, width: int) -> list[Row]:
        """Return the rows of a screen that is this wide."""
        if self._laid_out is None or self._laid_out[0] != width:
            self._laid_out = width, self._lay_out(width)
        return self._laid_out[1]

    def _lay_out(self, width: int) -> list[Row]:
        widths = self._column_widths(width)
        if widths is None:
            return self._records(self.lines, width)
        rows = [row for line in self.lines for row in self._line(line, widths, "")]
        if self._is_headless:
            return rows
        dash = "-" if self.column_rule.isascii() else "─"
        crossing = self.column_rule.replace(" ", dash).replace("│", "┼").replace("|", "+")
        rule = crossing.join(dash * width for width in widths)
        return [*self._line(self.header, widths, _BOLD), Row((Span(rule, _FAINT),)), *rows]

    def _column_widths(self, width: int) -> list[int] | None:
        """Return how wide each column is; None where they don't fit side by side."""
        room = width - cell_count(self.column_rule) * (len(self.header) - 1)
        lines = [self.header, *self.lines]
        columns = zip(*lines, strict=True)
        widths = [
            max(least, *map(_cells_of, column))
            for least, column in zip(self._least, columns, strict=True)
        ]
        while sum(widths) > room:
            widest = max(widths)
            if widest <= _LEAST_WIDTH:
                return None
            # Narrow the widest ones down to the next, or by what is too much.
            count = widths.count(widest)
            lower = max([w for w in widths if w < widest], default=0)
            excess = -(-(sum(widths) - room) // count)
            lower = max(_LEAST_WIDTH, lower, widest - excess)
            widths = [lower if w == widest else w for w in widths]
        return widths

    def _line(self, cells: Sequence[str], widths: Sequence[int], style: str) -> list[Row]:
        columns = [_cell_rows(c, w, style) for c, w in zip(cells, widths, strict=True)]
        height = max(map(len, columns))
        rows = []
        for index in range(height):
            spans: list[Span] = []
            for number, (column, width) in enumerate(zip(columns, widths, strict=True)):
                if number:
                    spans.append(Span(self.column_rule, _FAINT))
                row = column[index] if index < len(column) else Row()
                spare = width - cell_count(row.text)
                left = {"right": spare, "center": spare // 2}.get(self.alignments[number], 0)
                is_last = number == len(widths) - 1
                pads = (Span(" " * left), Span("" if is_last else " " * (spare - left)))
                spans += [pads[0], *row.spans, pads[1]]
            rows.append(Row(tuple(span for span in spans if span.text)))
        return rows

    def _records(self, lines: Sequence[Sequence[str]], width: int) -> list[Row]:
        """Return a row for each cell, after the name of its column."""
        if not lines and not self._is_headless:
            return wrap(_joined([inline_chars(c, whole=True) for c in self.header]), width)
        rows: list[Row] = []
        for line in lines:
            for name, cell in zip(self.header, line, strict=True):
                chars = inline_chars(name, whole=True, style=_BOLD)
                chars += [Char(":"), Char(" "), *inline_chars(cell, whole=True)]
                rows += wrap(chars, width, rest=(Span("  "),))
            rows.append(Row((Span("-" if self.column_rule.isascii() else "─", _FAINT),)))
        return rows


def _alignment(cell: str) -> str:
    cell = cell.strip()
    if cell.endswith(":"):
        return "center" if cell.startswith(":") else "right"
    return "left"


def _cells_of(cell: str) -> int:
    return max(
        cell_count("".join(char.text for char in inline_chars(part, whole=True)))
        for part in _BREAK.split(cell)
    )


def _cell_rows(cell: str, width: int, style: str) -> list[Row]:
    rows: list[Row] = []
    for part in _BREAK.split(cell):
        rows += wrap(inline_chars(part.strip(), whole=True, style=style), width)
    return rows or [Row(spans_of(()))]


def _joined(cells: Sequence[Sequence[Char]]) -> list[Char]:
    chars: list[Char] = []
    for index, cell in enumerate(cells):
        chars += [Char(" "), Char("|"), Char(" ")] if index else []
        chars += cell
    return chars
