"""Progress on stderr, for a person at a terminal."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

from akunu.cli.terminal import console
from akunu.cli.terminal.rows import cell_count

_PATIENCE_SECONDS = 0.5  # shorter waits need no word
_SECONDS_BETWEEN = 0.2


class Progress:
    """Shows a line while its `with` block lasts, once that takes longer than half a second.

    On a terminal only: the line is written over again and again, and taken away at the end. A
    terminal that cannot do that (TERM=dumb) shows it once.

    >>> with Progress(lambda: "loading"):
    ...     pass
    """

    def __init__(self, describe: Callable[[], str], *, shows_seconds: bool = True) -> None:
        """`describe` returns the line's text; another thread calls it."""
        self._describe = describe
        self._shows_seconds = shows_seconds
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._shown = 0  # cells of the line
        self._writing = threading.Lock()

    def __enter__(self) -> Progress:
        """Start to wait."""
        if console.is_terminal(sys.stderr):
            self._thread = threading.Thread(target=self._run, name="akunu-progress", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Take the line away."""
        self.stop()

    def stop(self) -> None:
        """Take the line away; stopping twice is fine."""
        self._over.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()

    def above(self, write: Callable[[], None]) -> None:
        """Have something written to the same terminal, the line out of its way."""
        with self._writing:
            self._erase()
            write()

    def _run(self) -> None:
        if self._over.wait(_PATIENCE_SECONDS):
            return
        started = time.monotonic() - _PATIENCE_SECONDS
        if os.environ.get("TERM", "dumb") == "dumb":
            self._print(f"akunu: {self._describe()} ...\n")
            return
        try:
            while True:
                text = f"akunu: {self._describe()}"
                if self._shows_seconds:
                    text += f", {time.monotonic() - started:.0f} s"
                text = _cut(console.for_terminal(text), _columns() - 1)
                shown = cell_count(text)
                with self._writing:
                    self._print(f"\r{text}{' ' * (self._shown - shown)}")
                    self._shown = shown
                if self._over.wait(_SECONDS_BETWEEN):
                    return
        finally:
            with self._writing:
                self._erase()

    def _erase(self) -> None:
        if self._shown:
            self._print(f"\r{' ' * min(self._shown, _columns() - 1)}\r")
            self._shown = 0

    @staticmethod
    def _print(text: str) -> None:
        try:
            sys.stderr.write(text)
            sys.stderr.flush()
        except (OSError, ValueError):  # the terminal went away; no one waits any more
            pass


def _columns() -> int:
    return console.terminal_size(sys.stderr)[0]


def _cut(text: str, width: int) -> str:
    """Return as much of a text's beginning as has room on one row."""
    while text and cell_count(text) > width:
        text = text[:-1]
    return text


@contextmanager
def counted(doing: str, total: int, things: str) -> Iterator[Callable[[int, int], None]]:
    """Show how many of a number of things are done; yields what is to be called with that.

    >>> with counted("ranking", 3, "documents") as count:
    ...     count(1, 3)
    """
    done = 0

    def count(n_done: int, _: int) -> None:
        nonlocal done
        done = n_done

    with Progress(lambda: f"{doing} {done} of {total} {things}"):
        yield count
