"""Answers of /v1/messages: whole, and as the events that Anthropic's clients put together.

A message is a list of blocks, each begun, told and ended before the next: thoughts, text, calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from akunu.common.clock_and_ids import random_hex
from akunu.server.http.error_shapes import anthropic_error
from akunu.server.http.errors import ApiError
from akunu.server.http.sending import EVENT_STREAM, event
from akunu.server.text_request import AnswerContext
from akunu.text.async_text_stream import AsyncTextStream
from akunu.text.completion import Completion
from akunu.text.deltas import Delta, ReasoningDelta, TextDelta
from akunu.tools.calls import CallCollector, ToolCall
from akunu.tools.cut_arguments import arguments_of

SIGNATURE: Final = "akunu"  # clients want one, and send it back; nothing is signed here
_REASONS: Final = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}


class MessageAnswer:
    """One answer; an `Answer`."""

    media_type = EVENT_STREAM
    ping = event({"type": "ping"}, "ping")

    def __init__(self, context: AnswerContext) -> None:
        """Errors inside a stream have the id of the request."""
        self.model = context.model
        self._request_id = context.request_id
        self._id = f"msg_{random_hex(16)}"
        self._block = ""  # the type of the one that is open
        self._n_blocks = 0
        self._calls = CallCollector({})

    def from_replies(self, replies: Sequence[Completion]) -> Any:
        """Return the answer that is not a stream."""
        (reply,) = replies
        content: list[dict[str, Any]] = []
        if reply.reasoning:
            thought = {"thinking": reply.reasoning, "signature": SIGNATURE}
            content.append({"type": "thinking", **thought})
        if str(reply):
            content.append({"type": "text", "text": str(reply)})
        content += [{**_call(each), "input": arguments_of(each)} for each in reply.tool_calls]
        usage = _usage_of(reply)
        return self._message(content, usage, _ended(reply))

    def opened(self, streams: Sequence[AsyncTextStream]) -> bytes:
        """Return the first event, which has no content yet."""
        n_prompt, n_cached = streams[0].prompt_tokens, streams[0].cached_tokens
        nothing = {"stop_reason": None, "stop_sequence": None}
        message = self._message([], usage_of(n_prompt, n_cached), nothing)
        return _event("message_start", message=message) + self.ping

    def from_piece(self, index: int, delta: Delta, stream: AsyncTextStream) -> bytes:
        """Return the events of a part; a call is sent when it is complete, or cut."""
        if isinstance(delta, TextDelta):
            opening = self._open("text", {"text": ""})
            return opening + self._delta({"type": "text_delta", "text": delta.text})
        if isinstance(delta, ReasoningDelta):
            opening = self._open("thinking", {"thinking": "", "signature": ""})
            return opening + self._delta({"type": "thinking_delta", "thinking": delta.text})
        n_told = len(self._calls.calls)
        self._calls.add(delta)
        return b"".join(self._tool_use(call) for call in self._calls.calls[n_told:])

    def closed(self, index: int, stream: AsyncTextStream) -> bytes:
        """Return the end of the last block."""
        return self._close()

    def over(self, replies: Sequence[Completion]) -> bytes:
        """Return why it ended and what it cost."""
        (reply,) = replies
        usage = _usage_of(reply)
        last = _event("message_delta", delta=_ended(reply), usage=usage)
        return last + _event("message_stop")

    def failed(self, error: ApiError) -> bytes:
        """Return the error, which a client raises."""
        return event(anthropic_error(error, self._request_id), "error")

    def _message(
        self, content: list[Any], usage: Mapping[str, Any], ended: Mapping[str, Any]
    ) -> dict[str, Any]:
        head = {"id": self._id, "type": "message", "role": "assistant", "model": self.model}
        return {**head, "content": content, **ended, "usage": usage}

    def _tool_use(self, call: ToolCall) -> bytes:
        opening = self._close() + self._open("tool_use", {**_call(call), "input": {}})
        fragment = {"type": "input_json_delta", "partial_json": call.arguments_text}
        return opening + self._delta(fragment) + self._close()

    def _open(self, kind: str, block: Mapping[str, Any]) -> bytes:
        """Begin a block, unless the open one is of this type."""
        if self._block == kind:
            return b""
        before = self._close()
        self._block = kind
        started = {"type": kind, **block}
        return before + _event("content_block_start", index=self._n_blocks, content_block=started)

    def _delta(self, delta: Mapping[str, Any]) -> bytes:
        return _event("content_block_delta", index=self._n_blocks, delta=delta)

    def _close(self) -> bytes:
        if not self._block:
            return b""
        signed = b""
        if self._block == "thinking":
            signed = self._delta({"type": "signature_delta", "signature": SIGNATURE})
        stop = _event("content_block_stop", index=self._n_blocks)
        self._block = ""
        self._n_blocks += 1
        return signed + stop


def usage_of(
    n_prompt: int, n_cached: int, n_written: int = 0, n_thought: int = 0
) -> dict[str, Any]:
    """Return tokens as Anthropic counts them: cached tokens are not part of the input.

    `n_written`: tokens of the whole reply, `n_thought` of them thinking.
    """
    return {
        "input_tokens": n_prompt - n_cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": n_cached,
        "output_tokens": n_written,
        "output_tokens_details": {"thinking_tokens": n_thought},
    }


def _usage_of(reply: Completion) -> dict[str, Any]:
    tokens = (reply.prompt_tokens, reply.cached_tokens)
    return usage_of(*tokens, reply.completion_tokens, reply.reasoning_tokens)


def _ended(reply: Completion) -> dict[str, Any]:
    reason = "stop_sequence" if reply.stop is not None else _REASONS[reply.finish_reason]
    return {"stop_reason": reason, "stop_sequence": reply.stop}


def _call(call: ToolCall) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.id, "name": call.name}


def _event(kind: str, **data: Any) -> bytes:
    return event({"type": kind, **data}, kind)
