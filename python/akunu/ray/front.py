"""What clients meet: the door, and the way to a replica and back.

A plain ASGI application. The body is read whole, since how it begins decides where it goes; the
answer passes through as it comes. A replica that dies before its answer has begun is followed by
another; afterwards the stream ends with an error, as its dialect has it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Final

from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.routing import Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from akunu.ray.all_replicas import PATHS_FOR_ALL, answer_of_all
from akunu.ray.conversations import key_of_body
from akunu.ray.exchange import Part
from akunu.ray.forwarded import Forwarded, passed_on
from akunu.server.http.access import Access
from akunu.server.http.access_log import AccessEntry, AccessLog
from akunu.server.http.error_shapes import failed_event, shaped
from akunu.server.http.errors import ApiError, api_error
from akunu.server.http.json_body import JsonResponse, json_bytes
from akunu.server.http.keys import Keys
from akunu.server.http.origins import cors_options
from akunu.server.metrics import CONTENT_TYPE, Metrics
from akunu.server.settings import ServerSettings

_LOG = logging.getLogger("akunu.server")
_MOST_TRIES: Final = 2  # a request may be what they die of: it does not get all of them
_OWN: Final = "front"  # where its own counters stand next to those of the replicas
_PASSED_ON: Final = "akunu_passed_on"  # in the state of a scope: a replica has answered
_OF_THE_DOOR: Final = (b"x-request-id", b"request-id")


class ReplicaDiedError(Exception):
    """The replica that had a request is gone."""

    def __init__(self, name: str | None = None) -> None:
        """`name`: the replica's, where it is known."""
        super().__init__(name)
        self.name = name


class Replicas:
    """The replicas, as far as the front knows them; raised is `ReplicaDiedError`, or ApiError."""

    def answer(self, request: Forwarded) -> AsyncGenerator[str | Part, None]:
        """Have one of them answer; closing the iterator cancels its texts."""
        raise NotImplementedError

    async def ask_all(self, request: Forwarded) -> list[tuple[str, int, bytes]]:
        """Return the names, statuses and bodies of all of them."""
        raise NotImplementedError


def front(settings: ServerSettings, keys: Keys, replicas: Replicas) -> ASGIApp:
    """Return the application that lets requests in and passes them on."""
    metrics = _OwnMetrics()
    app: ASGIApp = Router(default=_Front(replicas, metrics), redirect_slashes=False)
    log = _OwnLog(settings.access_log)
    app = Access(app, settings=settings, keys=keys, log=log, metrics=metrics)
    if settings.cors_origins:
        app = CORSMiddleware(app, **cors_options(settings))
    return app


class _Front:
    def __init__(self, replicas: Replicas, metrics: Metrics) -> None:
        self._replicas = replicas
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        entry: AccessEntry = scope["state"]["akunu_entry"]
        where = (scope["method"], scope["path"])
        try:
            if where == ("GET", "/health"):
                await JsonResponse({"status": "ok"})(scope, receive, send)
                return
            body = await _body(receive)
            if body is None:
                return
            request = Forwarded(
                passed_on(scope, entry.request_id.encode()),
                body,
                conversation=key_of_body(body) if scope["method"] == "POST" else "",
                owner=entry.owner,
            )
            if where in PATHS_FOR_ALL:
                await (await self._of_all(request))(scope, receive, send)
                entry.scope["state"][_PASSED_ON] = True
            else:
                await _unless_client_leaves(receive, self._answer(request, _Answer(send, entry)))
        except ApiError as error:
            entry.error = error.message
            told = shaped(error, scope, entry.request_id)
            await JsonResponse(told, error.status, error.headers)(scope, receive, send)

    async def _of_all(self, request: Forwarded) -> Response:
        answers = await self._replicas.ask_all(request)
        path = request.scope["path"]
        if path == "/metrics":
            answers.append((_OWN, 200, self._metrics.text()))
        elif path == "/v1/metrics":
            answers.append((_OWN, 200, json_bytes(self._metrics.summary())))
        status, content = answer_of_all(path, answers)
        kind = CONTENT_TYPE if (path, status) == ("/metrics", 200) else "application/json"
        return Response(content, status, {"content-type": kind})

    async def _answer(self, request: Forwarded, answer: _Answer) -> None:
        """Have a request answered; ApiError where that has failed before it began."""
        for n_tries in range(1, _MOST_TRIES + 1):
            try:
                async with aclosing(self._replicas.answer(request)) as parts:
                    async for part in parts:
                        await answer.add(part)
                await answer.end()
                return
            except ReplicaDiedError as died:
                answer.is_lost()
                _LOG.warning("a replica died while it handled request %s", answer.entry.request_id)
                if answer.has_begun:
                    await answer.fail(_died("the replica died while it wrote the answer"))
                    return
                if n_tries < _MOST_TRIES and died.name is not None:
                    request = replace(request, avoided=(*request.avoided, died.name))
            except ApiError:
                raise
            except Exception as error:  # ours, or Ray's
                _LOG.exception("request %s failed", answer.entry.request_id)
                if not answer.has_begun:
                    raise api_error(error) from error
                await answer.fail(api_error(error))
                return
        raise _died(f"{_MOST_TRIES} replicas died while they handled the request")


class _Answer:
    """An answer on its way to the client; it begins with the first part of its body."""

    def __init__(self, send: Send, entry: AccessEntry) -> None:
        self.entry = entry
        self.has_begun = False
        self._send = send
        self._start: Message | None = None
        self._is_stream = False

    async def add(self, part: str | Part) -> None:
        if isinstance(part, str):  # the name of a replica: it has taken the request
            self.entry.scope["state"][_PASSED_ON] = True
        elif isinstance(part, tuple):
            status, headers = part
            kept = [(name, value) for name, value in headers if name not in _OF_THE_DOOR]
            self._is_stream = all(name != b"content-length" for name, _ in kept)
            self._start = {"type": "http.response.start", "status": status, "headers": kept}
        else:
            await self._begin()
            await self._send({"type": "http.response.body", "body": part, "more_body": True})

    async def end(self) -> None:
        await self._begin()
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    def is_lost(self) -> None:
        """Forget what came of it, as the replica that had the request is gone."""
        self._start = None
        self.entry.scope["state"].pop(_PASSED_ON, None)

    async def fail(self, error: ApiError) -> None:
        """End an answer that has begun: a stream with an event, anything else unfinished."""
        self.entry.error = error.message
        if not self._is_stream:
            raise ConnectionError("an answer was cut off")  # the server hangs up
        event = failed_event(error, self.entry.scope, self.entry.request_id)
        await self._send({"type": "http.response.body", "body": event, "more_body": True})
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _begin(self) -> None:
        if not self.has_begun and self._start is not None:
            self.has_begun = True
            await self._send(self._start)


def _died(message: str) -> ApiError:
    # A client that asks again on its own would take down one replica after the other.
    return ApiError(503, message, code="replica_died", headers={"x-should-retry": "false"})


async def _body(receive: Receive) -> bytes | None:
    """Return the whole body; None where the client went away before."""
    parts = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


async def _unless_client_leaves(receive: Receive, work: Coroutine[Any, Any, None]) -> None:
    """Do the work, and break it off as soon as the client goes away."""
    working = asyncio.ensure_future(work)

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        working.cancel()

    watching = asyncio.ensure_future(watch())
    try:
        await asyncio.wait([working])
    finally:
        watching.cancel()
        working.cancel()
        await asyncio.gather(watching, working, return_exceptions=True)
    if not working.cancelled():
        working.result()


class _OwnMetrics(Metrics):
    """Counts the requests that no replica counts."""

    def answered(self, entry: AccessEntry) -> None:
        """Count a request that came back from here."""
        if _PASSED_ON not in entry.scope["state"]:
            super().answered(entry)


class _OwnLog(AccessLog):
    """Has the requests that no replica has in its own log."""

    def write(self, entry: AccessEntry) -> None:
        """Write the line of a request that came back from here."""
        if _PASSED_ON not in entry.scope["state"]:
            super().write(entry)
