"""Tests of models by name: a hub on loopback, and a home of their own."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hub_server import Hub, serve
from hub_support import EMBER, Done
from tqdm import tqdm

from akunu.cli.main import main
from akunu.hub import other_programs

# Progress bars of downloads start no thread that watches them: it would outlive these tests, and
# tests of the server in the same process count threads.
tqdm.monitor_interval = 0

NO_USERS_SETTINGS = ("HF_", "HUGGING", "XDG_", "OLLAMA_", "TRANSFORMERS_OFFLINE")


@pytest.fixture(scope="session")
def running_hub() -> Iterator[Hub]:
    hub, server = serve()
    yield hub
    server.shutdown()
    server.server_close()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's home with nothing in it; nothing of the real one is seen or touched."""
    folder = tmp_path / "home"
    folder.mkdir()
    for name in list(os.environ):
        if name.startswith(NO_USERS_SETTINGS) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setattr(other_programs, "_SERVICE", folder / "no-service")
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def hub(running_hub: Hub, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """The hub, empty, as HF_ENDPOINT; the cache is below `home`.

    huggingface_hub reads its variables once, when it is imported, perhaps by another test.
    """
    from huggingface_hub import close_session, constants

    running_hub.reset()
    address = running_hub.address
    cache = home / ".cache" / "huggingface"
    monkeypatch.setenv("HF_ENDPOINT", address)
    monkeypatch.setattr(constants, "ENDPOINT", address)
    template = address + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache / "hub"))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(cache / "token"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    yield running_hub
    close_session()


@pytest.fixture(scope="session")
def ember() -> bytes:
    return EMBER.read_bytes()


@pytest.fixture
def run_akunu(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Done]:
    """`run_akunu("list", "--json")`: the command in this process, which is quicker."""

    def run(*arguments: str, stdin: str = "") -> Done:
        capsys.readouterr()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = main(arguments)
        return Done(code, *capsys.readouterr())

    return run


@pytest.fixture
def start_akunu(home: Path, tmp_path: Path) -> Callable[..., Done]:
    """`start_akunu("list", HF_HOME="...")`: a process of its own, which reads its variables."""

    def start(*arguments: str, **environment: str) -> Done:
        done = subprocess.run(
            [sys.executable, "-m", "akunu", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, **environment},
            timeout=120,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return start
