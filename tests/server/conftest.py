"""A server on loopback, as clients meet it: uvicorn, the packaged model, a port of its own."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from running_server import THINKING, Serving, running, running_with_template

sys.path.append(str(Path(__file__).parents[1] / "e2e"))  # edited_model
sys.path.append(str(Path(__file__).parents[1] / "models"))  # image_models


def _threads_besides(others: list[threading.Thread]) -> list[str]:
    names = [each.name for each in threading.enumerate() if each not in others]
    return [name for name in names if not name.startswith(("asyncio_", "AnyIO"))]


@pytest.fixture(scope="session")
def client() -> Iterator[httpx.Client]:
    """A client of a server with the packaged model."""
    before = threading.enumerate()
    with running() as client:
        assert client.get("/health").json() == {"status": "ok"}
        yield client
    # Workers of executors that other tests used end by themselves, loaders soon after the server.
    begun = time.monotonic()
    while left := _threads_besides(before):
        assert time.monotonic() - begun < 60, left
        time.sleep(0.01)


@pytest.fixture
def serving() -> Serving:
    """`with serving(api_keys=["a"]) as client`: another server, with settings."""
    return running


@pytest.fixture(scope="session")
def thinking_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of a server whose model's template lets it think."""
    path = tmp_path_factory.mktemp("thinker") / "thinker.gguf"
    with running_with_template(path, THINKING) as client:
        yield client
