"""The installed package and its command line, as a person would use them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_support import COMMAND, ENVIRONMENT, Terminal, in_this_process

import akunu


@pytest.fixture(scope="module")
def ember() -> Iterator[akunu.Model]:
    with akunu.load() as model:
        yield model


@pytest.fixture
def run_akunu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """`run_akunu("chat", "--prompt", "Hi", stdin="text", LANG="C")`: what came of it.

    A process of its own starts where the environment is another one, or AKUNU_TEST_PROCESSES is
    set; otherwise it runs in this one, which takes a tenth of the time.
    """

    def run(
        *arguments: str, stdin: str | bytes = "", **environment: str
    ) -> subprocess.CompletedProcess[str]:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        # Run outside of the checkout, so that Python imports the installed package.
        if environment or os.environ.get("AKUNU_TEST_PROCESSES"):
            done = subprocess.run(
                [*COMMAND, *arguments],
                input=data,
                capture_output=True,
                cwd=tmp_path,
                env={**ENVIRONMENT, **environment},
                timeout=120,
            )
            code, said = done.returncode, [done.stdout, done.stderr]
        else:
            with monkeypatch.context() as patch:
                patch.chdir(tmp_path)
                for name in os.environ.keys() - ENVIRONMENT.keys():
                    patch.delenv(name)
                code, said = in_this_process(arguments, data)
        # Not text=True: that would take the test's word for the encoding.
        return subprocess.CompletedProcess(
            ["akunu", *arguments], code, *[each.decode() for each in said]
        )

    return run


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
