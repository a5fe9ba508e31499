"""A reply at a terminal: its thoughts, then its answer."""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType
from typing import Any

from akunu.cli.reply.markdown_lines import ASCII, Symbols
from akunu.cli.reply.output import PlainOutput, ReplyOptions, ReplyOutput
from akunu.cli.reply.renderer import ReplyLook, ReplyRenderer
from akunu.cli.reply.thinking_view import FoldedThoughts, MarkedThoughts, Thoughts, VisibleThoughts
from akunu.cli.terminal import console
from akunu.cli.terminal.live_rows import LiveRows


class TerminalOutput:
    """Renders a reply to stdout, which is a terminal."""

    def __init__(self, options: ReplyOptions) -> None:
        """Nothing is written before the first part comes."""
        styles = console.shows_styles(sys.stdout)
        unicode = Symbols()
        shown = "".join((unicode.bullet, unicode.quote, unicode.rule, unicode.columns, "┼"))
        symbols = unicode if console.can_show(shown, sys.stdout) else ASCII
        # Without escape codes nothing on the screen can change, and bold looks like the rest.
        look = ReplyLook(markdown=options.markdown and styles, styles=styles, symbols=symbols)
        self._painter = LiveRows(console.put, console.terminal_size(sys.stdout)[0], styles=styles)
        self._answer = ReplyRenderer(self._painter, look, _size)
        self._was_stopped = False
        self._handler_before = _on_continue(self._note_stop)
        self._has_begun = False
        self._is_thinking = False
        self._thoughts: Thoughts
        if not styles:
            self._thoughts = MarkedThoughts(self._answer)
        elif options.show_thinking:
            self._thoughts = VisibleThoughts(self._painter, _size)
        else:
            self._thoughts = FoldedThoughts(self._painter, _size)

    def push(self, text: str, *, is_thought: bool, tokens: int, seconds: float) -> None:
        """Show what is certain of this part and those before."""
        text = _showable(text)
        if self._was_stopped:
            self._was_stopped = False
            self._painter.restart() if self._is_thinking else self._answer.restart()
        self._has_begun = True
        self._is_thinking = is_thought
        if is_thought:
            self._thoughts.push(text, tokens, seconds)
        else:
            self._thoughts.finish()
            self._answer.push(text)

    def finish(self) -> None:
        """Show what was held back; the cursor stays at the end."""
        self._thoughts.finish(is_cut=True)
        self._answer.finish()
        if self._handler_before is not None:
            _on_continue(self._handler_before)
            self._handler_before = None

    def _note_stop(self, number: int, frame: FrameType | None) -> None:
        """SIGCONT: Ctrl-Z gave the terminal to the shell, and the cursor is elsewhere now."""
        self._was_stopped = True

    def end_line(self) -> None:
        """End the last row, which is never ended before something follows."""
        console.put("\n")

    def hint(self, text: str) -> None:
        """Put it between the rows of the reply."""
        if self._is_thinking:
            self._thoughts.hint(f"akunu: {text}")
        else:
            self._answer.insert(f"akunu: {text}", console.DIM)

    def break_off(self) -> None:
        """Let the error's message begin on a new line."""
        self.finish()
        if self._has_begun:
            self.end_line()


def _on_continue(handler: Any) -> Any:
    """Set what SIGCONT does; return what it did, None where it cannot be set."""
    if threading.current_thread() is not threading.main_thread():
        return None
    return signal.signal(signal.SIGCONT, handler)


def _size() -> tuple[int, int]:
    return console.terminal_size(sys.stdout)


def _showable(text: str) -> str:
    """Return a text with what the terminal's encoding lacks escaped."""
    encoding = sys.stdout.encoding or "ascii"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def open_output(options: ReplyOptions) -> ReplyOutput:
    """Return what writes a reply to stdout."""
    if not console.is_terminal(sys.stdout):
        return PlainOutput(show_thinking=options.show_thinking)
    return TerminalOutput(options)
