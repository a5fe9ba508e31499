"""Answers of /v1/responses: whole, and as events, each with its number.

A response is a list of items: thoughts, a message, calls. Clients build it from the events and
raise where one is missing, so each item is begun, told and ended before the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from akunu.common.clock_and_ids import now, random_hex
from akunu.server.http.errors import ApiError
from akunu.server.http.sending import EVENT_STREAM, PING, event
from akunu.server.openai.chat_answer import logprobs_of
from akunu.server.text_request import AnswerContext
from akunu.server.unsent_logprobs import UnsentLogprobs
from akunu.server.usage import facts_of
from akunu.text.async_text_stream import AsyncTextStream
from akunu.text.completion import Completion
from akunu.text.deltas import Delta, ReasoningDelta, TextDelta
from akunu.tools.calls import CallCollector, ToolCall

CANCELLED: Final = "response_cancelled"
"""The code of the error that ends the stream of a response that a client cancels."""
_TEXT_OF: Final = {"message": "output_text", "reasoning": "reasoning_text"}


class ResponseAnswer:
    """One answer; an `Answer`."""

    media_type = EVENT_STREAM
    ping = PING

    def __init__(
        self,
        context: AnswerContext,
        echoed: Mapping[str, Any],
        *,
        has_logprobs: bool = False,
        namespaces: Mapping[str, tuple[str, str]] | None = None,
        keep: Callable[[dict[str, Any]], None] | None = None,
        identity: tuple[str, int] | None = None,
    ) -> None:
        """`echoed`: fields of the request that it repeats. `namespaces`: by names of functions.

        `keep`: stores the response when it is over, before the client has all of it. `identity`:
        id and time of a response that is stored already, and again when its text begins.
        """
        self.model = context.model
        self._echoed = echoed
        self._has_logprobs = has_logprobs
        self._namespaces = namespaces or {}
        self._keep = keep
        self._is_stored = identity is not None
        self._id, self._created = identity or (new_id("resp"), int(now()))
        self._n_events = 0
        self._output: list[dict[str, Any]] = []
        self._item: dict[str, Any] | None = None  # the one that is being sent
        self._text: list[str] = []
        self._logprobs: list[Any] = []  # of its text
        self._unsent = UnsentLogprobs()
        self._calls = CallCollector({})

    def queued(self) -> dict[str, Any]:
        """Return the response before its text begins."""
        return self._response("queued")

    def from_replies(self, replies: Sequence[Completion]) -> Any:
        """Return the answer that is not a stream."""
        (reply,) = replies
        if reply.reasoning:
            self._output.append(_texts("reasoning", reply.reasoning))
        if str(reply) or not reply.tool_calls:
            logprobs = logprobs_of(reply.answer_logprobs)["content"] if self._has_logprobs else []
            self._output.append(_texts("message", str(reply), logprobs))
        self._output += [self._call(each) for each in reply.tool_calls]
        return self._ended(reply)

    def opened(self, streams: Sequence[AsyncTextStream]) -> bytes:
        """Return the first events: the response without output."""
        response = self._response("in_progress")
        if self._keep is not None and self._is_stored:
            self._keep(response)
        created = self._event("response.created", response=response)
        return created + self._event("response.in_progress", response=response)

    def from_piece(self, index: int, delta: Delta, stream: AsyncTextStream) -> bytes:
        """Return the events of a part; a call is sent when it is complete, or cut."""
        logprobs = self._new_logprobs(stream)
        if isinstance(delta, TextDelta):
            opening = self._open("message")
            self._logprobs += logprobs
            told = self._delta("response.output_text.delta", delta.text, logprobs=logprobs)
            return opening + told
        if isinstance(delta, ReasoningDelta):
            opening = self._open("reasoning")
            return opening + self._delta("response.reasoning_text.delta", delta.text)
        n_told = len(self._calls.calls)
        self._calls.add(delta)
        return b"".join(self._function_call(call) for call in self._calls.calls[n_told:])

    def closed(self, index: int, stream: AsyncTextStream) -> bytes:
        """Return the end of the last item; a reply without any is an empty message."""
        opening = b"" if self._output or self._item else self._open("message")
        return opening + self._close(is_cut=stream.finish_reason == "length")

    def over(self, replies: Sequence[Completion]) -> bytes:
        """Return the whole response."""
        response = self._ended(replies[0])
        return self._event(f"response.{response['status']}", response=response)

    def failed(self, error: ApiError) -> bytes:
        """Return the response that failed, and the error, which a client raises."""
        why = {"code": error.code or "server_error", "message": error.message}
        response = {**self._response("failed"), "error": why}
        if self._keep is not None and error.code not in ("server_stopping", CANCELLED):
            with suppress(ApiError):  # which may be why it failed
                self._keep(response)
        told = {"code": error.code, "message": error.message, "param": error.param}
        return self._event("response.failed", response=response) + self._event(
            "error", **told, **error.body
        )

    def _response(self, status: str) -> dict[str, Any]:
        return {
            "id": self._id,
            "object": "response",
            "created_at": self._created,
            "status": status,
            "model": self.model,
            "output": list(self._output),
            "error": None,
            "incomplete_details": None,
            **self._echoed,
            "usage": None,
        }

    def _ended(self, reply: Completion) -> dict[str, Any]:
        is_cut = reply.finish_reason == "length"
        response = self._response("incomplete" if is_cut else "completed")
        if is_cut:
            response["incomplete_details"] = {"reason": "max_output_tokens"}
            if self._output and self._output[-1]["type"] != "function_call":
                self._output[-1]["status"] = "incomplete"  # a call says itself whether it is cut
        response |= {"usage": response_usage(reply), **facts_of([reply])}
        if self._keep is not None:
            self._keep(response)
        return response

    def _event(self, kind: str, **data: Any) -> bytes:
        number = self._n_events
        self._n_events += 1
        return event({"type": kind, "sequence_number": number, **data}, kind)

    def _place(self) -> dict[str, Any]:
        assert self._item is not None
        return {"item_id": self._item["id"], "output_index": len(self._output)}

    def _delta(self, kind: str, text: str, **more: Any) -> bytes:
        self._text.append(text)
        return self._event(kind, **self._place(), content_index=0, delta=text, **more)

    def _open(self, kind: str) -> bytes:
        """Begin an item, unless the one that is reported is of this type."""
        if self._item is not None and self._item["type"] == kind:
            return b""
        before = self._close()
        self._item = {**_texts(kind, ""), "content": [], "status": "in_progress"}
        self._text = []
        added = self._added(self._item)
        place = {**self._place(), "content_index": 0}
        part = self._event("response.content_part.added", **place, part=_part(kind, "", []))
        return before + added + part

    def _added(self, item: Mapping[str, Any]) -> bytes:
        return self._event(
            "response.output_item.added", output_index=len(self._output), item=dict(item)
        )

    def _close(self, *, is_cut: bool = False) -> bytes:
        if self._item is None:
            return b""
        kind, text = self._item["type"], "".join(self._text)
        logprobs, self._logprobs = self._logprobs, []
        place = {**self._place(), "content_index": 0}
        more = {"logprobs": logprobs} if kind == "message" else {}
        part = _part(kind, text, logprobs)
        status = "incomplete" if is_cut else "completed"
        item = {**self._item, "content": [part], "status": status}
        told = self._event(f"response.{_TEXT_OF[kind]}.done", **place, text=text, **more)
        told += self._event("response.content_part.done", **place, part=part)
        return told + self._done(item)

    def _done(self, item: dict[str, Any]) -> bytes:
        told = self._event("response.output_item.done", output_index=len(self._output), item=item)
        self._output.append(item)
        self._item = None
        return told

    def _function_call(self, call: ToolCall) -> bytes:
        before = self._close()
        item = self._call(call)
        self._item = item
        place = self._place()
        added = self._added({**item, "arguments": "", "status": "in_progress"})
        kind = "response.function_call_arguments"
        delta = self._event(f"{kind}.delta", **place, delta=call.arguments_text)
        arguments = {"name": item["name"], "arguments": call.arguments_text}
        done = self._event(f"{kind}.done", **place, **arguments)
        return before + added + delta + done + self._done(item)

    def _call(self, call: ToolCall) -> dict[str, Any]:
        namespace, name = self._namespaces.get(call.name, (None, call.name))
        within = {} if namespace is None else {"namespace": namespace}
        return {
            "id": new_id("fc"),
            "type": "function_call",
            "status": "incomplete" if call.is_cut else "completed",
            "call_id": call.id,
            **within,
            "name": name,
            "arguments": call.arguments_text,
        }

    def _new_logprobs(self, stream: AsyncTextStream) -> list[Any]:
        if not self._has_logprobs:
            return []
        found: list[Any] = logprobs_of(self._unsent.take(stream.answer_logprobs))["content"]
        return found


def response_usage(reply: Completion) -> dict[str, Any]:
    """Return tokens as /v1/responses counts them."""
    n_prompt, n_written = reply.prompt_tokens, reply.completion_tokens
    return {
        "input_tokens": n_prompt,
        "input_tokens_details": {"cached_tokens": reply.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": n_written,
        "output_tokens_details": {"reasoning_tokens": reply.reasoning_tokens},
        "total_tokens": n_prompt + n_written,
    }


def new_id(kind: str) -> str:
    """Return the id of a new thing of this kind."""
    return f"{kind}_{random_hex(16)}"


def _texts(kind: str, text: str, logprobs: Sequence[Any] = ()) -> dict[str, Any]:
    """Return an item of text: thoughts or a message."""
    content = [_part(kind, text, logprobs)]
    if kind == "reasoning":
        head: dict[str, Any] = {"id": new_id("rs"), "type": kind, "summary": []}
    else:
        head = {"id": new_id("msg"), "type": kind, "role": "assistant"}
    return {**head, "status": "completed", "content": content}


def _part(kind: str, text: str, logprobs: Sequence[Any]) -> dict[str, Any]:
    part: dict[str, Any] = {"type": _TEXT_OF[kind], "text": text}
    if kind == "message":
        part |= {"annotations": [], "logprobs": list(logprobs)}
    return part
