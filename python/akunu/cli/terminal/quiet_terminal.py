"""A terminal that hides keys typed while nothing reads them, and keeps them for the next entry."""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
from contextlib import suppress
from types import FrameType
from typing import Any, TextIO

from akunu.cli.terminal import console, interrupts

_PASTES_MARKED = "\x1b[?2004h"
_PASTES_UNMARKED = "\x1b[?2004l"


class QuietTerminal:
    """The terminal that is standard input; from `begin` to `end` it shows no key that is typed.

    Nor does it make lines of it, so that the keys are what an editor wants to read later; pastes
    are marked as such. Ctrl-C and Ctrl-Z do what they always do, and Ctrl-C drops no keys. Every
    way out leaves the terminal as it was, and Ctrl-Z lends it to the shell as it was, without what
    was typed for the chat: the shell would run it. `typed` has that.
    """

    def __init__(self) -> None:
        """Nothing happens before `begin`."""
        self._screen: TextIO = sys.stdout if console.is_terminal(sys.stdout) else sys.stderr
        self._keys = sys.stdin.fileno()
        self._before: list[Any] = []
        self._typed = b""
        self._handlers: dict[signal.Signals, Any] = {}

    def begin(self) -> None:
        """Make the terminal quiet.

        The caller has made sure that `end` is called, also where Ctrl-C comes meanwhile.
        """
        self._before = termios.tcgetattr(self._keys)
        self._handlers = {signal.SIGTSTP: signal.signal(signal.SIGTSTP, self._suspend)}
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            if signal.getsignal(number) is signal.SIG_DFL:
                self._handlers[number] = signal.signal(number, self._end)
        interrupts.before_exit = self._restore
        self._quieten()
        # The terminal was in line mode until now and has turned Enter (\r) into \n: turn it back.
        self._typed = self._pending().replace(b"\n", b"\r")

    def typed(self) -> bytes:
        """Return what was typed before `begin` or a Ctrl-Z and is no longer in the terminal, once.

        It comes before what the terminal has.
        """
        typed, self._typed = self._typed, b""
        return typed

    def end(self) -> None:
        """Leave the terminal as it was; before `begin` nothing happens."""
        if not self._before:
            return
        self._restore()
        interrupts.before_exit = None
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _quieten(self) -> None:
        quiet = termios.tcgetattr(self._keys)
        quiet[0] &= ~(termios.ICRNL | termios.INLCR | termios.IGNCR)  # Enter stays Enter
        quiet[3] &= ~(termios.ECHO | termios.ICANON)
        quiet[3] |= termios.ISIG | termios.NOFLSH
        quiet[6][termios.VMIN] = 1
        quiet[6][termios.VTIME] = 0
        termios.tcsetattr(self._keys, termios.TCSANOW, quiet)
        self._mark(_PASTES_MARKED)

    def _pending(self) -> bytes:
        """Return what can be read without waiting."""
        read = b""
        while select.select([self._keys], [], [], 0)[0]:
            data = os.read(self._keys, 65536)
            if not data:
                break
            read += data
        return read

    def _restore(self) -> None:
        with suppress(termios.error, OSError):  # the terminal may have gone
            termios.tcsetattr(self._keys, termios.TCSANOW, self._before)
        self._mark(_PASTES_UNMARKED)

    def _mark(self, sequence: str) -> None:
        # Not through the stream's buffer: a signal may have come in the middle of a write to it.
        with suppress(OSError, ValueError):
            os.write(self._screen.fileno(), sequence.encode())

    def _suspend(self, number: int, frame: FrameType | None) -> None:
        """SIGTSTP: stop, with the terminal as the shell wants it, and continue as before."""
        now = termios.tcgetattr(self._keys)
        if not now[3] & termios.ICANON:  # at a prompt the editor has read what was typed
            self._typed += self._pending()
        self._restore()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)  # here the process stops, until SIGCONT
        signal.signal(signal.SIGTSTP, self._suspend)
        termios.tcsetattr(self._keys, termios.TCSANOW, now)
        self._mark(_PASTES_MARKED)

    def _end(self, number: int, frame: FrameType | None) -> None:
        """SIGTERM, SIGHUP, SIGQUIT: end, as without a handler, with the terminal as it was."""
        self._restore()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def suspend() -> None:
    """Stop all of the job, as Ctrl-Z does where it is not a key."""
    os.kill(0, signal.SIGTSTP)
