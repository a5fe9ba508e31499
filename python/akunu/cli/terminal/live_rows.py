"""The last rows that were written to a terminal, which may still change; older rows never do."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from akunu.cli.terminal.rows import Row, Span, cell_count, end_of, is_simple

_UP = "\x1b[{}A"
_RIGHT = "\x1b[{}C"
_ERASE_BELOW = "\x1b[J"


class LiveRows:
    """Shows rows, and rewrites as few of them as it can when they change.

    `show` gives all rows that may still change; `settle` says that the first of them are final.
    The cursor stays at the end of the last row, so that rows that only grow, as text does that
    comes word by word, are just written on: then no escape codes are written but those of styles.
    """

    def __init__(self, put: Callable[[str], None], width: int, *, styles: bool = True) -> None:
        """`put` writes to the terminal at once; `styles`: whether escape codes are wanted."""
        self._put = put
        self._styles = styles
        self.width = width
        self._shown: list[Row] = []
        self._newlines = 0  # to be written before the next row
        self.column = 0
        """Where the first row begins: not at 0 after `leave_row`."""

    @property
    def shown(self) -> Sequence[Row]:
        """The rows that may still change."""
        return self._shown

    @property
    def newlines(self) -> int:
        """How many line ends wait for something to follow them."""
        return self._newlines

    def show(self, rows: Sequence[Row]) -> None:
        """Let these be the rows that may change, in place of those that were."""
        rows = list(rows)
        if rows == self._shown:
            return
        out = self._changes(rows)
        # Noted before it is written: if Ctrl-C interrupts the write, the text is not written twice.
        self._shown, self._newlines = rows, 0
        if out:
            self._put(out)

    def _changes(self, rows: Sequence[Row]) -> str:
        """Return what makes the screen show `rows`."""
        if not self._shown:
            return "\n" * self._newlines + self._rendered(rows)
        same = 0
        for old, new in zip(self._shown, rows, strict=False):
            if old.spans != new.spans or old.flows != new.flows:
                break
            same += 1
        last = len(self._shown) - 1
        if same > last:
            return "\n" + self._rendered(rows[same:]) if rows[same:] else ""
        if same == last and same < len(rows) and (more := _added(self._shown[same], rows[same])):
            return self._rendered([Row(more), *rows[same + 1 :]])
        return self._redrawn(rows, same)

    def settle(self, count: int | None = None) -> None:
        """Never change the first rows again (None: all); a new row follows what is settled."""
        if count is None or count >= len(self._shown):
            self._newlines += 1 if self._shown else 0
            self._shown = []
        else:
            self._shown = self._shown[count:]
        self.column = 0

    def skip_line(self) -> None:
        """Leave an empty line before what comes next; not before anything was shown."""
        self._newlines += 1

    def end_row(self) -> None:
        """Begin a new row after what `leave_row` has settled."""
        if self.column:
            self.column = 0
            self._newlines += 1

    def restart(self) -> None:
        """Settle what was shown: the cursor is at the beginning of a row far from it."""
        self._shown = []
        self._newlines = self.column = 0

    def leave_row(self, width: int) -> None:
        """Settle all rows where the cursor is, on a terminal that has another width now."""
        column = self.column if len(self._shown) == 1 else 0
        last = self._shown[-1] if self._shown else Row()
        if self._shown:
            self.column = end_of(last.text, self.width, column)[1]
        self.width = width
        self._shown = []
        if self.column >= width:
            self.column = 0
            self._newlines += 1

    def _redrawn(self, rows: Sequence[Row], same: int) -> str:
        """Return what makes the screen show `rows`, of which the first ones are there already."""
        if same == len(rows) and same:
            same -= 1  # the cursor has to go to the end of a row that stays
        up = sum(self._height(self._shown, index) for index in range(same, len(self._shown))) - 1
        start = column = self.column if same == 0 else 0
        kept: tuple[Span, ...] = ()
        if same < len(rows) and not rows[same].flows and not self._shown[same].flows:
            kept = _common(self._shown[same].spans, rows[same].spans)
            column += cell_count("".join(span.text for span in kept))
        if column >= self.width:  # beyond the last column the cursor cannot be put
            column, kept = start, ()
        out = (_UP.format(up) if up else "") + "\r" + (_RIGHT.format(column) if column else "")
        out += _ERASE_BELOW
        if same == len(rows):
            return out
        return out + self._rendered([Row(rows[same].spans[len(kept) :]), *rows[same + 1 :]])

    def _height(self, rows: Sequence[Row], index: int) -> int:
        return rows[index].height(self.width, self.column if index == 0 else 0)

    def _rendered(self, rows: Sequence[Row]) -> str:
        return "\n".join("".join(map(self._styled, row.spans)) for row in rows)

    def _styled(self, span: Span) -> str:
        if span.style and span.text and self._styles:
            return f"\x1b[{span.style}m{span.text}\x1b[0m"
        return span.text


def _added(old: Row, new: Row) -> tuple[Span, ...]:
    """Return what `new` has after all of `old`; () where it does not begin with it."""
    count = len(old.spans)
    if old.flows != new.flows or len(new.spans) < count:
        return ()
    if count == 0:
        return new.spans
    if new.spans[: count - 1] != old.spans[: count - 1]:
        return ()
    before, after = old.spans[-1], new.spans[count - 1]
    if before.style != after.style or not after.text.startswith(before.text):
        return ()
    return (Span(after.text[len(before.text) :], after.style), *new.spans[count:])


def _common(old: Sequence[Span], new: Sequence[Span]) -> tuple[Span, ...]:
    """Return the spans that both begin with and that every terminal shows equally wide."""
    count = 0
    for before, after in zip(old, new, strict=False):
        if before != after or not is_simple(before.text):
            break
        count += 1
    return tuple(new[:count])
