"""Answers of /v1/completions: whole, and as chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from akunu.common.clock_and_ids import now, random_hex
from akunu.server.http.errors import ApiError
from akunu.server.http.sending import EVENT_STREAM, PING, event
from akunu.server.openai.chat_answer import DONE, FINGERPRINT
from akunu.server.text_request import AnswerContext
from akunu.server.unsent_logprobs import UnsentLogprobs
from akunu.server.usage import facts_of, finite, usage_of
from akunu.text.async_text_stream import AsyncTextStream
from akunu.text.completion import Completion
from akunu.text.deltas import Delta, TextDelta
from akunu.text.logprobs import TokenLogprob

Prompt = str | list[int]

_NOTHING = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionFormat:
    """How completions are returned."""

    prompts: list[Prompt]
    n: int
    best_of: int
    """How many texts of each prompt are generated; the n likeliest are reported."""
    echo: bool
    includes_usage: bool
    logprobs: int | None


class CompletionAnswer:
    """One answer; an `Answer`."""

    media_type = EVENT_STREAM
    ping = PING

    def __init__(self, context: AnswerContext, request: CompletionFormat) -> None:
        """`request`: how it is returned."""
        self._request = request
        self._context = context
        self._head = {
            "id": f"cmpl-{random_hex(16)}",
            "object": "text_completion",
            "created": int(now()),
            "model": context.model,
            "system_fingerprint": FINGERPRINT,
        }
        self._unsent = UnsentLogprobs()
        self._n_characters: dict[int, int] = {}
        self._held: dict[int, str] = {}  # prompts that are reported once their logprobs are known

    def from_replies(self, replies: Sequence[Completion]) -> Any:
        """Return the answer that is not a stream, with the most likely texts if `best_of` has
        more."""
        request = self._request
        told: list[Completion] = []
        for first in range(0, len(replies), request.best_of):
            of_prompt = replies[first : first + request.best_of]
            if request.best_of > request.n:
                of_prompt = sorted(of_prompt, key=_mean_logprob, reverse=True)[: request.n]
            told += of_prompt
        choices = [
            {
                "index": index,
                "text": str(reply),
                "logprobs": self._logprobs(reply, request.prompts[index // request.n]),
                "finish_reason": reply.finish_reason,
            }
            for index, reply in enumerate(told)
        ]
        usage = usage_of(replies, n=request.best_of)
        return {**self._head, "choices": choices, "usage": usage, **facts_of(replies)}

    def _logprobs(self, reply: Completion, prompt: Prompt) -> Any:
        if self._request.logprobs is None:
            return None
        first = self._first_text(prompt) if reply.prompt_logprobs else ""
        known = (*(reply.prompt_logprobs or ()), *(reply.logprobs or ()))
        return _of_prompt(known, first, str(reply))

    def _first_text(self, prompt: Prompt) -> str:
        """Return the text of a prompt's first token, which has no log-probability."""
        ids = self._context.tokenizer.encode(prompt) if isinstance(prompt, str) else prompt
        bos = self._context.tokenizer.bos_id
        token = ids[0] if ids else 0 if bos is None else bos
        return self._context.tokenizer.token_bytes(token).decode(errors="replace")

    def opened(self, streams: Sequence[AsyncTextStream]) -> bytes:
        """Return nothing: a stream begins with its first piece."""
        return b""

    def from_piece(self, index: int, delta: Delta, stream: AsyncTextStream) -> bytes:
        """Return the chunk of a piece."""
        if not isinstance(delta, TextDelta):
            return b""
        if self._judges_prompt and index not in self._n_characters and index not in self._held:
            self._held[index] = delta.text
            return b""
        prompt = self._prompt_chunk(index, stream)
        return prompt + self._chunk(
            index, delta.text, self._new_logprobs(index, delta.text, stream)
        )

    def closed(self, index: int, stream: AsyncTextStream) -> bytes:
        """Return the last chunk of a text."""
        prompt = self._prompt_chunk(index, stream)
        logprobs = self._new_logprobs(index, _NOTHING, stream)
        return prompt + self._chunk(index, _NOTHING, logprobs, finish_reason=stream.finish_reason)

    @property
    def _judges_prompt(self) -> bool:
        return self._request.echo and self._request.logprobs is not None

    def _prompt_chunk(self, index: int, stream: AsyncTextStream) -> bytes:
        """Return the chunk of a prompt that was held back until the engine has judged it."""
        text = self._held.pop(index, None)
        if text is None:
            return b""
        first = self._first_text(self._request.prompts[index // self._request.n])
        known = stream.prompt_logprobs or ()
        self._n_characters[index] = len(text)
        return self._chunk(index, text, _of_prompt(known, first, text))

    def over(self, replies: Sequence[Completion]) -> bytes:
        """Return the usage, where it was requested, and the end."""
        if not self._request.includes_usage:
            return DONE
        usage = usage_of(replies, n=self._request.best_of)
        return event({**self._head, "choices": [], "usage": usage, **facts_of(replies)}) + DONE

    def failed(self, error: ApiError) -> bytes:
        """Return the error, which a client raises."""
        return event(error.body)

    def _chunk(
        self, index: int, text: str, logprobs: Any, *, finish_reason: str | None = None
    ) -> bytes:
        choice = {
            "index": index,
            "text": text,
            "logprobs": logprobs,
            "finish_reason": finish_reason,
        }
        chunk: dict[str, Any] = {**self._head, "choices": [choice]}
        if self._request.includes_usage:
            chunk["usage"] = None
        return event(chunk)

    def _new_logprobs(self, index: int, text: str, stream: AsyncTextStream) -> Any:
        if self._request.logprobs is None:
            return None
        new = self._unsent.take(stream.logprobs, index)
        begin = self._n_characters.get(index, 0)
        self._n_characters[index] = begin + len(text)
        return logprobs_of(new, begin) if new else None


def _mean_logprob(reply: Completion) -> float:
    logprobs = [each.logprob for each in reply.logprobs or ()]
    return sum(logprobs) / len(logprobs) if logprobs else 0.0


def _of_prompt(known: Sequence[TokenLogprob | None], first: str, text: str) -> dict[str, Any]:
    return logprobs_of(known, 0, first, first if text.startswith(first) else "")


def logprobs_of(
    logprobs: Sequence[TokenLogprob | None], begin: int, first: str = "", shown: str = ""
) -> dict[str, Any]:
    """Return logprobs as the older API has them: lists of the same length.

    `begin`: the character of the text where they begin. `first`: the text of a first token, whose
    probability nothing says, which is None among them; `shown`: what of it the text has.
    """
    offsets = []
    texts = [first if each is None else each.text for each in logprobs]
    for text, each in zip(texts, logprobs, strict=True):
        offsets.append(begin)
        begin += len(shown if each is None else text)
    return {
        "tokens": texts,
        "token_logprobs": [None if each is None else finite(each.logprob) for each in logprobs],
        "top_logprobs": [
            None if each is None else {top.text: finite(top.logprob) for top in each.top}
            for each in logprobs
        ],
        "text_offset": offsets,
    }
