"""The installed package and its command line, as a person would use them."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_support import COMMAND, ENVIRONMENT, Terminal

import akunu
from akunu.cli.main import main

# Nor is a person's Ctrl-C ignored, as it is in what a script has put into the background; programs
# inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module")
def ember() -> Iterator[akunu.Model]:
    with akunu.load() as model:
        yield model


@pytest.fixture
def run_akunu(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """`run_akunu("chat", "--prompt", "Hi", stdin="text", LANG="C")`: the finished process."""

    def run(
        *arguments: str, stdin: str | bytes = "", **environment: str
    ) -> subprocess.CompletedProcess[str]:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        done = subprocess.run(
            [*COMMAND, *arguments],
            input=data,
            capture_output=True,
            cwd=tmp_path,  # not the checkout: what is imported is what is installed
            env={**ENVIRONMENT, **environment},
            timeout=120,
        )
        # Not text=True: that would take the test's word for the encoding.
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )

    return run


@pytest.fixture
def call_akunu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """What `run_akunu` does, in this process: for what needs none of its own, and much sooner."""

    def call(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(3)]
        streams[0].buffer.write(stdin.encode())
        streams[0].seek(0)
        with monkeypatch.context() as patch:
            for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
                patch.setattr(sys, name, stream)
            patch.chdir(tmp_path)
            code = main(arguments)
        for stream in streams[1:]:
            stream.flush()
        said = [stream.buffer.getvalue().decode() for stream in streams[1:]]  # type: ignore[attr-defined]
        return subprocess.CompletedProcess(["akunu", *arguments], code, *said)

    return call


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    """`terminal("chat", TERM="xterm")`: akunu at a terminal of its own, its state in `tmp_path`."""
    opened: list[Terminal] = []

    def start(*arguments: str, **options: Any) -> Terminal:
        options.setdefault("XDG_STATE_HOME", str(tmp_path / "state"))
        opened.append(Terminal(*arguments, **options))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


@pytest.fixture
def chat(terminal: Any) -> Any:
    """A conversation with Ember, at its first prompt."""
    akunu = terminal("chat")
    akunu.wait_for("> ")
    return akunu
