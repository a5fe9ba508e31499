"""A server with settings of a test's own, and a client of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import httpx

import akunu
from akunu.server import ServedModels, ServerSettings, create_app
from akunu.server.run import serve_in_thread
from akunu.templates.chat_template import CHATML

EMBER = Path(akunu.__file__).parent / "data" / "ember-q8_0.gguf"
# Ember's own form of a conversation, with a switch and an opening as newer templates have them.
THINKING = (
    CHATML
    + "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n"
    "{% else %}<think>\n{% endif %}"
)

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


@contextmanager
def running_with_template(path: Path, template: str) -> Iterator[httpx.Client]:
    """A client of a server whose model, written to `path`, is Ember with another chat template."""
    from edited_model import edited

    edited(EMBER, path, {"tokenizer.chat_template": template})
    with running(ServedModels([str(path)])) as client:
        yield client
