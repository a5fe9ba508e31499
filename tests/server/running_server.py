"""A server with settings of a test's own, and a client of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import httpx

from akunu.server import ServedModels, ServerSettings, create_app
from akunu.server.run import serve_in_thread

Serving = Callable[..., AbstractContextManager[httpx.Client]]


@contextmanager
def running(models: ServedModels | None = None, **settings: Any) -> Iterator[httpx.Client]:
    """A client of a server with these settings."""
    chosen = ServerSettings(**{"port": 0, **settings})
    app = create_app(chosen, models)
    with (
        serve_in_thread(app, chosen) as address,
        httpx.Client(base_url=address, timeout=60) as client,
    ):
        yield client
