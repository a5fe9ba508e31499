"""What the headers of a request say about its answer in the journal."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request

from akunu.server.http.errors import invalid
from akunu.server.http.json_words import as_json
from akunu.server.journal.journal import Journal
from akunu.server.state import entry_of

KEY: Final = "idempotency-key"
LAST_EVENT: Final = "last-event-id"
_KEY: Final = re.compile("[!-~]{1,255}")
_NUMBER: Final = re.compile("[0-9]{1,9}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Idempotency:
    """A request whose answer is journalled."""

    journal: Journal
    name: tuple[str, str, str]
    """The client, the route and the key."""
    body: Callable[[], Awaitable[bytes]]
    n_events: int | None
    """How many events the client has already; None: it does not say."""


def idempotency_of(request: Request, journal: Journal | None) -> Idempotency | None:
    """Return what a request says; None where it has no key, or there is no journal.

    Raises ApiError for headers that make no sense.
    """
    if journal is None:
        return None
    key, last = request.headers.get(KEY), request.headers.get(LAST_EVENT)
    if key is None:
        if last is not None:
            raise invalid("Last-Event-ID", "Last-Event-ID needs the Idempotency-Key of its answer")
        return None
    if not _KEY.fullmatch(key):
        raise invalid(
            "Idempotency-Key",
            f"Idempotency-Key is {as_json(key)}; it must be 1 to 255 visible ASCII characters",
        )
    if last is not None and last and not _NUMBER.fullmatch(last):
        raise invalid(
            "Last-Event-ID",
            f"Last-Event-ID is {as_json(last)}; it must be the id of an event of this stream",
        )
    route = request.url.path.removeprefix("/v1")
    name = (entry_of(request).owner or "", route, key)
    return Idempotency(journal, name, request.body, int(last) if last else None)
