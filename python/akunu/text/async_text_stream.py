"""Text that is still being written, for coroutines: an asynchronous iterator over its pieces."""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Final

from akunu.errors import MisuseError
from akunu.text.completion import Completion
from akunu.text.deltas import Delta, TextDelta
from akunu.text.text_stream import StreamFacts
from akunu.text.wakers import running_loop

if TYPE_CHECKING:
    from akunu import _core
    from akunu.text.reply_decoder import ReplyDecoder
    from akunu.text.wakers import Place, Wakers


_MOST_TOKENS: Final = 64  # that `next` returns at a time


class AsyncTextStream(StreamFacts, AsyncIterator[str]):
    """The pieces of a text, as they are generated; made by `generate_async` and `chat_async`.

    It begins with `async with`, or else when its first piece is requested; until then its facts
    are 0, and what is wrong with the prompt is raised then. Pieces and `completion` are those of
    TextStream. An exception in `async with`, `aclose()`, losing the last reference and cancelling
    the task that waits for a piece all cancel the generation, within one step of the engine; the
    model continues to be usable. Closing the model ends it with an AkunuError. One task at a time
    may take pieces; another one may close it.

    >>> import akunu, asyncio
    >>> async def tell(model: akunu.Model) -> str:
    ...     async with model.generate_async("Once", max_tokens=4, stream=True) as stream:
    ...         pieces = [piece async for piece in stream]
    ...     return stream.completion if pieces else ""
    >>> with akunu.load() as model:
    ...     asyncio.run(tell(model)) == model.generate("Once", max_tokens=4)
    True
    """

    def __init__(
        self,
        model: _core.NativeModel,
        wakers: Wakers,
        begin: Callable[[], Awaitable[ReplyDecoder]],
    ) -> None:
        """Use `Model.generate_async(..., stream=True)`."""
        self._model = model  # without it, the engine would end the generation
        self._decoder: ReplyDecoder | None = None  # before it begins
        self._wakers = wakers
        self._begin = begin
        self._place: Place | None = None
        self.takes_one_by_one = False
        """Whether pieces depend on the tokens alone, and not on how many had come at a time."""
        self._untaken: deque[int] = deque()  # tokens that wait then
        self._is_asked = False
        self._is_closed = False
        self._has_waited = False  # so that others on the loop had their turn
        self._has_more = False  # which no one will tell: the next call gets it without waiting

    def __aiter__(self) -> AsyncTextStream:
        """Return the stream itself."""
        return self

    async def __anext__(self) -> str:
        """Wait for the next piece of text."""
        while (delta := await self._next_delta()) is not None:
            if isinstance(delta, TextDelta):
                return delta.text
        raise StopAsyncIteration

    def deltas(self) -> AsyncIterator[Delta]:
        """Iterate over the parts of the reply as they come, as `TextStream.deltas` does."""
        return _Deltas(self._next_delta)

    @property
    def is_closed(self) -> bool:
        """Whether nothing more comes: it is over, or was closed."""
        return self._is_closed

    @property
    def prompt_ids(self) -> list[int]:
        """The ids of the prompt; [] before it has begun."""
        return [] if self._decoder is None else self._decoder.prompt.tolist()

    def generated_ids(self, first: int = 0) -> list[int]:
        """Return the ids taken so far from this place on, with those whose text is held back."""
        return [] if self._decoder is None else self._decoder.taken(first)

    async def has_more(self) -> bool:
        """Wait for the next piece, and leave it to be taken; False: there are no more."""
        if self._is_asked:
            raise MisuseError("another task already waits for the next piece of this stream")
        decoder = self._decoder
        if decoder is None and self._is_closed:
            return False
        self._is_asked = True
        try:
            if decoder is None:
                decoder = await self._begun()
            if not self._has_waited:  # where pieces come faster than they are taken
                await asyncio.sleep(0)
            self._has_waited = False
            generation = decoder.generation
            while not decoder.pending and decoder.reason is None:
                if self._untaken:
                    decoder.take([self._untaken.popleft()])
                    continue
                if not self._has_more:
                    place = self._place
                    if place is None or place.loop is not asyncio.get_running_loop():
                        place = self._placed(generation)
                    if await place.news():
                        self._has_waited = True
                tokens = generation.next(timeout_ms=0)
                self._has_more = False
                if tokens:  # when it is over, no one wakes any more
                    is_full = len(tokens) >= _MOST_TOKENS
                    self._has_more = is_full or generation.finish_reason != ""
                if tokens and self.takes_one_by_one:
                    self._untaken += tokens
                elif tokens != []:
                    decoder.take(tokens)
        except BaseException:  # CancelledError above all
            self._end()
            raise
        finally:
            self._is_asked = False
        if decoder.reason is not None:
            self._end()
        return bool(decoder.pending)

    async def _next_delta(self) -> Delta | None:
        """Wait for the next part; None: there are no more."""
        if not await self.has_more():
            return None
        assert self._decoder is not None
        return self._decoder.pending.popleft()

    @property
    def completion(self) -> Completion:
        """The whole text with the facts about it; AkunuError before it is over."""
        if self._decoder is None and self._is_closed:
            return Completion("", finish_reason="cancelled")
        return super().completion if self._decoder is None else self._decoder.completion

    async def _begun(self) -> ReplyDecoder:
        if self._decoder is None:
            decoder = await self._begin()
            if self._is_closed:  # meanwhile
                decoder.cancel()
            self._decoder = decoder
        return self._decoder

    def _placed(self, generation: _core.Generation) -> Place:
        """Return where the running loop waits for it; a stream may continue in another loop."""
        if self._place is not None:
            self._place.leave()
        self._place = self._wakers.join(generation)
        return self._place

    def _end(self) -> None:
        self._is_closed = True
        if self._decoder is not None and self._decoder.reason is None:
            self._decoder.cancel()
        if self._place is not None:
            self._place.leave()
            self._place = None

    async def aclose(self) -> None:
        """Cancel the rest; there are no more pieces after that. Closing twice is fine."""
        if self._place is not None:
            self._place.interrupt()
        self._end()

    async def complete(self) -> Completion:
        """Take all pieces and return the completion."""
        try:
            while await self.has_more():
                assert self._decoder is not None
                self._decoder.pending.clear()
        finally:
            self._end()
        return self.completion

    async def __aenter__(self) -> AsyncTextStream:
        """Begin it: when this is over, the engine has the prompt."""
        await self._begun()
        return self

    async def __aexit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it."""
        await self.aclose()

    def __del__(self) -> None:
        """Cancel a text that no one can read any more."""
        super().__del__()
        place: Place | None = getattr(self, "_place", None)
        if place is not None:
            place.leave_later()


def streams_begun_together(
    model: _core.NativeModel,
    wakers: Wakers,
    begin: Callable[[], Awaitable[list[ReplyDecoder]]],
    n: int,
) -> list[AsyncTextStream]:
    """Return streams of which the first that is used begins all, by calling `begin` once.

    One that was closed or dropped before is cancelled as it begins, and changes none of the others.
    """
    streams: list[AsyncTextStream] = []
    beginning: asyncio.Task[None] | None = None

    async def begin_all() -> None:
        for place, decoder in zip(places, await begin(), strict=True):
            stream = place()
            if stream is None or stream._is_closed:
                decoder.cancel()
            if stream is not None:
                stream._decoder = decoder

    async def begun(place: weakref.ref[AsyncTextStream]) -> ReplyDecoder:
        nonlocal beginning
        running_loop()  # which says what is missing where there is none
        if beginning is None or beginning.cancelled():
            beginning = asyncio.ensure_future(begin_all())
        await asyncio.shield(beginning)  # others may wait for it, too
        stream = place()
        assert stream is not None, "it is waiting"
        assert stream._decoder is not None
        return stream._decoder

    for index in range(n):

        async def begun_at(index: int = index) -> ReplyDecoder:
            return await begun(places[index])

        streams.append(AsyncTextStream(model, wakers, begun_at))
    places = [weakref.ref(stream) for stream in streams]
    return streams


class _Deltas(AsyncIterator[Delta]):
    """An object rather than a generator: a loop that ends early leaves nothing to finish."""

    def __init__(self, take: Callable[[], Awaitable[Delta | None]]) -> None:
        self._take = take

    async def __anext__(self) -> Delta:
        if (delta := await self._take()) is None:
            raise StopAsyncIteration
        return delta
