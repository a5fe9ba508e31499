"""A request on its way from the front to a replica."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Forwarded:
    """A whole request for a replica; its body has arrived."""

    scope: dict[str, Any]
    """The parts of the ASGI scope that describe the request."""
    body: bytes
    conversation: str = ""
    """The key of its conversation; "": any replica can answer it equally well."""
    owner: str | None = None
    """The name of the key that the client has, for the log."""
    avoided: tuple[str, ...] = ()
    """Replicas that died while they had this request."""


_KEPT = ("type", "asgi", "http_version", "method", "scheme", "path", "raw_path", "query_string")


def passed_on(scope: Mapping[str, Any], request_id: bytes) -> dict[str, Any]:
    """Return of a scope what another process can read, with the id that the request has."""
    headers = [(bytes(k), bytes(v)) for k, v in scope["headers"] if k != b"x-request-id"]
    found = {name: scope[name] for name in _KEPT if name in scope}
    for name in ("client", "server"):
        found[name] = tuple(scope[name]) if scope.get(name) else None
    return {**found, "root_path": "", "headers": [*headers, (b"x-request-id", request_id)]}
