"""From a request that asks for text to its answer: whole, or as a stream of events.

Code that all dialects share is here: the model is held, texts begin, a client that goes away
cancels them, errors become answers, silence gets comments. An `Answer` says how it is written.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from akunu.errors import AkunuError
from akunu.model import Model
from akunu.server.http.access_log import AccessEntry
from akunu.server.http.errors import ApiError, stopping
from akunu.server.http.json_body import JsonResponse
from akunu.server.http.sending import Events, beside, pinging, unless_gone
from akunu.server.metrics import Observer
from akunu.server.served_model import ServedModel
from akunu.server.state import ServerState
from akunu.server.text_request import Answer, AnswerContext, TextRequest
from akunu.text.async_text_stream import AsyncTextStream
from akunu.text.completion import Completion


@dataclass(frozen=True, slots=True)
class _Opened:
    """A stream that was opened before its model was loaded."""

    events: Events
    answer: Answer
    headers: Mapping[str, str]

    @classmethod
    async def of(cls, send: Send, answer: Answer, headers: Mapping[str, str]) -> _Opened:
        opened = cls(Events(send), answer, dict(headers))
        await opened.events.begin(answer.media_type, headers)
        await opened.events.put(answer.ping)
        return opened

    def late_headers(self, headers: Mapping[str, str]) -> bytes:
        """Return comments with the headers that came too late."""
        late = [(key, value) for key, value in headers.items() if self.headers.get(key) != value]
        return b"".join(f": {key}: {value}\n\n".encode() for key, value in late)


class Generation(Response):
    """The answer to a request for text; it does its work when it is sent."""

    def __init__(self, state: ServerState, entry: AccessEntry, wanted: TextRequest) -> None:
        """`wanted`: what is requested. `entry`: what is noted of the request."""
        super().__init__()
        self._models = state.models
        self._settings = state.settings
        self._wanted = wanted
        self._entry = entry
        self._observer = Observer(state.metrics, entry)
        self._is_counted = False
        self._opened: _Opened | None = None

    def _answer(self, served: ServedModel, model: Model) -> Answer:
        context = AnswerContext(served.name, self._entry.request_id)
        context.tokenizer = model._pipeline.tokenizer
        return self._wanted.answer(context)

    async def _hold(
        self, stack: AsyncExitStack, receive: Receive, send: Send
    ) -> tuple[ServedModel, Model]:
        """Return the model, which `stack` holds; loading it may take minutes.

        A stream is opened meanwhile, so that comments tell the client that the server works.
        """
        wanted, seconds = self._wanted, self._settings.ping_seconds
        await self._models.seek(wanted.model)
        served = self._models.answering(wanted.model)
        held = stack.enter_async_context(self._models.use(wanted.model, wanted.keep_seconds))
        if served.model is not None:
            return await held
        loading = asyncio.ensure_future(unless_gone(receive, held))
        try:
            answer = wanted.answer(AnswerContext(served.name, self._entry.request_id))
            if wanted.is_stream and answer.ping and seconds > 0:
                await asyncio.wait([loading], timeout=seconds)
                if not loading.done():
                    self._opened = await _Opened.of(send, answer, wanted.headers)
                    async with pinging(self._opened.events, answer.ping, seconds):
                        await asyncio.wait([loading])
            return await loading
        finally:
            loading.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer; where that has not begun, raises ApiError, or ClientDisconnect."""
        wanted = self._wanted
        async with AsyncExitStack() as stack:
            number = 0
            try:
                served, model = await self._hold(stack, receive, send)
                answer = self._answer(served, model)
                streams = await wanted.begin(served, model, self._settings)
                for number, stream in enumerate(streams):  # noqa: B007
                    # So may compiling its grammar.
                    await unless_gone(receive, stack.enter_async_context(stream))
            except ClientDisconnect:
                if self._opened is None:
                    raise
                return
            except Exception as error:
                failure = self._api_error(error, number)
                if self._opened is None:
                    raise failure from error
                self._observer.failed(failure, error)
                await self._opened.events.put(self._opened.answer.failed(failure))
                await self._opened.events.end()
                return
            self._observer.began(served.name, streams)
            stack.push_async_callback(self._end, streams)
            if wanted.is_stream:
                await self._send_events(receive, send, answer, streams)
                return
            try:
                async with _closed_when_gone(receive, streams) as client:
                    replies = [await self._complete(each) for each in streams]
            except Exception as error:
                raise self._api_error(error) from error
            self._count(replies)
            if not client.is_gone:
                whole = JsonResponse(answer.from_replies(replies), headers=wanted.headers)
                await whole(scope, receive, send)

    async def _end(self, streams: Sequence[AsyncTextStream]) -> None:
        """Cancel what is left, and count the texts."""
        replies = []
        for stream in streams:
            await stream.aclose()
            with suppress(AkunuError):  # its model is closed
                replies.append(stream.completion)
        self._count(replies)

    def _count(self, replies: Sequence[Completion]) -> None:
        """Count the texts, once, and before their end is sent: metrics agree with the answer."""
        if not self._is_counted:
            self._is_counted = True
            self._observer.ended(replies)

    def _api_error(self, error: Exception, number: int = 0) -> ApiError:
        return self._wanted.failure(error, number)

    async def _complete(self, stream: AsyncTextStream) -> Completion:
        if await stream.has_more():
            self._observer.part(stream)
        return await stream.complete()

    async def _send_events(
        self,
        receive: Receive,
        send: Send,
        answer: Answer,
        streams: Sequence[AsyncTextStream],
    ) -> None:
        if self._opened is None:
            events = Events(send)
            await events.begin(answer.media_type, self._wanted.headers)
        else:
            events = self._opened.events
            await events.put(self._opened.late_headers(self._wanted.headers))
        await events.put(answer.opened(streams))
        async with _closed_when_gone(receive, streams) as client:
            async with pinging(events, answer.ping, self._settings.ping_seconds):
                try:
                    await self._write_texts(events, answer, streams)
                    if not client.is_gone:
                        replies = [stream.completion for stream in streams]
                        self._count(replies)
                        await events.put(answer.over(replies))
                except asyncio.CancelledError as error:
                    failure = stopping()
                    self._observer.failed(failure, error)
                    await events.put(answer.failed(failure))
                    await events.end()
                    raise
                except Exception as error:
                    failure = self._api_error(error)
                    self._observer.failed(failure, error)
                    await events.put(answer.failed(failure))
            if not client.is_gone:
                await events.end()

    async def _write_texts(
        self, events: Events, answer: Answer, streams: Sequence[AsyncTextStream]
    ) -> None:
        async def write(index: int, stream: AsyncTextStream) -> None:
            has_begun = False
            async for delta in stream.deltas():
                if not has_begun:
                    has_begun = True
                    self._observer.part(stream)
                await events.put(answer.from_piece(index, delta, stream))
            if stream.finish_reason != "cancelled":
                await events.put(answer.closed(index, stream))

        if len(streams) == 1:
            await write(0, streams[0])
            return
        tasks = [asyncio.ensure_future(write(*each)) for each in enumerate(streams)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


class _Client:
    """The client, and whether it went away."""

    is_gone = False


@asynccontextmanager
async def _closed_when_gone(
    receive: Receive, streams: Sequence[AsyncTextStream]
) -> AsyncIterator[_Client]:
    """Cancel texts as soon as the client goes away: within a step of the engine."""
    client = _Client()

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        client.is_gone = True
        for stream in streams:
            await stream.aclose()

    async with beside(watch()):
        yield client
