"""The command line at a terminal: a conversation, typed."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import COMMAND, ENVIRONMENT

# So hot that the next token is nearly any: such a text goes on until the context is full.
LONG = ["--temperature", "50", "--seed", "3"]

# Makes the terminal the process's own, so that Ctrl-C typed there is a signal.
OWN_TERMINAL = """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


class Terminal:
    """A program at a pseudo-terminal: type into it, wait for what it shows."""

    def __init__(self, *arguments: str, stdout: int | None = None, **environment: str) -> None:
        self._master, slave = pty.openpty()
        self.shown = ""
        self._read_to = 0
        # Line editing writes escape sequences that depend on the terminal: a dumb one has none.
        self._process = subprocess.Popen(
            [sys.executable, "-c", OWN_TERMINAL, *COMMAND, *arguments],
            stdin=slave,
            stdout=slave if stdout is None else stdout,
            stderr=slave,
            env={**ENVIRONMENT, "TERM": "dumb", **environment},
        )
        os.close(slave)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def wait_for(self, pattern: str, timeout: float = 60) -> str:
        """Wait until what is new matches; return the match and what was before it."""
        deadline = time.monotonic() + timeout
        while not (match := re.search(pattern, self.shown[self._read_to :])):
            assert self._read(deadline - time.monotonic()), f"no {pattern!r} in {self.shown!r}"
        start, self._read_to = self._read_to, self._read_to + match.end()
        return self.shown[start : self._read_to]

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
        self.shown += data.decode(errors="replace").replace("\r\n", "\n")
        return bool(data)


@pytest.fixture
def terminal() -> Iterator[Any]:
    opened: list[Terminal] = []

    def start(*arguments: str, **options: Any) -> Terminal:
        opened.append(Terminal(*arguments, **options))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


def test_a_conversation_has_a_banner_replies_and_an_end(terminal: Any) -> None:
    akunu = terminal("chat")
    banner = akunu.wait_for(r"(?m)^.*\n> ")
    assert "Ember, a small demonstration model" in banner
    assert "/exit" in banner
    assert len(banner.splitlines()) == 2
    akunu.type("What is 12 + 7?\n")
    reply = akunu.wait_for(r"\n> ")
    assert "19" in reply
    akunu.type("/exit\n")
    assert akunu.exit_code() == 0


def test_the_history_reaches_the_model(terminal: Any) -> None:
    akunu = terminal("chat", "--context", "96")
    akunu.wait_for("> ")
    for _ in range(20):
        akunu.type("What is 12 + 7?\n")
        if "context" in akunu.wait_for(r"\n> "):
            break
    else:
        pytest.fail("twenty turns do not fill 96 positions: the history is lost")
    line = akunu.shown.splitlines()[-2]
    assert "/clear" in line
    assert "--context" in line
    akunu.type("/clear\n")
    akunu.wait_for("new conversation\n> ")
    akunu.type("What is 12 + 7?\n")
    assert "19" in akunu.wait_for(r"\n> ")


def test_ctrl_d_leaves_with_0(terminal: Any) -> None:
    akunu = terminal("chat")
    akunu.wait_for("> ")
    akunu.type("\x04")
    assert akunu.exit_code() == 0


def test_ctrl_c_at_the_prompt_leaves_with_130(terminal: Any) -> None:
    akunu = terminal("chat")
    akunu.wait_for("> ")
    # Readline shows its prompt just before it listens, and loses an interrupt in between; a person
    # who presses Ctrl-C within that moment presses it again.
    for _ in range(10):
        if akunu.is_running():
            akunu.type("\x03")
            akunu.read_for(seconds=2)
    assert akunu.exit_code() == 130
    assert "Traceback" not in akunu.shown


def test_ctrl_c_stops_a_reply_and_stays(terminal: Any) -> None:
    akunu = terminal("chat", *LONG, AKUNU_CPU_ISA="generic")
    akunu.wait_for("> ")
    akunu.type("The\n")
    akunu.wait_for(r"The\n.")  # the echo, and the first of the reply
    akunu.type("\x03")
    akunu.wait_for("akunu: stopped\n> ", timeout=10)
    akunu.type("/exit\n")
    assert akunu.exit_code() == 0
    assert "Traceback" not in akunu.shown


def test_empty_lines_and_unknown_commands_reach_no_model(terminal: Any) -> None:
    akunu = terminal("chat")
    akunu.wait_for("> ")
    akunu.type("\n")
    akunu.wait_for("> ")
    akunu.type("/quit\n")
    assert "no command /quit" in akunu.wait_for(r"\n> ")


def test_with_stdout_elsewhere_only_replies_go_there(terminal: Any) -> None:
    read_end, write_end = os.pipe()
    akunu = terminal("chat", stdout=write_end)
    os.close(write_end)
    akunu.wait_for("> ")
    akunu.type("What is 12 + 7?\n")
    with os.fdopen(read_end) as replies:
        akunu.wait_for("> ")
        akunu.type("/exit\n")
        assert akunu.exit_code() == 0
        text = replies.read()
    assert "19" in text
    assert ">" not in text
    assert "19" not in akunu.shown


def test_colours_come_at_a_terminal_and_no_color_is_respected(terminal: Any) -> None:
    coloured = terminal("chat", "none.gguf", "--prompt", "x", TERM="xterm-256color")
    assert coloured.exit_code() == 1
    assert "\x1b[" in coloured.shown
    plain = terminal("chat", "none.gguf", "--prompt", "x", TERM="xterm-256color", NO_COLOR="1")
    assert plain.exit_code() == 1
    assert "akunu: error: " in plain.shown
    assert "\x1b[3" not in plain.shown  # the codes of colours


def test_a_terminal_as_stdin_does_not_make_one_answer_wait(terminal: Any) -> None:
    akunu = terminal("chat", "--prompt", "What is 12 + 7?")
    assert akunu.exit_code() == 0
    assert "19" in akunu.shown
    assert "> " not in akunu.shown
