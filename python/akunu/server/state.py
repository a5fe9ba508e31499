"""What the routes of one application share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from starlette.requests import Request

from akunu.grammar.separate_process import Workers
from akunu.server.catalogue.pulls import Pulls
from akunu.server.http.access_log import AccessEntry
from akunu.server.journal.journal import Journal
from akunu.server.metrics import Metrics
from akunu.server.models import ServedModels
from akunu.server.settings import ServerSettings
from akunu.server.stored.store import MemoryStore, ObjectStore


@dataclass(slots=True)
class ServerState:
    """The settings and the models of one application, and how it is."""

    settings: ServerSettings
    models: ServedModels
    metrics: Metrics
    workers: Workers
    """The processes in which grammars of requests are compiled."""
    journal: Journal | None = None
    store: ObjectStore = field(default_factory=MemoryStore)
    """What clients have stored."""
    pulls: Pulls = field(default_factory=Pulls)
    is_ready: bool = False
    """Whether it has begun, and is not being stopped."""


def entry_of(request: Request) -> AccessEntry:
    """Return what is noted of a request."""
    return cast(AccessEntry, request.scope["state"]["akunu_entry"])


def state_of(request: Request) -> ServerState:
    """Return the state of the application that a request came to."""
    return cast(ServerState, request.app.state.akunu)
