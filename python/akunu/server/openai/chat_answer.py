"""Answers of /v1/chat/completions: whole, and as chunks.

Clients join the deltas of a field, so what names something (the role, the id and the name of a
call) stands in one delta and in no other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from akunu import __version__
from akunu.common.clock_and_ids import now, random_hex
from akunu.server.http.errors import ApiError
from akunu.server.http.json_body import json_string
from akunu.server.http.sending import EVENT_STREAM, PING, event
from akunu.server.text_request import AnswerContext
from akunu.server.unsent_logprobs import UnsentLogprobs
from akunu.server.usage import facts_of, finite, timings_of, usage_of
from akunu.text.async_text_stream import AsyncTextStream
from akunu.text.completion import Completion
from akunu.text.deltas import (
    Delta,
    ReasoningDelta,
    TextDelta,
    ToolCallArguments,
    ToolCallCut,
    ToolCallDropped,
    ToolCallEnd,
    ToolCallStart,
)
from akunu.text.logprobs import TokenLogprob

FINGERPRINT: Final = f"akunu-{__version__}"
DONE: Final = b"data: [DONE]\n\n"


class ChatAnswer:
    """One answer; an `Answer`."""

    media_type = EVENT_STREAM
    ping = PING

    def __init__(
        self,
        context: AnswerContext,
        *,
        includes_usage: bool = False,
        has_logprobs: bool = False,
        has_timings: bool = False,
        is_legacy: bool = False,
        reasoning_field: str = "reasoning_content",
    ) -> None:
        """`has_timings`: each chunk has those of its text so far. `is_legacy`: calls are a
        `function_call`. `reasoning_field`: see ServerSettings."""
        self._includes_usage = includes_usage
        self._has_logprobs = has_logprobs
        self._has_timings = has_timings
        self._timings: dict[str, Any] | None = None  # of the text whose chunk is written now
        self._is_legacy = is_legacy
        both = reasoning_field == "both"
        self._reasoning = ("reasoning_content", "reasoning") if both else (reasoning_field,)
        self._head = {
            "id": f"chatcmpl-{random_hex(16)}",
            "object": "chat.completion",
            "created": int(now()),
            "model": context.model,
            "system_fingerprint": FINGERPRINT,
        }
        self._calls: dict[int, _Calls] = {}
        self._unsent: UnsentLogprobs | None = None  # before the first logprobs are reported
        self._opened: set[int] = set()
        self._around: dict[int, tuple[bytes, bytes]] = {}

    def from_replies(self, replies: Sequence[Completion]) -> Any:
        """Return the answer that is not a stream."""
        choices = [
            {
                "index": index,
                "message": self._message(reply),
                "logprobs": logprobs_of(reply.answer_logprobs) if self._has_logprobs else None,
                "finish_reason": self._reason(reply.finish_reason),
            }
            for index, reply in enumerate(replies)
        ]
        return {**self._head, "choices": choices, "usage": usage_of(replies), **facts_of(replies)}

    def opened(self, streams: Sequence[AsyncTextStream]) -> bytes:
        """Return nothing: each text opens with its own first chunk."""
        self._head["object"] = "chat.completion.chunk"
        return b""

    def from_piece(self, index: int, delta: Delta, stream: AsyncTextStream) -> bytes:
        """Return the chunk of a part, if it may be sent already."""
        self._time(stream)
        if isinstance(delta, TextDelta):
            if index in self._calls and self._calls[index].is_cut:
                return b""
            if index in self._opened and not (self._has_logprobs or self._has_timings):
                before, behind = self._around_text(index)
                return before + json_string(delta.text) + behind
            return self._chunk(index, {"content": delta.text}, self._new_logprobs(index, stream))
        if isinstance(delta, ReasoningDelta):
            return self._chunk(index, dict.fromkeys(self._reasoning, delta.text), None)
        if index not in self._calls:
            self._calls[index] = _Calls(are_held=stream.holds_calls)
        told = map(self._call_delta, self._calls[index].parts_after(delta))
        return b"".join(
            self._chunk(index, each, self._new_logprobs(index, stream))
            for each in told
            if each is not None
        )

    def _around_text(self, index: int) -> tuple[bytes, bytes]:
        """Return what stands around each piece of a text: it is written once, the piece often."""
        if index not in self._around:
            before, _, behind = self._chunk(index, {"content": ""}, None).partition(b'""')
            self._around[index] = (before, behind)
        return self._around[index]

    def closed(self, index: int, stream: AsyncTextStream) -> bytes:
        """Return the last chunk of a text."""
        self._time(stream)
        logprobs = self._new_logprobs(index, stream)
        reason = self._reason(stream.finish_reason)
        return self._chunk(index, {}, logprobs, finish_reason=reason)

    def over(self, replies: Sequence[Completion]) -> bytes:
        """Return the usage, where it was requested, and the end."""
        usage = b""
        if self._includes_usage:
            facts = {"usage": usage_of(replies), **facts_of(replies)}
            usage = event({**self._head, "choices": [], **facts})
        return usage + DONE

    def failed(self, error: ApiError) -> bytes:
        """Return the error, which a client raises."""
        return event(error.body)

    def _chunk(
        self,
        index: int,
        delta: Mapping[str, Any],
        logprobs: Any,
        *,
        finish_reason: str | None = None,
    ) -> bytes:
        opening = b""
        if index not in self._opened:
            self._opened.add(index)
            opening = self._chunk(index, {"role": "assistant", "content": ""}, None)
        choice: dict[str, Any] = {"index": index, "delta": delta, "finish_reason": finish_reason}
        if self._has_logprobs:
            choice["logprobs"] = logprobs
        chunk: dict[str, Any] = {**self._head, "choices": [choice]}
        if self._timings is not None:
            chunk["timings"] = self._timings
        if self._includes_usage:
            chunk["usage"] = None
        return opening + event(chunk)

    def _time(self, stream: AsyncTextStream) -> None:
        if self._has_timings:
            self._timings = timings_of(stream)

    def _new_logprobs(self, index: int, stream: AsyncTextStream) -> Any:
        if not self._has_logprobs:
            return None
        if self._unsent is None:
            self._unsent = UnsentLogprobs()
        new = self._unsent.take(stream.answer_logprobs, index)
        return logprobs_of(new) if new else None

    def _message(self, reply: Completion) -> dict[str, Any]:
        calls = [dict(call.message) for call in reply.tool_calls]
        message: dict[str, Any] = {
            "role": "assistant",
            "content": str(reply) if str(reply) or not calls else None,
            "refusal": None,
        }
        if reply.reasoning:
            message.update(dict.fromkeys(self._reasoning, reply.reasoning))
        if calls and self._is_legacy:
            message["function_call"] = calls[0]["function"]
        elif calls:
            message["tool_calls"] = calls
        return message

    def _call_delta(self, part: _CallPart) -> dict[str, Any] | None:
        function = {"arguments": part.arguments}
        if part.begun is not None:
            function = {"name": part.begun.name, "arguments": ""}
        if self._is_legacy:  # which knows one call
            return {"function_call": function} if part.number == 0 else None
        call: dict[str, Any] = {"index": part.number, "function": function}
        if part.begun is not None:
            call = {"index": part.number, "id": part.begun.id, "type": "function", **call}
        return {"tool_calls": [call]}

    def _reason(self, reason: str) -> str:
        return "function_call" if self._is_legacy and reason == "tool_calls" else reason


@dataclass(frozen=True, slots=True)
class _CallPart:
    """What may be sent of a call: that it begins, or a piece of its arguments."""

    number: int
    begun: ToolCallStart | None = None
    arguments: str = ""


class _Calls:
    """Decides which parts of calls may be sent, and when.

    A sent part cannot be taken back. If no grammar enforces the calls, each one is sent when it is
    complete, or cut by `max_tokens`.
    """

    def __init__(self, *, are_held: bool) -> None:
        self._are_held = are_held
        self._n_told = 0
        self._begun: ToolCallStart | None = None
        self._pieces: list[str] = []
        self.is_cut = False
        """Whether a call that was reported did not come to its end; what follows is its text."""

    def parts_after(self, delta: Delta) -> list[_CallPart]:
        """Return what may be sent now that this delta has come."""
        if isinstance(delta, ToolCallStart):
            self._begun, self._pieces = delta, []
            return [_CallPart(self._n_told, delta)] if self._are_held else []
        if isinstance(delta, ToolCallArguments):
            if self._are_held:
                return [_CallPart(self._n_told, arguments=delta.text)]
            self._pieces.append(delta.text)
        elif isinstance(delta, ToolCallDropped):
            self._begun = None
            self.is_cut = self._are_held
        elif isinstance(delta, (ToolCallEnd, ToolCallCut)) and self._begun is not None:
            begun, number = self._begun, self._n_told
            self._begun = None
            self._n_told += 1
            if not self._are_held:
                whole = _CallPart(number, arguments="".join(self._pieces))
                return [_CallPart(number, begun), whole]
        return []


def logprobs_of(logprobs: Sequence[TokenLogprob] | None) -> dict[str, Any]:
    """Return logprobs as OpenAI has them."""
    content = [
        {**_logprob(each), "top_logprobs": [_logprob(top) for top in each.top]}
        for each in logprobs or ()
    ]
    return {"content": content, "refusal": None}


def _logprob(each: TokenLogprob) -> dict[str, Any]:
    return {"token": each.text, "logprob": finite(each.logprob), "bytes": list(each.bytes)}
