"""The code in documents: what a page's blocks are, and how they are run.

A block runs, unless `<!-- not run: needs a network -->` stands on the line before it.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cli_support import CHECKOUT

BIN = Path(sys.executable).parent
FENCE = re.compile(
    r"^(?:[ ]*<!-- not run: (?P<reason>[^\n]+) -->\n)?"
    r"(?P<indent>[ ]*)```(?P<language>[^\n]*)\n(?P<code>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
# What a block that nobody runs must not begin a line with.
PROGRAMS = "akunu|pip|python3?|pytest|curl|cmake|ninja|mkdocs"
COMMANDS = re.compile(rf"^\s*\$? *({PROGRAMS}) ", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A block of a page, the line where it begins, and why it is not run."""

    page: str
    line: int
    language: str
    code: str
    reason: str | None

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def all_pages() -> list[str]:
    """Every page, as a path in the checkout."""
    own = ["README.md", "CHANGELOG.md", "SECURITY.md"]
    return own + sorted(str(path.relative_to(CHECKOUT)) for path in CHECKOUT.glob("docs/**/*.md"))


@cache
def blocks_of(page: str) -> tuple[Block, ...]:
    """All blocks of a page, in order."""
    text = (CHECKOUT / page).read_text()
    found = []
    for match in FENCE.finditer(text):
        code = re.sub(rf"^{match['indent']}", "", match["code"], flags=re.MULTILINE)
        line = text.count("\n", 0, match.start("language")) + 1
        found.append(Block(page, line, match["language"], code, match["reason"]))
    return tuple(found)


def running(page: str, *languages: str) -> list[Block]:
    """The blocks of a page in one of the languages that run."""
    return [block for block in blocks_of(page) if block.language in languages and not block.reason]


def environment(folder: Path) -> dict[str, str]:
    """What commands run in: the installed `akunu`, and `folder` as home."""
    return {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(folder)}


def a_free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Session:
    """A page's `console` blocks at one terminal: servers go on while later commands run.

    A server listens at a port of this session in place of the page's 8080.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = str(a_free_port())
        self._servers: list[subprocess.Popen[str]] = []
        self._readers: list[threading.Thread] = []

    def run(self, block: Block) -> None:
        """Run the commands of a block; what they wrote has the lines that the page shows."""
        for part in re.split(r"^\$ ", block.code, flags=re.MULTILINE)[1:]:
            lines = part.rstrip("\n").split("\n")
            n_lines = 1
            while lines[n_lines - 1].endswith("\\"):
                n_lines += 1
            command = "\n".join(lines[:n_lines]).replace("8080", self._port)
            is_server = shlex.split(command, comments=True)[:2] == ["akunu", "serve"]
            written = self._serve(command) if is_server else self._finish(command)
            for expected in filter(None, lines[n_lines:]):
                pattern = re.escape(expected.replace("8080", self._port)).replace("…", ".*")
                assert re.search(f"^{pattern}$", written, re.MULTILINE), (
                    f"{block}: {expected!r} is not in what {command!r} wrote:\n{written}"
                )

    def _finish(self, command: str) -> str:
        done = subprocess.run(
            ["bash", "-eu", "-o", "pipefail", "-c", command],
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self._environment(),
            timeout=120,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    def _serve(self, command: str) -> str:
        """Start a server, and return what it writes until it is ready."""
        server = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=self._environment(),
        )
        self._servers.append(server)
        assert server.stderr is not None
        written = ""
        for line in server.stderr:
            written += line
            if "akunu: serving" in line:
                # The rest is read as well, so that the server never waits for its reader.
                reader = threading.Thread(target=server.stderr.read)
                reader.start()
                self._readers.append(reader)
                return written
        raise AssertionError(f"{command!r} ended:\n{written}")

    def _environment(self) -> dict[str, str]:
        return environment(self._folder) | {"AKUNU_SERVE_PORT": self._port}

    def close(self) -> None:
        """End the servers."""
        for server in self._servers:
            server.send_signal(signal.SIGTERM)
        for reader in self._readers:
            reader.join(60)
        for server in self._servers:
            server.wait(60)
            assert server.stderr is not None
            server.stderr.close()
