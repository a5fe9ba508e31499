"""From a request that asks for text to its answer: whole, or as a stream of events.

What is the same for every dialect is here: the model is held, texts begin, a client that goes away
cancels them, errors become answers, silence gets comments. A `Dialect` says how it is written.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Protocol, TypeVar

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from akunu.errors import AkunuError
from akunu.model import Model
from akunu.server.http.errors import ApiError, api_error, stopping
from akunu.server.http.json_body import JsonResponse
from akunu.server.http.sending import Events, beside, pinging, unless_gone
from akunu.server.models import ServedModels
from akunu.server.observer import SILENT, Observer
from akunu.server.served_model import ServedModel
from akunu.text.async_text_stream import AsyncTextStream
from akunu.text.completion import Completion
from akunu.text.deltas import Delta

Result = TypeVar("Result")
Begin = Callable[[ServedModel, Model], Sequence[AsyncTextStream]]
"""Starts the texts of a request; ApiError or AkunuError for what makes no sense."""


class Dialect(Protocol):
    """How one API writes answers."""

    @property
    def media_type(self) -> str:
        """The content type of a stream."""
        ...

    @property
    def ping(self) -> bytes:
        """What may be sent when nothing else is; b"" where there is no such thing."""
        ...

    def whole(self, replies: Sequence[Completion]) -> Any:
        """Return the answer that is no stream, for JSON."""
        ...

    def opened(self) -> bytes:
        """Return what a stream begins with."""
        ...

    def part(self, index: int, delta: Delta, stream: AsyncTextStream) -> bytes:
        """Return the events for a part of one of the texts, b"" for none."""
        ...

    def closed(self, index: int, stream: AsyncTextStream) -> bytes:
        """Return the events for the end of one of the texts."""
        ...

    def over(self, replies: Sequence[Completion]) -> bytes:
        """Return what a stream ends with."""
        ...

    def failed(self, error: ApiError) -> bytes:
        """Return what ends a stream that has begun and cannot go on."""
        ...


class Generation(Response):
    """The answer to a request for text; it does its work when it is sent."""

    def __init__(
        self,
        models: ServedModels,
        model: str | None,
        begin: Begin,
        dialect: Callable[[ServedModel], Dialect],
        *,
        is_stream: bool,
        names: Mapping[str, str] | None = None,
        prompt: str | Callable[[int], str] = "messages",
        headers: Mapping[str, str] | None = None,
        ping_seconds: float = 15.0,
        observer: Observer = SILENT,
        prepare: Callable[[Model], None] | None = None,
    ) -> None:
        """`prepare`: done in a thread before `begin`, since it takes long.

        `names`, `prompt`: see `api_error`; `prompt` may depend on the number of the text.
        `headers`: what the answer has besides; `begin` may still add to them."""
        super().__init__()
        self._models = models
        self._model = model
        self._begin = begin
        self._dialect = dialect
        self._is_stream = is_stream
        self._names = names
        self._prompt = prompt
        self._more_headers = {} if headers is None else headers
        self._ping_seconds = ping_seconds
        self._observer = observer
        self._prepare = prepare
        self._is_counted = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer; where that has not begun, raises ApiError, or ClientDisconnect."""
        async with AsyncExitStack() as stack:
            number = 0
            try:
                is_loaded = self._models.find(self._model).model is not None
                held = stack.enter_async_context(self._models.use(self._model))
                # Loading may take minutes.
                served, model = await (held if is_loaded else unless_gone(receive, held))
                dialect = self._dialect(served)
                if self._prepare is not None:
                    loop = asyncio.get_running_loop()
                    await loop.run_in_executor(None, self._prepare, model)
                streams = self._begin(served, model)
                for number, stream in enumerate(streams):  # noqa: B007
                    # So may compiling its grammar.
                    await unless_gone(receive, stack.enter_async_context(stream))
            except ClientDisconnect:
                raise
            except Exception as error:
                raise self._told(error, number) from error
            self._observer.began(served.name, streams)
            stack.push_async_callback(self._end, streams)
            if self._is_stream:
                await self._send_events(receive, send, dialect, streams)
                return
            try:
                async with _closed_when_gone(receive, streams) as client:
                    replies = [await self._complete(each) for each in streams]
            except Exception as error:
                raise self._told(error) from error
            self._count(replies)
            if not client.is_gone:
                answer = JsonResponse(dialect.whole(replies), headers=self._more_headers)
                await answer(scope, receive, send)

    async def _end(self, streams: Sequence[AsyncTextStream]) -> None:
        """Cancel what is left, and tell how the texts went."""
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

    def _told(self, error: Exception, number: int = 0) -> ApiError:
        prompt = self._prompt if isinstance(self._prompt, str) else self._prompt(number)
        return api_error(error, names=self._names, prompt=prompt)

    async def _complete(self, stream: AsyncTextStream) -> Completion:
        async for _ in stream.deltas():
            self._observer.part(stream)
        return stream.completion

    async def _send_events(
        self,
        receive: Receive,
        send: Send,
        dialect: Dialect,
        streams: Sequence[AsyncTextStream],
    ) -> None:
        events = Events(send)
        await events.begin(dialect.media_type, self._more_headers)
        await events.put(dialect.opened())
        async with _closed_when_gone(receive, streams) as client:
            async with pinging(events, dialect.ping, self._ping_seconds):
                try:
                    await self._tell(events, dialect, streams)
                    if not client.is_gone:
                        replies = [stream.completion for stream in streams]
                        self._count(replies)
                        await events.put(dialect.over(replies))
                except asyncio.CancelledError as error:
                    told = stopping()
                    self._observer.failed(told, error)
                    await events.put(dialect.failed(told))
                    await events.end()
                    raise
                except Exception as error:
                    told = self._told(error)
                    self._observer.failed(told, error)
                    await events.put(dialect.failed(told))
            if not client.is_gone:
                await events.end()

    async def _tell(
        self, events: Events, dialect: Dialect, streams: Sequence[AsyncTextStream]
    ) -> None:
        async def tell(index: int, stream: AsyncTextStream) -> None:
            async for delta in stream.deltas():
                self._observer.part(stream)
                await events.put(dialect.part(index, delta, stream))
            if stream.finish_reason != "cancelled":
                await events.put(dialect.closed(index, stream))

        if len(streams) == 1:
            await tell(0, streams[0])
            return
        tasks = [asyncio.ensure_future(tell(*each)) for each in enumerate(streams)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


class _Client:
    """Whoever asked, and whether they went away."""

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
