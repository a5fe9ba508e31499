"""What every request goes through before a route sees it: an id, a key, limits, the log.

Written as a plain ASGI application around the other: streams go through it untouched.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
import uuid
from contextlib import nullcontext
from itertools import chain
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from akunu.grammar.separate_process import Workers, compiling_apart
from akunu.server.http.access_log import LOG, AccessEntry, AccessLog
from akunu.server.http.error_shapes import is_anthropic, shaped
from akunu.server.http.errors import ApiError, stopping
from akunu.server.http.json_body import JsonResponse
from akunu.server.http.keys import Keys
from akunu.server.http.origins import refusal_of
from akunu.server.http.proxies import TrustedProxies
from akunu.server.http.rate_limit import RateLimit
from akunu.server.metrics import Metrics
from akunu.server.page_routes import is_page
from akunu.server.settings import ServerSettings

OPEN_PATHS: Final = frozenset({"/health", "/ready"})
WITHIN: Final = "akunu_within"
"""A key of the scopes of requests that the application sends itself, for an owner it knows."""
_ID: Final = re.compile(rb"[A-Za-z0-9._:-]{1,128}")
_MOST_HEADERS: Final = 64 << 10  # bytes, names and values
_MOST_HOSTS: Final = 64  # that are remembered


class Access:
    """Lets requests in, or answers them itself."""

    def __init__(
        self,
        app: ASGIApp,
        settings: ServerSettings,
        keys: Keys,
        log: AccessLog,
        metrics: Metrics,
        is_guarded: bool = True,
        workers: Workers | None = None,
    ) -> None:
        """`app`: the application itself. `is_guarded`: False, where requests have come through
        another door already. `workers`: where its grammars are compiled."""
        self._app = app
        self._settings = settings
        self._keys = keys
        self._log = log
        self._metrics = metrics
        self._workers = workers
        self._is_guarded = is_guarded
        self._rate = RateLimit(settings.rate_limit)
        self._proxies = TrustedProxies(settings.trusted_proxies)
        self._has_keys = bool(keys)
        self._has_proxies = is_guarded and bool(self._proxies)
        self._known_hosts: set[bytes | None] = set()  # which requests were for, and are allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._has_proxies:
            self._look_behind_proxies(scope)
        headers: dict[bytes, bytes] = dict(scope["headers"])
        given = headers.get(b"x-request-id", b"")
        request_id = given if _ID.fullmatch(given) else f"req_{uuid.uuid4().hex}".encode()
        entry = AccessEntry(scope, request_id.decode(), time.monotonic())
        state = scope.setdefault("state", {})
        state["akunu_entry"] = entry
        entry.owner = state.get("akunu_owner")

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                entry.status = message["status"]
                headers_out = [*message.get("headers", ()), (b"x-request-id", request_id)]
                # Where Anthropic's client looks for it; most paths show at once that it is not.
                if scope["path"].startswith(("/v1/m", "/m")) and is_anthropic(scope):
                    headers_out.append((b"request-id", request_id))
                message["headers"] = headers_out
            await send(message)

        try:
            is_guarded = self._is_guarded and WITHIN not in scope
            refusal = self._refusal(scope, headers, entry) if is_guarded else None
            if refusal is None:
                limited = _Body(receive, self._settings, entry)
                apart = compiling_apart(self._workers) if self._workers else nullcontext()
                with apart:
                    if scope["method"] == "HEAD":  # of a route that only knows GET
                        inner = {**scope, "method": "GET"}
                        await self._app(inner, limited.receive, _without_body(marked))
                    else:
                        await self._app(scope, limited.receive, marked)
            else:
                answer = _answer(refusal, scope, entry)
                await answer(scope, receive, marked)
        except asyncio.CancelledError:
            if not self._is_guarded or WITHIN in scope:  # its sender has cancelled it
                raise
            # The server ends, and this took longer than it may. A stream that had begun got
            # an error.
            if not entry.status:
                answer = _answer(stopping(), scope, entry)
                await answer(scope, receive, marked)
        finally:
            self._metrics.answered(entry)
            if LOG.isEnabledFor(logging.INFO):
                self._log.write(entry)

    def _look_behind_proxies(self, scope: Scope) -> None:
        peer = scope["client"][0] if scope.get("client") else None
        forwarded = [v.decode("latin-1") for k, v in scope["headers"] if k == b"x-forwarded-for"]
        client = self._proxies.client(peer or None, forwarded)
        scope["client"] = (client, 0) if client is not None else None

    def _refusal(
        self, scope: Scope, headers: dict[bytes, bytes], entry: AccessEntry
    ) -> ApiError | None:
        if sum(map(len, chain.from_iterable(scope["headers"]))) > _MOST_HEADERS:
            return ApiError(431, "the headers of the request are too large")
        path = scope["path"]
        if path in OPEN_PATHS or (not path.startswith("/v1/") and is_page(path)):
            return None
        if self._has_keys:
            entry.owner = self._keys.owner(headers)
            if entry.owner is None:
                has_one = b"authorization" in headers or b"x-api-key" in headers
                said = "is not one of this server's" if has_one else "is missing"
                return ApiError(
                    401,
                    f"the API key {said}: send it as 'Authorization: Bearer KEY'",
                    code="invalid_api_key",
                    headers={"www-authenticate": "Bearer"},
                )
        elif b"origin" in headers or headers.get(b"host") not in self._known_hosts:
            if (error := refusal_of(headers, self._settings)) is not None:
                return error
            if b"origin" not in headers and len(self._known_hosts) < _MOST_HOSTS:
                self._known_hosts.add(headers.get(b"host"))
        client = scope.get("client")
        who = entry.owner or (client[0] if client else "")
        if self._settings.rate_limit and (wait := self._rate.seconds_to_wait(who)):
            return ApiError(
                429,
                f"more than {self._settings.rate_limit} requests in a minute, which is rate_limit",
                code="rate_limit_exceeded",
                headers={"retry-after": str(wait)},
            )
        try:
            length = int(headers.get(b"content-length", b"0"))
        except ValueError:
            return ApiError(400, "content-length is not a number")
        return _too_large(self._settings) if length > self._settings.max_body else None


def _answer(error: ApiError, scope: Scope, entry: AccessEntry) -> JsonResponse:
    return JsonResponse(shaped(error, scope, entry.request_id), error.status, error.headers)


def _without_body(send: Send) -> Send:
    async def send_headers(message: Message) -> None:
        if message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await send(message)

    return send_headers


class _Body:
    """The body of a request as it arrives, within its limits."""

    def __init__(self, receive: Receive, settings: ServerSettings, entry: AccessEntry) -> None:
        self._receive = receive
        self._entry = entry
        self._settings = settings
        self._length = 0
        self._is_complete = False
        self._ends = time.monotonic() + settings.body_seconds
        kind = dict(entry.scope["headers"]).get(b"content-type", b"")
        self._is_upload = kind.startswith(b"multipart/")  # audio is not text for a log

    async def receive(self) -> Message:
        if self._is_complete:  # what comes now is that the client goes away
            return await self._receive()
        left = self._ends - time.monotonic()
        try:
            message = await asyncio.wait_for(self._receive(), left)
        except asyncio.TimeoutError:
            raise ApiError(408, "the body of the request took too long to arrive") from None
        body = message.get("body", b"")
        self._length += len(body)
        if self._settings.log_prompts and not self._is_upload:
            self._entry.body += body.decode(errors="replace")
        if self._length > self._settings.max_body:
            raise _too_large(self._settings)
        self._is_complete = not message.get("more_body", False)
        return message


def _too_large(settings: ServerSettings) -> ApiError:
    return ApiError(
        413,
        f"the body of the request is larger than max_body, {settings.max_body} bytes",
        code="request_too_large",  # the rest is read: cut off, clients would not see the answer
    )
