"""Answers of llama.cpp's /completion and /infill: whole, and as events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from akunu.server.http.errors import ApiError
from akunu.server.http.sending import EVENT_STREAM, PING, event
from akunu.server.prompts import ids_of
from akunu.server.text_request import AnswerContext
from akunu.server.unsent_logprobs import UnsentLogprobs
from akunu.server.usage import timings_of
from akunu.text.async_text_stream import AsyncTextStream
from akunu.text.completion import Completion
from akunu.text.deltas import Delta, TextDelta
from akunu.text.logprobs import TokenLogprob

_LEAST: Final = -9999.0  # JSON has no infinity


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaFormat:
    """How completions are returned."""

    arguments: Mapping[str, Any]
    """What was requested, which the answer repeats."""
    prompts: Sequence[Any]
    """Each a text, or a list of token ids and texts."""
    is_list: bool
    """Whether the answer is a list."""
    returns_tokens: bool
    response_fields: list[str]

    @property
    def n_probs(self) -> int:
        """How many of the most likely tokens are reported next to each token; 0: none."""
        n: int = self.arguments.get("logprobs", 0)
        return n


class LlamaAnswer:
    """One answer; an `Answer`."""

    media_type = EVENT_STREAM
    ping = PING

    def __init__(self, context: AnswerContext, wanted: LlamaFormat) -> None:
        """`wanted`: what is reported besides the texts."""
        self.model = context.model
        self._context = context
        self._wanted = wanted
        self._unsent = UnsentLogprobs()
        self._n_tokens: dict[int, int] = {}

    def from_replies(self, replies: Sequence[Completion]) -> Any:
        """Return the answer that is not a stream: an object, or a list for a list of prompts."""
        returns_tokens = self._wanted.returns_tokens
        told = [
            self._final(index, str(reply), reply, reply.token_ids if returns_tokens else ())
            for index, reply in enumerate(replies)
        ]
        return told if self._wanted.is_list else told[0]

    def opened(self, streams: Sequence[AsyncTextStream]) -> bytes:
        """Return nothing: the first event has text."""
        return b""

    def from_piece(self, index: int, delta: Delta, stream: AsyncTextStream) -> bytes:
        """Return the event of a piece."""
        assert isinstance(delta, TextDelta)  # there is no chat
        probabilities: dict[str, Any] = {}
        tokens = stream.token_ids[self._n_tokens.get(index, 0) :]
        self._n_tokens[index] = self._n_tokens.get(index, 0) + len(tokens)
        if self._wanted.n_probs:
            new = self._unsent.take(stream.logprobs, index)
            probabilities = {"completion_probabilities": list(map(_probability, new))}
        return event(
            {
                "index": index,
                "content": delta.text,
                "tokens": list(tokens),
                "stop": False,
                "id_slot": -1,
                "tokens_predicted": stream.completion_tokens,
                "tokens_evaluated": stream.prompt_tokens,
                **probabilities,
            }
        )

    def closed(self, index: int, stream: AsyncTextStream) -> bytes:
        """Return the last event of a text."""
        reply = stream.completion
        rest = reply.token_ids[self._n_tokens.get(index, 0) :]
        return event(self._final(index, "", reply, rest))

    def over(self, replies: Sequence[Completion]) -> bytes:
        """Return nothing: each text had its last event."""
        return b""

    def failed(self, error: ApiError) -> bytes:
        """Return the error."""
        return event(error.body)

    def _final(
        self, index: int, content: str, reply: Completion, tokens: Sequence[int]
    ) -> dict[str, Any]:
        wanted = self._wanted
        found: dict[str, Any] = {
            "index": index,
            "content": content,
            "tokens": list(tokens),
            "id_slot": -1,
            "stop": True,
            "model": self.model,
            "tokens_predicted": reply.completion_tokens,
            "tokens_evaluated": reply.prompt_tokens,
            "tokens_cached": reply.cached_tokens,
            "generation_settings": _settings(wanted.arguments),
            "prompt": self._prompt(index),
            "has_new_line": "\n" in reply,
            "truncated": False,
            "stop_type": _stop_type(reply),
            "stopping_word": reply.stop or "",
            "timings": timings_of(reply),
        }
        if wanted.n_probs and content:
            found["completion_probabilities"] = list(map(_probability, reply.logprobs or ()))
        if wanted.response_fields:
            return _chosen(found, wanted.response_fields)
        return found

    def _prompt(self, index: int) -> str:
        prompt = self._wanted.prompts[index]
        if isinstance(prompt, str):
            return prompt
        return self._context.tokenizer.decode(ids_of(self._context.tokenizer, prompt, None))


def _stop_type(reply: Completion) -> str:
    if reply.stop is not None:
        return "word"
    return "limit" if reply.finish_reason == "length" else "eos"


def _settings(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a request asked for, by the names of akunu, and n_predict."""
    plain = {
        name: value
        for name, value in arguments.items()
        if name not in ("prompt", "max_tokens") and isinstance(value, (str, int, float, list))
    }
    return {"n_predict": arguments.get("max_tokens", -1), **plain}


def _probability(each: TokenLogprob) -> dict[str, Any]:
    return {**_token(each), "top_logprobs": [_token(top) for top in each.top]}


def _token(each: TokenLogprob) -> dict[str, Any]:
    logprob = max(each.logprob, _LEAST)
    return {
        "id": each.token_id,
        "token": each.text,
        "bytes": list(each.bytes),
        "logprob": logprob,
    }


def _chosen(found: Mapping[str, Any], paths: Sequence[str]) -> dict[str, Any]:
    """Return some fields only; "a/b" is a field of a field.

    >>> _chosen({"a": {"b": 1}, "c": 2}, ["a/b", "d"])
    {'a/b': 1}
    """
    chosen: dict[str, Any] = {}
    for path in paths:
        value: Any = found
        for key in path.split("/"):
            if not isinstance(value, Mapping) or key not in value:
                break
            value = value[key]
        else:
            chosen[path] = value
    return chosen
