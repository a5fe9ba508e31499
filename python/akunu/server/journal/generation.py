"""Answers that are journalled: written by their own task, and read by their clients.

A client that goes away, or a server that is killed, leaves an answer half written. Who asks again
with the same key and body gets the same bytes: first those of the journal, then those that follow.
They follow because the texts are generated again, token by token, from the same prompt and seed;
each step is compared with what the journal has of it, and told only after that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from akunu.common.clock_and_ids import DerivedIds, ids_from
from akunu.errors import AkunuError
from akunu.model import Model
from akunu.server.generation import Generation
from akunu.server.http.access_log import AccessEntry
from akunu.server.http.errors import ApiError, invalid, stopping
from akunu.server.http.json_body import json_bytes
from akunu.server.http.sending import EVENT_STREAM, PING, Events, beside, pinging, unless_gone
from akunu.server.journal.idempotency import Idempotency
from akunu.server.journal.journal import WHOLE, AnswerStep, KeptAnswer
from akunu.server.state import ServerState
from akunu.server.text_request import Answer, TextRequest
from akunu.storage.cache_identity import computed_on, kv_type_of
from akunu.text.async_text_stream import AsyncTextStream
from akunu.text.deltas import Delta

LINGER_SECONDS: Final = 30.0
"""How long an answer is written on when no one reads it: a client may be on its way back."""
REPLAYED: Final = "idempotent-replayed"
"""The header of answers that an earlier request started; Stripe's name for it."""

_BEGINNING: Final = 2**32
"""The part that is drawn from while texts begin: what a model knows by then is not tried again, so
how much is drawn is not always the same."""


class JournalledGeneration(Generation):
    """The answer to a request with an idempotency key."""

    def __init__(
        self, state: ServerState, entry: AccessEntry, wanted: TextRequest, named: Idempotency
    ) -> None:
        """`named`: what the request says of its answer in the journal."""
        super().__init__(state, entry, wanted)
        self._named = named
        self._journal = named.journal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer from the journal, and with what follows."""
        if self._named.n_events is not None and not self._wanted.is_stream:
            raise invalid("Last-Event-ID", "Last-Event-ID needs stream: true")
        kept, headers = await self._found()
        try:
            with kept.reading(LINGER_SECONDS):
                await unless_gone(receive, _begun(kept))
                assert kept.begun is not None
                headers = {**kept.begun["headers"], **headers}
                if self._wanted.is_stream:
                    await self._send_stream(receive, send, kept, headers)
                else:
                    await unless_gone(receive, _over(kept))
                    whole = Response(kept.body, 200, headers, "application/json")
                    await whole(scope, receive, send)
        finally:
            await self._journal.let_go(kept)

    async def _found(self) -> tuple[KeptAnswer, dict[str, str]]:
        """Return the answer, which a task writes unless it is over, and headers that say so."""
        body = await self._named.body()
        kept = await self._journal.find(self._named.name, body, is_stream=self._wanted.is_stream)
        headers = {REPLAYED: "true"} if kept.begun is not None or kept.runner is not None else {}
        if kept.runner is None and not kept.is_over:
            self._journal.run(kept, asyncio.ensure_future(self._run(kept)))
        return kept, headers

    async def _send_stream(
        self, receive: Receive, send: Send, kept: KeptAnswer, headers: Mapping[str, str]
    ) -> None:
        position = self._named.n_events or 0
        if kept.is_over and position > len(kept.events):
            n = len(kept.events)
            raise invalid(
                "Last-Event-ID", f"Last-Event-ID is {position}; this stream has {n} events"
            )
        events = Events(send)
        is_gone = False

        async def watch() -> None:
            nonlocal is_gone
            while (await receive())["type"] != "http.disconnect":
                pass
            is_gone = True
            kept.tell()

        await events.begin(EVENT_STREAM, headers)
        async with beside(watch()), pinging(events, PING, self._settings.ping_seconds):
            try:
                while not is_gone:
                    new = kept.events[position:]
                    position += len(new)
                    await events.put(b"".join(new))
                    if position < len(kept.events):
                        continue
                    if kept.is_over or kept.failure is not None:
                        break
                    await kept.changed()
            except asyncio.CancelledError:
                await events.put(kept.say_failed(stopping()))
                await events.end()
                raise
            if kept.failure is not None and not kept.is_over:
                await events.put(kept.say_failed(kept.failure))
        if not is_gone:
            await events.end()

    async def _run(self, kept: KeptAnswer) -> None:
        """Write an answer, or continue with it."""
        try:
            with ids_from(_derived_ids_of(kept)):
                async with AsyncExitStack() as stack:
                    number = 0
                    try:
                        held = self._models.use(self._wanted.model, self._wanted.keep_seconds)
                        served, model = await stack.enter_async_context(held)
                        answer = self._answer(served, model)
                        kept.say_failed = answer.failed
                        self._wanted.arguments.setdefault("seed", kept.head["seed"])
                        with ids_from(_derived_ids_of(kept).part(_BEGINNING)):
                            streams = await self._wanted.begin(served, model, self._settings)
                            for number, stream in enumerate(streams):  # noqa: B007
                                stream.takes_one_by_one = True
                                await stack.enter_async_context(stream)
                        await _begin(kept, model, streams, self._wanted.headers)
                    except Exception as error:
                        raise self._api_error(error, number) from error
                    self._observer.began(served.name, streams)
                    stack.push_async_callback(self._end, streams)
                    last = await self._write(kept, answer, streams)
            await kept.end(last)
        except asyncio.CancelledError:
            kept.fail(kept.failure or stopping())
            raise
        except Exception as error:
            failure = self._api_error(error)
            if kept.is_here:
                self._observer.failed(failure, error)
            kept.fail(failure)
        finally:
            self._journal.ended(kept)
            await self._journal.let_go(kept, forget=kept.begun is None)

    async def _write(
        self, kept: KeptAnswer, answer: Answer, streams: Sequence[AsyncTextStream]
    ) -> AnswerStep:
        """Write all but the last step, which is returned."""
        steps = _Steps(kept, is_told=self._wanted.is_stream)
        steps.take(WHOLE, [], partial(answer.opened, streams))
        drawn = _derived_ids_of(kept)
        left = [_Text(*each, drawn.part(each[0])) for each in enumerate(streams)]
        while left:  # in turn: which text is faster today must not show
            for text in list(left):
                delta = await text.next()
                if delta is None:
                    tell = partial(answer.closed, text.index, text.stream)
                    left.remove(text)
                else:
                    tell = partial(answer.from_piece, text.index, delta, text.stream)
                    self._observer.part(text.stream)
                steps.take(text.index, text.new_tokens(), tell)
        steps.check_complete()
        replies = [stream.completion for stream in streams]
        if self._wanted.is_stream:
            return AnswerStep(WHOLE, [], answer.over(replies))
        return AnswerStep(WHOLE, [], json_bytes(answer.from_replies(replies)))


class _Text:
    """One of the texts of an answer, whose ids are drawn from its own source."""

    def __init__(self, index: int, stream: AsyncTextStream, drawn: DerivedIds) -> None:
        self.index = index
        self.stream = stream
        self._drawn = drawn
        self._deltas = stream.deltas()
        self._n_taken = 0

    async def next(self) -> Delta | None:
        """Wait for the next part; None: it is over."""
        with ids_from(self._drawn):
            async for delta in self._deltas:
                return delta
        if self.stream.finish_reason == "cancelled":
            raise AkunuError("the text was cancelled")
        return None

    def new_tokens(self) -> list[int]:
        """Return those that came since the last call."""
        new = self.stream.generated_ids(self._n_taken)
        self._n_taken += len(new)
        return new


class _Steps:
    """Takes the steps of texts: those that the journal has, then new ones."""

    def __init__(self, kept: KeptAnswer, *, is_told: bool) -> None:
        """`is_told`: whether steps have events; an answer that is not a stream has none."""
        self._kept = kept
        self._is_told = is_told
        self._known = list(kept.steps)
        self._n_taken = 0

    def take(self, text: int, tokens: list[int], tell: Callable[[], bytes]) -> None:
        """Compare a step with the journal's, or have it there; `tell` makes its events."""
        event = tell() if self._is_told else b""
        if not event and not tokens:
            return
        if self._n_taken == len(self._known):
            self._kept.add(AnswerStep(text, tokens, event))
            return
        known = self._known[self._n_taken]
        if (known.text, known.tokens) != (text, tokens):
            raise self._contradicted()
        self._n_taken += 1

    def check_complete(self) -> None:
        """Raise where the journal has steps that did not come."""
        if self._n_taken < len(self._known):
            raise self._contradicted()

    def _contradicted(self) -> ApiError:
        return ApiError(
            500,
            f"the answer in the journal ({self._kept.path.name}) differs at step {self._n_taken}: "
            f"the model or the settings have changed; use another idempotency key",
            code="journal_contradicted",
            headers={"x-should-retry": "false"},
        )


def _derived_ids_of(kept: KeptAnswer) -> DerivedIds:
    return DerivedIds(bytes.fromhex(kept.head["drawn"]), kept.head["now"])


async def _begin(
    kept: KeptAnswer, model: Model, streams: Sequence[AsyncTextStream], headers: Mapping[str, str]
) -> None:
    """Note what the texts began with; ApiError where it is not what they began with before."""
    native = model._open()
    record: dict[str, Any] = {
        "computed_by": {
            **computed_on(native),
            "kv_type": kv_type_of(native),
            "context": model.context,
        },
        "prompts": [stream.prompt_ids for stream in streams],
        "headers": dict(headers),
    }
    for part, what in (("computed_by", "device, version or context"), ("prompts", "prompt")):
        if kept.begun is not None and kept.begun[part] != record[part]:
            raise ApiError(
                409,
                f"this answer was started with another {what} and cannot be continued here; use "
                f"another idempotency key",
                code="journal_of_another",
                headers={"x-should-retry": "false"},
            )
    await kept.begin(record)


async def _begun(kept: KeptAnswer) -> None:
    """Wait until the texts of an answer have begun in this process, unless it is over."""
    while not kept.is_here and not kept.is_over and kept.failure is None:
        await kept.changed()
    if kept.failure is not None and not kept.is_here:
        raise kept.failure


async def _over(kept: KeptAnswer) -> None:
    """Wait until an answer is over."""
    while not kept.is_over and kept.failure is None:
        await kept.changed()
    if kept.failure is not None and not kept.is_over:
        raise kept.failure
