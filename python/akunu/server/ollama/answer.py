"""Answers of Ollama's routes: JSON, or a stream with an object in each line."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, Final

from akunu.server.http.errors import ApiError
from akunu.server.http.json_body import json_bytes
from akunu.server.openai.chat_answer import logprobs_of
from akunu.server.unsent_logprobs import UnsentLogprobs
from akunu.text.async_text_stream import AsyncTextStream
from akunu.text.completion import Completion
from akunu.text.deltas import Delta, ReasoningDelta, TextDelta
from akunu.tools.calls import CallCollector, ToolCall
from akunu.tools.cut_arguments import arguments_of

NDJSON: Final = "application/x-ndjson"


class OllamaAnswer:
    """One answer; an `Answer`."""

    media_type = NDJSON
    ping = b""  # there are no comments in JSON

    def __init__(
        self, model: str, *, is_chat: bool, began: float = 0.0, has_logprobs: bool = False
    ) -> None:
        """`model`: which is loaded now. `is_chat`: it has messages, otherwise a `response`.

        `began`: when the request did.
        """
        self.model = model
        self._is_chat = is_chat
        self._has_logprobs = has_logprobs
        self._began, self._held = began, time.monotonic()
        self._unsent = UnsentLogprobs()
        self._calls = CallCollector({})

    def from_replies(self, replies: Sequence[Completion]) -> Any:
        """Return the answer that is not a stream."""
        (reply,) = replies
        thought = {"thinking": reply.reasoning} if reply.reasoning else {}
        calls = [_call(each, index) for index, each in enumerate(reply.tool_calls)]
        logprobs = logprobs_of(reply.answer_logprobs)["content"] if self._has_logprobs else []
        return self._said(str(reply), {**thought, **_some(tool_calls=calls)}, logprobs) | (
            self._ended(reply)
        )

    def opened(self, streams: Sequence[AsyncTextStream]) -> bytes:
        """Return nothing: the first line has text."""
        return b""

    def from_piece(self, index: int, delta: Delta, stream: AsyncTextStream) -> bytes:
        """Return the line of a part; a call is sent when it is complete, or cut."""
        logprobs = self._new_logprobs(stream)
        if isinstance(delta, TextDelta):
            return self._line(self._said(delta.text, {}, logprobs))
        if isinstance(delta, ReasoningDelta):
            return self._line(self._said("", {"thinking": delta.text}, logprobs))
        n_told = len(self._calls.calls)
        self._calls.add(delta)
        new = enumerate(self._calls.calls[n_told:], n_told)
        lines = [self._said("", {"tool_calls": [_call(call, at)]}, []) for at, call in new]
        return b"".join(map(self._line, lines))

    def closed(self, index: int, stream: AsyncTextStream) -> bytes:
        """Return nothing: the last line comes with the numbers."""
        return b""

    def over(self, replies: Sequence[Completion]) -> bytes:
        """Return the last line, with what it cost."""
        return self._line({**self._said("", {}, []), **self._ended(replies[0])})

    def failed(self, error: ApiError) -> bytes:
        """Return the error, which a client raises."""
        return self._line({"error": error.message})

    def nothing(self, reason: str) -> dict[str, Any]:
        """Return the answer to a request without a prompt."""
        return {**self._said("", {}, []), "done": True, "done_reason": reason}

    def _said(self, text: str, more: Mapping[str, Any], logprobs: list[Any]) -> dict[str, Any]:
        head = {"model": self.model, "created_at": now()}
        if self._is_chat:
            said: dict[str, Any] = {"message": {"role": "assistant", "content": text, **more}}
        else:
            said = {"response": text, **more}
        return {**head, **said, "done": False, **_some(logprobs=logprobs)}

    def _ended(self, reply: Completion) -> dict[str, Any]:
        return {
            "done": True,
            "done_reason": "length" if reply.finish_reason == "length" else "stop",
            "total_duration": _nanoseconds(time.monotonic() - self._began),
            "load_duration": _nanoseconds(self._held - self._began),
            "prompt_eval_count": reply.prompt_tokens,
            "prompt_eval_duration": _nanoseconds(reply.prompt_seconds),
            "eval_count": reply.completion_tokens,
            "eval_duration": _nanoseconds(reply.completion_seconds),
        }

    def _line(self, content: Mapping[str, Any]) -> bytes:
        return json_bytes(content) + b"\n"

    def _new_logprobs(self, stream: AsyncTextStream) -> list[Any]:
        if not self._has_logprobs:
            return []
        found: list[Any] = logprobs_of(self._unsent.take(stream.answer_logprobs))["content"]
        return found


def now(seconds: float | None = None) -> str:
    """Return a time as Ollama writes it; None: this moment.

    >>> now(0.0)
    '1970-01-01T00:00:00.000000Z'
    """
    at = time.time() if seconds is None else seconds
    told = datetime.fromtimestamp(at, timezone.utc).isoformat(timespec="microseconds")
    return told.replace("+00:00", "Z")


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1e9)


def _some(**values: list[Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value}


def _call(call: ToolCall, index: int) -> dict[str, Any]:
    function = {"index": index, "name": call.name, "arguments": arguments_of(call)}
    return {"id": call.id, "function": function}
