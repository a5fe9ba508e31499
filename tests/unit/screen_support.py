"""A terminal's screen that tests can read, and replies rendered onto it."""

from __future__ import annotations

from collections.abc import Iterable

import pyte

from akunu.cli.reply.markdown_lines import Symbols
from akunu.cli.reply.renderer import ReplyLook as Look
from akunu.cli.reply.renderer import ReplyRenderer
from akunu.cli.terminal.live_rows import LiveRows as Painter

FULL = Look(symbols=Symbols())


class Screen:
    """A terminal in memory; what scrolls away is kept."""

    def __init__(self, width: int, height: int = 24) -> None:
        self.size = (width, height)
        self.written = ""
        self._screen = pyte.HistoryScreen(width, height, history=100_000, ratio=0.5)
        self._screen.set_mode(pyte.modes.LNM)  # a newline goes to the first column, as in a tty
        self._stream = pyte.Stream(self._screen)

    def put(self, text: str) -> None:
        self.written += text
        self._stream.feed(text)

    def resize(self, width: int) -> None:
        self.size = (width, self.size[1])
        self._screen.resize(columns=width)

    @property
    def lines(self) -> list[str]:
        """All that was ever shown, without spaces at the ends and empty lines at the end."""
        columns = self._screen.columns
        lines = [
            "".join(line[x].data for x in range(columns)).rstrip()
            for line in self._screen.history.top
        ]
        lines += [line.rstrip() for line in self._screen.display]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def style_of(self, text: str) -> tuple[bool, bool, str]:
        """Whether a text on the screen is bold, whether italic, and its colour."""
        for y, line in enumerate(self._screen.display):
            if text in line:
                cell = self._screen.buffer[y][line.index(text)]
                return cell.bold, cell.italics, cell.fg
        raise AssertionError(f"no {text!r} in {self.lines}")


def rendered(pieces: Iterable[str], width: int = 40, height: int = 24, look: Look = FULL) -> Screen:
    """The screen after a reply that came in these pieces."""
    screen = Screen(width, height)
    renderer = ReplyRenderer(
        Painter(screen.put, width, styles=look.styles), look, lambda: screen.size
    )
    for piece in pieces:
        renderer.push(piece)
    renderer.finish()
    return screen
