"""Requests that the application sends itself: through every layer, but not over a socket."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp, Message, Scope

from akunu.server.http.access import WITHIN
from akunu.server.http.json_body import json_bytes


@dataclass(slots=True)
class AnswerWithin:
    """What the application answered."""

    status: int
    request_id: str
    content: bytes

    @property
    def body(self) -> Any:
        """The body, which is JSON."""
        return json.loads(self.content)


async def post_within(app: ASGIApp, path: str, body: Any, owner: str) -> AnswerWithin:
    """Send a request for an owner, which has no limit of requests per minute."""
    content = json_bytes(body)
    told: dict[str, Any] = {"status": 500, "headers": []}
    parts: list[bytes] = []
    is_read = False

    async def receive() -> Message:
        nonlocal is_read
        if is_read:
            await asyncio.Event().wait()  # its client never goes away
        is_read = True
        return {"type": "http.request", "body": content, "more_body": False}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            told.update(message)
        else:
            parts.append(message.get("body", b""))

    await app(_scope(path, len(content), owner), receive, send)
    headers = dict(told["headers"])
    request_id = headers.get(b"x-request-id", b"").decode()
    return AnswerWithin(told["status"], request_id, b"".join(parts))


def _scope(path: str, length: int, owner: str) -> Scope:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % length),
        ],
        "client": None,
        "server": None,
        "state": {"akunu_owner": owner or None},
        WITHIN: True,
    }
