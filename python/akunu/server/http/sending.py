"""What answers send piece by piece, and watching a client that may go away meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

from starlette.requests import ClientDisconnect
from starlette.types import Receive, Send

from akunu.server.http.json_body import json_bytes

Result = TypeVar("Result")

EVENT_STREAM: Final = "text/event-stream; charset=utf-8"
PING: Final = b": ping\n\n"


def event(data: Any, name: str = "") -> bytes:
    r"""Return a server-sent event.

    >>> event({"a": "é\n"})
    b'data: {"a":"\xc3\xa9\\n"}\n\n'
    """
    head = f"event: {name}\n" if name else ""
    return head.encode() + b"data: " + json_bytes(data) + b"\n\n"


class Events:
    """Sends parts of a body, and knows when it did."""

    def __init__(self, send: Send) -> None:
        """`send`: what the application was called with."""
        self._send = send
        self.last = time.monotonic()

    async def begin(self, media_type: str, headers: Mapping[str, str]) -> None:
        """Send the head of the answer."""
        told = {
            "content-type": media_type,
            "cache-control": "no-cache",
            "x-accel-buffering": "no",  # nginx would hold events back
            **headers,
        }
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in told.items()]
        await self._send({"type": "http.response.start", "status": 200, "headers": raw})

    async def put(self, body: bytes) -> None:
        """Send a part, unless it is empty."""
        if body:
            self.last = time.monotonic()
            await self._send({"type": "http.response.body", "body": body, "more_body": True})

    async def end(self) -> None:
        """Send that nothing follows."""
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})


async def unless_gone(receive: Receive, work: Coroutine[Any, Any, Result]) -> Result:
    """Return what work gives; ClientDisconnect where the client goes away before, which ends it."""
    task = asyncio.ensure_future(work)

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        task.cancel()

    async with beside(watch()) as watcher:
        try:
            return await task
        except asyncio.CancelledError:
            if watcher.done():
                raise ClientDisconnect from None
            raise


@asynccontextmanager
async def pinging(events: Events, ping: bytes, seconds: float) -> AsyncIterator[None]:
    """Send a comment when nothing was sent for this long."""
    if not ping or seconds <= 0:
        yield
        return

    async def watch() -> None:
        while True:
            silent = time.monotonic() - events.last
            if silent >= seconds:
                await events.put(ping)
                silent = 0.0
            await asyncio.sleep(seconds - silent)

    async with beside(watch()):
        yield


@asynccontextmanager
async def beside(work: Any) -> AsyncIterator[asyncio.Future[None]]:
    """Do something meanwhile, and no longer."""
    task = asyncio.ensure_future(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
