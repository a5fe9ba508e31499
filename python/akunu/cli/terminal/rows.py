"""Text in rows that fit a terminal: broken at words, wide characters counted as two cells.

>>> [row.text for row in wrap("the quick brown fox", 10)]
['the quick', 'brown fox']
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

_TAB_STOP = 8
_LEAST_ROOM = 8  # cells: where a prefix leaves less, the row does without it

# A row should not begin with these, though the character before is wide and could end one.
_CLINGING = frozenset(",.!?:;)]}%'\"，。、！？：；）】》」』〉”’…·ー")

_JOINING = frozenset("\N{ZERO WIDTH JOINER}([{（【《「『〈“‘")
_MODIFIERS = frozenset(map(chr, range(0x1F3FB, 0x1F400)))  # colours of skin

_SIMPLE = re.compile(r"[\x20-\x7e]*")  # one cell each, in every terminal


class Char(NamedTuple):
    """A character, how it looks (numbers of an SGR sequence, "" is plain), where it comes from."""

    text: str
    style: str = ""
    source: int = 0


class Span(NamedTuple):
    """A piece of a row in one style."""

    text: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a terminal.

    One that `flows` may be longer than the terminal is wide: the terminal breaks it, and who
    copies it gets one line.
    """

    spans: tuple[Span, ...] = ()
    flows: bool = False
    source_end: int = 0
    """Where in its source the row ends."""

    @property
    def text(self) -> str:
        """The row without its styles."""
        return "".join(span.text for span in self.spans)

    def height(self, width: int, column: int = 0) -> int:
        """Return how many rows of the screen it takes when it begins in this column."""
        return 1 + end_of(self.text, width, column)[0]


@lru_cache(maxsize=4096)
def cells_of(character: str) -> int:
    """Return how many cells of a terminal a character takes: 0, 1 or 2."""
    from rich.cells import get_character_cell_size

    # A selector for an emoji's coloured form widens the character before it, in some terminals.
    return 1 if character == "\N{VARIATION SELECTOR-16}" else get_character_cell_size(character)


def cell_count(text: str) -> int:
    """Return how many cells a text without tabs takes; at least, for emoji made of several.

    >>> cell_count("日本")
    4
    """
    return len(text) if is_simple(text) else sum(map(cells_of, text))


def is_simple(text: str) -> bool:
    """Whether every terminal gives each character one cell."""
    return _SIMPLE.fullmatch(text) is not None


def end_of(text: str, width: int, column: int = 0) -> tuple[int, int]:
    """Return the row and column where the cursor is after a text that the terminal breaks."""
    if is_simple(text):
        cells = column + len(text)
        row = max(0, cells - 1) // width  # a full row leaves the cursor on it
        return row, cells - row * width
    row = 0
    for character in text:
        if character == "\t":
            column = min(width - 1, (column // _TAB_STOP + 1) * _TAB_STOP)
            continue
        cells = cells_of(character)
        if column + cells > width:
            row, column = row + 1, 0
        column += cells
    return row, column


def chars_of(text: str, style: str = "") -> list[Char]:
    """Return the characters of a text, each with its place in it."""
    return [Char(character, style, index) for index, character in enumerate(text)]


def spans_of(chars: Iterable[Char]) -> tuple[Span, ...]:
    """Join neighbours of the same style."""
    spans: list[Span] = []
    texts: list[str] = []
    style = ""
    for text, its_style, _ in chars:
        if its_style != style and texts:
            spans.append(Span("".join(texts), style))
            texts = []
        style = its_style
        texts.append(text)
    if texts:
        spans.append(Span("".join(texts), style))
    return tuple(spans)


def wrap(
    text: str | Sequence[Char],
    width: int,
    *,
    first: Sequence[Span] = (),
    rest: Sequence[Span] = (),
    column: int = 0,
) -> list[Row]:
    """Break a line into rows of at most `width` cells.

    `first` is what the first row begins with and `rest` all others; `column` is where the first
    row begins. Spaces at a break are left out, and so are those at the end. No text, no row.
    """
    chars = chars_of(text) if isinstance(text, str) else text
    return _Wrapper(width, tuple(first), tuple(rest), column).rows(chars)


def wrap_lines(text: str, width: int, *, indent: str = "") -> str:
    """Break every line of a text; what does not fit continues after `indent`.

    >>> wrap_lines("a note that is long", 12, indent="  ")
    'a note that\\n  is long'
    """
    rest = (Span(indent),) if indent else ()
    lines = []
    for line in text.split("\n"):
        rows = wrap(line, width, rest=rest)
        lines.append("\n".join(row.text for row in rows))
    return "\n".join(lines)


def ready_to_show(text: str, width: int) -> int:
    """Return how much of an unfinished line can be shown: up to the last place for a break.

    More where what follows that place is longer than a row.
    """
    end = len(text)
    while end and not _is_space(text[end - 1]):
        # At the very end, the next character may cling to the last one.
        if end < len(text) and _may_break(text[end - 1], text[end]):
            break
        end -= 1
    return end if cell_count(text[end:]) < width else len(text)


class _Wrapper:
    def __init__(
        self, width: int, first: tuple[Span, ...], rest: tuple[Span, ...], column: int
    ) -> None:
        self._width = max(1, width)
        self._rest = self._fitting(rest)
        self._prefix = self._fitting(first)
        self._column = column
        self._start = column + _cells(self._prefix)  # where text begins in this row
        self._used = self._start
        self._row: list[Char] = []
        self._rows: list[Row] = []

    def rows(self, chars: Sequence[Char]) -> list[Row]:
        space: list[Char] = []
        word: list[Char] = []
        for char in chars:
            if _is_space(char.text):
                self._put(space, word)
                if word:
                    space, word = [], []
                space.append(Char(" " * 4, char.style, char.source) if char.text == "\t" else char)
                continue
            if word and _may_break(word[-1].text, char.text):
                self._put(space, word)
                space, word = [], []
            word.append(char)
        self._put(space, word)
        if self._row:
            self._end_row()
        return self._rows

    def _put(self, space: list[Char], word: list[Char]) -> None:
        if not word:
            return
        gap = sum(cell_count(char.text) for char in space)
        needed = sum(cells_of(char.text) for char in word)
        if self._used + gap + needed <= self._width:
            self._row += space + word
            self._used += gap + needed
            return
        if self._row or self._column:
            self._end_row()
        for char in word:
            cells = cells_of(char.text)
            if self._used + cells > self._width and self._used > self._start:
                self._end_row()
            self._row.append(char)
            self._used += cells

    def _end_row(self) -> None:
        end = self._row[-1].source + 1 if self._row else 0
        self._rows.append(Row((*self._prefix, *spans_of(self._row)), source_end=end))
        self._row = []
        self._prefix = self._rest
        self._column = 0
        self._start = self._used = _cells(self._prefix)

    def _fitting(self, prefix: tuple[Span, ...]) -> tuple[Span, ...]:
        return prefix if self._width - _cells(prefix) >= min(_LEAST_ROOM, self._width) else ()


def _cells(spans: Iterable[Span]) -> int:
    return sum(cell_count(span.text) for span in spans)


def _is_space(character: str) -> bool:
    """Whether a row may end at this character, and then without it."""
    return character.isspace() and character != "\N{NO-BREAK SPACE}"


def _may_break(before: str, after: str) -> bool:
    """Whether a row may end between two characters of a word: next to wide ones."""
    if after in _CLINGING or before in _JOINING or cells_of(after) == 0 or after in _MODIFIERS:
        return False
    return cells_of(before) == 2 or cells_of(after) == 2
