"""What answers tell of their cost: tokens as OpenAI has them, times as llama.cpp has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from akunu.text.completion import Completion, per_second


def usage_of(replies: Sequence[Completion], n: int | None = None) -> dict[str, Any]:
    """Return the tokens of texts, n for each prompt, which counts once; None: all of one prompt."""
    prompt = cached = completion = reasoning = 0
    for index, each in enumerate(replies):
        if index % (n or len(replies)) == 0:
            prompt += each.prompt_tokens
            cached += each.cached_tokens
        completion += each.completion_tokens
        reasoning += each.reasoning_tokens
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }


def finite(logprob: float) -> float:
    """Return a logprob that JSON can write: it has no infinity, and OpenAI writes -9999."""
    return max(logprob, -9999.0)


def facts_of(replies: Sequence[Completion]) -> dict[str, Any]:
    """Return facts that OpenAI does not have: times of a single text, and unenforced keywords."""
    facts: dict[str, Any] = {}
    if len(replies) == 1:
        facts["timings"] = timings_of(replies[0])
    weakened = [{"pointer": each.pointer, "reason": each.reason} for each in replies[0].weakened]
    if weakened:
        facts["weakened"] = weakened
    return facts


class _Timed(Protocol):
    """A text that is complete, or being written."""

    @property
    def prompt_tokens(self) -> int: ...
    @property
    def cached_tokens(self) -> int: ...
    @property
    def prefix_end(self) -> str: ...
    @property
    def completion_tokens(self) -> int: ...
    @property
    def drafted_tokens(self) -> int: ...
    @property
    def accepted_tokens(self) -> int: ...
    @property
    def prompt_seconds(self) -> float: ...
    @property
    def completion_seconds(self) -> float: ...


def timings_of(reply: _Timed) -> dict[str, Any]:
    """Return how long one text took, or has taken so far; its first token belongs to the prompt."""
    computed = reply.prompt_tokens - reply.cached_tokens
    after_first = max(0, reply.completion_tokens - 1)
    drafts = {}
    if reply.drafted_tokens:
        drafts = {"draft_n": reply.drafted_tokens, "draft_n_accepted": reply.accepted_tokens}
    return {
        "cache_n": reply.cached_tokens,
        "prefix_end": reply.prefix_end,
        "prompt_n": computed,
        "prompt_ms": reply.prompt_seconds * 1000,
        "prompt_per_token_ms": reply.prompt_seconds * 1000 / computed if computed else 0.0,
        "prompt_per_second": per_second(computed, reply.prompt_seconds),
        "predicted_n": reply.completion_tokens,
        "predicted_ms": reply.completion_seconds * 1000,
        "predicted_per_token_ms": (
            reply.completion_seconds * 1000 / after_first if after_first else 0.0
        ),
        "predicted_per_second": per_second(after_first, reply.completion_seconds),
        **drafts,
    }
