"""Responses in the background: written without a client, and after a restart.

Each is an answer in the journal, which the response's id names; what it needs to begin again is
stored until it is over.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

from fastapi import Request
from starlette.responses import Response

from akunu.common.clock_and_ids import random_hex
from akunu.grammar.separate_process import compiling_apart
from akunu.server.http.access_log import AccessEntry
from akunu.server.http.errors import ApiError, api_error
from akunu.server.http.json_body import JsonResponse
from akunu.server.journal.generation import JournalledGeneration
from akunu.server.journal.idempotency import KEY, LAST_EVENT, Idempotency
from akunu.server.journal.journal import KeptAnswer
from akunu.server.openai.responses_answer import CANCELLED, ResponseAnswer, new_id
from akunu.server.openai.responses_fields import response_request
from akunu.server.state import ServerState, entry_of
from akunu.server.stored.files import folder_of
from akunu.server.stored.items import as_items, conversation_id
from akunu.server.stored.responses import StoredResponses
from akunu.server.stored.store import FolderStore, Key, merged
from akunu.server.text_request import Answer, AnswerContext, TextRequest

_UNDER_WAY = ("queued", "in_progress")


def backgrounds_of(request: Request) -> Backgrounds:
    """Return the responses in the background; ApiError without a journal."""
    folder_of(request, "responses in the background", param="background")
    return cast(Backgrounds, request.app.state.akunu_backgrounds)


class _Writing(JournalledGeneration):
    """A response that is written whether someone reads it or not."""

    def __init__(
        self, owner: Backgrounds, key: Key, wanted: TextRequest, entry: AccessEntry, n_told: int = 0
    ) -> None:
        """`n_told`: how many events its reader has already."""
        journal = owner.state.journal
        assert journal is not None
        named = Idempotency(journal, owner.name_of(key), _no_body, n_told)
        super().__init__(owner.state, entry, wanted, named)
        self._backgrounds = owner
        self._key = key

    async def begin(self) -> None:
        """Have it written from now on."""
        await self._found()

    async def _found(self) -> tuple[KeptAnswer, dict[str, str]]:
        kept, headers = await super()._found()
        kept.needs_readers = False
        if kept.runner is not None:
            self._backgrounds.written[self._key] = kept
        return kept, headers

    async def _run(self, kept: KeptAnswer) -> None:
        try:
            await super()._run(kept)
        finally:
            self._backgrounds.written.pop(self._key, None)
        self._backgrounds.over(self._key, kept)


class Backgrounds:
    """The responses in the background of one application."""

    def __init__(self, state: ServerState, store: FolderStore) -> None:
        """`store`: has a journal."""
        self.state = state
        self.written: dict[Key, KeptAnswer] = {}
        """Those that are being written."""
        self._store = store

    async def begin(self, request: Request, body: dict[str, Any], wanted: TextRequest) -> Response:
        """Begin a response; `wanted`: what `body` asks for."""
        entry = entry_of(request)
        key = (entry.owner or "", "background", new_id("resp"))
        identity = (key[2], int(time.time()))
        conversation = conversation_id(body.get("conversation"))
        stored = self._stored(key)
        record: dict[str, Any] = {
            "body": {**body, "input": as_items(body["input"])},
            "before": stored.before(body.get("previous_response_id"), conversation),
            "created": identity[1],
        }
        wanted.ignore(name for name in (KEY, LAST_EVENT) if name in request.headers)
        is_read, wanted.is_stream = wanted.is_stream, True
        wanted.answer = _with_identity(wanted, identity)
        model = self.state.models.answering(wanted.model).name
        answer = cast(ResponseAnswer, wanted.answer(AnswerContext(model, entry.request_id)))
        queued = answer.queued()
        stored.keep(record["body"]["input"], queued)
        self._store.add(key, record)
        writing = _Writing(self, key, wanted, entry)
        if is_read:
            return writing
        await writing.begin()
        return JsonResponse(queued, headers=wanted.headers)

    async def resume(self) -> None:
        """Continue with what an earlier process has begun."""
        for key in self._store.keys("background"):
            record = merged(self._store.find(key))
            stored = self._stored(key)
            try:
                wanted = self._wanted(key, record)
                scope = {"type": "http", "method": "POST", "path": "/v1/responses", "headers": []}
                entry = AccessEntry(scope, f"req_{random_hex(16)}", time.monotonic())
                with compiling_apart(self.state.workers):
                    await _Writing(self, key, wanted, entry).begin()
            except Exception as error:
                response = stored.find(key[2])["response"]
                self._fail(key, response, api_error(error))

    async def stream(self, request: Request, response: Mapping[str, Any], n_told: int) -> Response:
        """Return the events of a response, from one on; ApiError where it has none any more."""
        await request.body()  # there is none; what is received next is that the client goes away
        key = (entry_of(request).owner or "", "background", response["id"])
        record = merged(self._store.find(key))
        if record:
            wanted = self._wanted(key, record)
        elif response["status"] in ("completed", "incomplete") and self._path(key).exists():
            wanted = TextRequest(arguments={}, names={}, ignored=[], is_stream=True)
        else:
            raise ApiError(
                404,
                f"response {response['id']!r} is {response['status']}, and its events are not kept",
                code="not_found",
            )
        return _Writing(self, key, wanted, entry_of(request), n_told)

    async def cancel(self, request: Request, response: dict[str, Any]) -> dict[str, Any]:
        """End a response; returns it as it is then."""
        if response["status"] not in _UNDER_WAY:
            return response
        key = (entry_of(request).owner or "", "background", response["id"])
        response = {**response, "status": "cancelled"}
        self._store.delete(key)
        self._store.add(self._response_key(key), {"response": response})
        kept = self.written.get(key)
        if kept is not None and kept.runner is not None:
            kept.failure = ApiError(409, "the response was cancelled", code=CANCELLED)
            kept.runner.cancel()
            await asyncio.gather(kept.runner, return_exceptions=True)
        self._path(key).unlink(missing_ok=True)
        return response

    async def delete(self, request: Request, response: dict[str, Any]) -> None:
        """Delete the events of a response, which is cancelled first."""
        await self.cancel(request, response)
        key = (entry_of(request).owner or "", "background", response["id"])
        self._path(key).unlink(missing_ok=True)

    def over(self, key: Key, kept: KeptAnswer) -> None:
        """Note the end of a response, unless the server ends first."""
        if kept.is_over:
            self._store.delete(key)
        elif kept.failure is not None:
            found = merged(self._store.find(self._response_key(key)))
            if found:
                self._fail(key, found["response"], kept.failure)

    def name_of(self, key: Key) -> tuple[str, str, str]:
        """Return the name of a response in the journal; no route is called so."""
        return key[0], "background", key[2]

    def _fail(self, key: Key, response: Mapping[str, Any], why: ApiError) -> None:
        error = {"code": why.code or "server_error", "message": why.message}
        failed = {**response, "status": "failed", "error": error}
        try:
            self._store.add(self._response_key(key), {"response": failed})
        except ApiError:  # the disk is full: the next process tries again
            return
        self._store.delete(key)

    def _wanted(self, key: Key, record: Mapping[str, Any]) -> TextRequest:
        """Read the request of a response again."""
        wanted = response_request(
            record["body"], self.state.settings, self._stored(key), record["before"]
        )
        wanted.is_stream = True
        wanted.answer = _with_identity(wanted, (key[2], record["created"]))
        return wanted

    def _stored(self, key: Key) -> StoredResponses:
        return StoredResponses(self._store, key[0])

    def _response_key(self, key: Key) -> Key:
        return key[0], "responses", key[2]

    def _path(self, key: Key) -> Any:
        assert self.state.journal is not None
        return self.state.journal.path_of(self.name_of(key))


def _with_identity(wanted: TextRequest, identity: tuple[str, int]) -> Callable[..., Answer]:
    make = cast(Callable[..., Answer], wanted.answer)
    return partial(make, identity=identity)


async def _no_body() -> bytes:
    return b""  # its name is of one response only
