"""A program at a pseudo-terminal, and models that behave as a test needs it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, TextIO

import pyte

import akunu
from akunu.cli.main import main

CHECKOUT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "akunu"]
# What a person has: without the variables that a build machine may set (PYTHONUNBUFFERED, ...).
# Without the size of somebody else's terminal (pytest-xdist sets COLUMNS), without what conftest.py
# sets.
ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith("PYTHON") and name not in ("COLUMNS", "LINES", "OPENBLAS_NUM_THREADS")
}
EMBER = Path(akunu.__file__).parent / "data" / "ember-q8_0.gguf"

# Makes the terminal the process's own, so that Ctrl-C typed there is a signal.
OWN_TERMINAL = """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


def in_this_process(arguments: Sequence[str], stdin: bytes) -> tuple[int, list[bytes]]:
    """Run akunu with pipes as its streams, as a shell would; return its exit code, what it wrote.

    What it prints while it is imported for the first time is not seen: that is a process's own.
    """
    with ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(2)]
        read_end, write_end = os.pipe()
        writer = threading.Thread(target=_fill, args=(write_end, stdin))
        writer.start()
        stack.callback(writer.join)
        given = stack.enter_context(open(read_end, encoding="utf-8"))
        streams = [given, *(_writing(stack, file) for file in files)]
        before = sys.stdin, sys.stdout, sys.stderr
        sys.stdin, sys.stdout, sys.stderr = streams
        try:
            code = main(arguments)
        except SystemExit as left:  # as Typer does behind --show-completion
            code = int(left.code or 0)
        finally:
            sys.stdin, sys.stdout, sys.stderr = before
        for stream in streams[1:]:
            stream.flush()
        return code, [_all_of(file) for file in files]


def _fill(pipe: int, data: bytes) -> None:
    with suppress(BrokenPipeError), open(pipe, "wb") as file:
        file.write(data)


def _writing(stack: ExitStack, file: IO[bytes]) -> TextIO:
    return stack.enter_context(open(os.dup(file.fileno()), "w", encoding="utf-8", newline=""))


def _all_of(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


class Terminal:
    """A program at a pseudo-terminal: type into it, wait for what it shows."""

    def __init__(
        self,
        *arguments: str,
        stdout: int | None = None,
        command: list[str] | None = None,
        columns: int = 200,
        **environment: str,
    ) -> None:
        self._master, slave = pty.openpty()
        self.screen = pyte.Screen(columns, 24)
        self._emulator = pyte.ByteStream(self.screen)
        self.resize(columns)
        self.shown = ""
        self._read_to = 0
        # Line editing writes escape sequences that depend on the terminal: a dumb one has none.
        self._process = subprocess.Popen(
            [sys.executable, "-c", OWN_TERMINAL, *(command or COMMAND), *arguments],
            stdin=slave,
            stdout=slave if stdout is None else stdout,
            stderr=slave,
            env={**ENVIRONMENT, "TERM": "dumb", **environment},
        )
        os.close(slave)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def press(self, text: str) -> None:
        """Type a line and Enter, as a keyboard says it."""
        self.type(f"{text}\r")

    def paste(self, text: str) -> None:
        """Paste, as a terminal does that marks it."""
        self.type("\x1b[200~" + text.replace("\n", "\r") + "\x1b[201~")

    def resize(self, columns: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
        self.screen.resize(24, columns)

    def lines(self) -> list[str]:
        """The lines of the screen, without the empty ones at its end."""
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip("\n").split("\n")

    def see(self, pattern: str, timeout: float = 60) -> list[str]:
        """Wait until the screen's text, to its end, matches; return its lines."""
        deadline = time.monotonic() + timeout
        while not re.search(rf"(?:{pattern})\Z", "\n".join(self.lines())):
            text = "\n".join(self.lines())
            assert self._read(deadline - time.monotonic()), f"no {pattern!r} at the end of\n{text}"
        return self.lines()

    def wait_for(self, pattern: str, timeout: float = 60) -> str:
        """Wait until what is new matches; return the match and what was before it."""
        deadline = time.monotonic() + timeout
        while not (match := re.search(pattern, self.shown[self._read_to :])):
            assert self._read(deadline - time.monotonic()), f"no {pattern!r} in {self.shown!r}"
        start, self._read_to = self._read_to, self._read_to + match.end()
        return self.shown[start : self._read_to]

    def shows_keys(self) -> bool:
        """Whether the terminal shows what is typed, as a shell wants it."""
        return bool(termios.tcgetattr(self._master)[3] & termios.ECHO)

    def send_signal(self, number: int) -> None:
        self._process.send_signal(number)

    def exit_code(self, timeout: float = 60) -> int:
        deadline = time.monotonic() + timeout
        while self._read(deadline - time.monotonic()):
            pass
        return self._process.wait(max(1, deadline - time.monotonic()))

    def is_running(self) -> bool:
        return self._process.poll() is None

    def read_for(self, seconds: float) -> None:
        """Take in what comes within this time, or until it is over."""
        deadline = time.monotonic() + seconds
        while self._read(deadline - time.monotonic()):
            pass

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        os.close(self._master)

    def _read(self, timeout: float) -> bool:
        """Take in what comes next; False when it is over or nothing came."""
        if timeout <= 0 or not select.select([self._master], [], [], timeout)[0]:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:  # what Linux says when the other side has closed
            return False
        self._emulator.feed(data)
        self.shown += data.decode(errors="replace").replace("\r\n", "\n")
        return bool(data)


def ember_with_template(folder: Path, template: str) -> Path:
    """Return a copy of Ember that has another chat template, of the same length in the file."""
    with akunu.load() as model:
        old = (model.tokenizer.chat_template or "").encode()
    room = len(old) - len(template.encode()) - len("{#  #}")
    assert room >= 0
    data = EMBER.read_bytes()
    assert data.count(old) == 1
    path = folder / "ember.gguf"
    path.write_bytes(data.replace(old, template.encode() + b"{# " + b" " * room + b" #}"))
    return path


def ask(akunu: Terminal, question: str) -> str:
    """Type a line and return what is shown until the next prompt."""
    akunu.type(f"{question}\n")
    return akunu.wait_for(r"\n> ")
