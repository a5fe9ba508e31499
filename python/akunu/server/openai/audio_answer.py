"""Answers about audio, as OpenAI has them: JSON, a text, subtitles, or a stream of events.

The work is done when the answer is sent; a client that goes away ends it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from akunu.errors import AkunuError
from akunu.server.fields.table import ignored_header
from akunu.server.http.errors import ApiError, api_error, stopping
from akunu.server.http.json_body import JsonResponse
from akunu.server.http.sending import EVENT_STREAM, PING, Events, event, pinging, unless_gone
from akunu.server.openai.audio_fields import AudioRequest
from akunu.server.state import entry_of, state_of
from akunu.speech.mel import SAMPLE_RATE
from akunu.speech.model import SpeechModel
from akunu.speech.segment_stream import SegmentStream
from akunu.speech.segments import Segment
from akunu.speech.transcription import Transcription
from akunu.speech.vocabulary.languages import LANGUAGE_NAMES


class AudioAnswer(Response):
    """The answer to a request about audio."""

    def __init__(self, request: Request, asked: AudioRequest, samples: NDArray[np.float32]) -> None:
        """`samples`: at 16 kHz, [n]."""
        super().__init__()
        self._state = state_of(request)
        self._entry = entry_of(request)
        self._asked = asked
        self._samples = samples
        self._more_headers = ignored_header(asked.ignored)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer; where that has not begun, raises ApiError, or ClientDisconnect."""
        async with AsyncExitStack() as stack:
            held = stack.enter_async_context(self._state.models.use_speech(self._asked.model))
            served, model = await unless_gone(receive, held)  # loading may take minutes
            self._entry.model = served.name
            self._entry.audio_seconds = seconds = len(self._samples) / SAMPLE_RATE
            if self._asked.is_stream:
                await self._send_events(receive, send, model)
            else:
                work = model.transcribe_async(self._samples, **self._asked.arguments)
                try:
                    said = await unless_gone(receive, work)
                except AkunuError as error:
                    raise self._api_error(error) from error
                await self._whole(said)(scope, receive, send)
            self._state.metrics.audio_seconds.labels(served.name).inc(seconds)

    def _api_error(self, error: Exception) -> ApiError:
        return api_error(error, names=self._asked.names)

    def _whole(self, said: Transcription) -> Response:
        form = self._asked.format
        if form == "json":
            return JsonResponse(as_json(said), headers=self._more_headers)
        if form == "verbose_json":
            found = as_verbose_json(said, self._asked.granularities)
            return JsonResponse(found, headers=self._more_headers)
        # As plain text, which is what openai-python returns as a str.
        text = f"{said.text.strip()}\n" if form == "text" else said.render(form)
        return PlainTextResponse(text, headers=self._more_headers)

    async def _send_events(self, receive: Receive, send: Send, model: SpeechModel) -> None:
        events = Events(send)
        segments = segments_of(model, self._samples, self._asked.arguments)

        async def tell() -> None:
            told = ""
            async for segment in segments:
                delta = segment.text if told else segment.text.lstrip()
                told += delta
                await events.put(event({"type": "transcript.text.delta", "delta": delta}))
            await events.put(event({"type": "transcript.text.done", "text": told}))

        await events.begin(EVENT_STREAM, self._more_headers)
        async with aclosing(segments), pinging(events, PING, self._state.settings.ping_seconds):
            try:
                await unless_gone(receive, tell())
            except asyncio.CancelledError:
                told = stopping()
                await self._fail(events, told)
                raise
            except ClientDisconnect:
                return
            except Exception as error:
                await self._fail(events, self._api_error(error))
        await events.end()

    async def _fail(self, events: Events, told: ApiError) -> None:
        self._entry.error = told.message
        await events.put(event(told.body))


async def segments_of(
    model: SpeechModel, samples: NDArray[np.float32], arguments: Mapping[str, Any]
) -> AsyncGenerator[Segment, None]:
    """Yield segments as they come; when the iterator is closed, the work ends.

    Raises what `SpeechModel.transcribe` raises.
    """
    loop = asyncio.get_running_loop()
    found: asyncio.Queue[Segment | Exception | None] = asyncio.Queue()

    def begin() -> SegmentStream:
        stream: SegmentStream = model.transcribe(samples, stream=True, **arguments)
        return stream

    stream = await asyncio.to_thread(begin)

    def work() -> None:
        end: Exception | None = None
        try:
            for segment in stream:
                loop.call_soon_threadsafe(found.put_nowait, segment)
        except Exception as error:
            end = error
        with suppress(RuntimeError):  # the loop is closed: no one waits
            loop.call_soon_threadsafe(found.put_nowait, end)

    threading.Thread(target=work, name="akunu transcription").start()
    try:
        while (each := await found.get()) is not None:
            if isinstance(each, Exception):
                raise each
            yield each
    finally:
        stream.cancel()


def as_json(said: Transcription) -> dict[str, Any]:
    """Return the text, and how long the audio was."""
    return {"text": said.text.strip(), "usage": _usage(said)}


def as_verbose_json(
    said: Transcription, granularities: Collection[str] = ("segment",)
) -> dict[str, Any]:
    """Return the text, and its segments with all that is known of them, its words, or both."""
    is_translated = said.task == "translate"
    language = "english" if is_translated else LANGUAGE_NAMES.get(said.language, said.language)
    found: dict[str, Any] = {
        "task": said.task,
        "language": language,
        "duration": said.duration,
        "text": said.text.strip(),
        "usage": _usage(said),
    }
    if "segment" in granularities:
        found["segments"] = [_segment(each) for each in said.segments]
    if "word" in granularities:
        found["words"] = [
            {"word": each.word.strip(), "start": each.start, "end": each.end}
            for each in said.words or ()
        ]
    return found


def _segment(segment: Segment) -> dict[str, Any]:
    found = asdict(segment)
    del found["words"], found["channel"]
    return found


def _usage(said: Transcription) -> dict[str, Any]:
    return {"type": "duration", "seconds": said.duration}
