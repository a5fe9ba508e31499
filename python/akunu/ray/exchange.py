"""One request put to an ASGI application, and its answer in parts, without a socket between."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from starlette.types import ASGIApp, Message

from akunu.ray.forwarded import Forwarded

_LOG = logging.getLogger("akunu.server")

Part = tuple[int, list[tuple[bytes, bytes]]] | bytes
"""A part of an answer: first its status and headers, then pieces of its body."""


async def parts_of(app: ASGIApp, request: Forwarded) -> AsyncGenerator[Part, None]:
    """Have an application answer a request; to close the generator is to disconnect the client."""
    exchange = _Exchange(request.body)
    scope = {**request.scope, "state": {"akunu_owner": request.owner}}
    answering = asyncio.ensure_future(_answered(app, scope, exchange))
    try:
        async for part in exchange.parts():
            yield part
    finally:
        exchange.client_leaves()
        await asyncio.wait([answering])


async def _answered(app: ASGIApp, scope: dict[str, Any], exchange: _Exchange) -> None:
    try:
        await app(scope, exchange.receive, exchange.send)
    except Exception:  # it has been answered, with 500 where nothing else had been said
        _LOG.exception("a request failed")
    finally:
        exchange.end()


class _Exchange:
    """Both ends of one ASGI request: what the application receives, and what it sends."""

    def __init__(self, body: bytes) -> None:
        self._asked: list[Message] = [{"type": "http.request", "body": body}]
        self._gone = asyncio.Event()
        self._waiting: list[Part] = []
        self._is_over = False
        self._news = asyncio.Event()

    async def receive(self) -> Message:
        if self._asked:
            return self._asked.pop()
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._waiting.append((message["status"], list(message.get("headers", ()))))
        elif body := message.get("body", b""):
            self._waiting.append(body)
        else:
            return
        self._news.set()

    def end(self) -> None:
        self._is_over = True
        self._news.set()

    def client_leaves(self) -> None:
        self._gone.set()

    async def parts(self) -> AsyncIterator[Part]:
        """What the application sends; what has gathered of a body meanwhile is one part."""
        while not self._is_over or self._waiting:
            await self._news.wait()
            self._news.clear()
            found, self._waiting = self._waiting, []
            gathered: list[bytes] = []
            for part in found:
                if isinstance(part, bytes):
                    gathered.append(part)
                else:
                    yield part
            if gathered:
                yield b"".join(gathered)
