"""What the routes of one application share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from starlette.requests import Request

from akunu.server.models import ServedModels
from akunu.server.settings import ServerSettings


@dataclass(slots=True)
class ServerState:
    """The settings and the models of one application, and how it is."""

    settings: ServerSettings
    models: ServedModels
    is_ready: bool = False
    """Whether it has begun, and is not being stopped."""


def state_of(request: Request) -> ServerState:
    """Return the state of the application that a request came to."""
    return cast(ServerState, request.app.state.akunu)
