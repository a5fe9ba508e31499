"""Readers of fields that several dialects share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from akunu.server.fields.table import checked, without_effect
from akunu.server.http.errors import invalid, unsupported
from akunu.server.http.json_words import as_json
from akunu.server.settings import ServerSettings

MOST_LOGPROBS: Final = 20
"""The most tokens that are reported next to each, as for OpenAI."""
MOST_TOKENS: Final = 2**31 - 1
"""The largest number of tokens that means something."""
WITHOUT_EFFECT: Final = "without effect: "
"""A reader of fields gives an option of this name and its own, with the names of inner fields."""
UNREAD: Final = "unread: "
"""Likewise, with keys of messages that only a model's chat template may know."""

OF_OPENAI: Final = (
    without_effect("user", "string", "the server does not report it"),
    without_effect("service_tier", "string", "see priority"),
    without_effect("safety_identifier", "string", "the server does not report it"),
    without_effect("prompt_cache_key", "string", "the KV cache finds prompts by their tokens"),
    without_effect(
        "prompt_cache_retention", "string", "the KV cache keeps prompts while there is room"
    ),
    without_effect("prompt_cache_options", "object", "the KV cache finds prompts without it"),
    without_effect("moderation", "object", "nothing is moderated"),
)
"""Fields of OpenAI's chats and responses that change nothing here."""


def integer_in(name: str, value: Any, low: int, high: int) -> int:
    """Return an integer of this range, both ends included; ApiError otherwise."""
    n: int = checked(name, value, int)
    if not low <= n <= high:
        raise invalid(name, f"{name} is {n}; it must be an integer from {low} to {high}")
    return n


def n_texts(name: str, value: Any, settings: ServerSettings) -> int:
    """Return how many texts a request asks for, within the server's limit; ApiError otherwise."""
    return integer_in(name, value, 1, settings.most_answers)


def includes_usage(options: dict[str, Any], *, is_stream: bool) -> bool:
    """Take out whether a stream ends with the usage; ApiError where there is no stream."""
    if "include_usage" in options and not is_stream:
        raise invalid("stream_options", "stream_options needs stream: true")
    return bool(options.pop("include_usage", False))


def model_name(name: str, value: Any) -> Mapping[str, Any]:
    """Read the name of a model."""
    return {"model": checked(name, value, str)}


def continued(messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the option that continues the last message, if it is the assistant's.

    >>> continued([{"role": "user"}]), continued([{"role": "user"}, {"role": "assistant"}])
    ({}, {'continue_final_message': True})
    """
    is_prefill = len(messages) > 0 and messages[-1]["role"] == "assistant"
    return {"continue_final_message": True} if is_prefill else {}


def max_tokens(name: str, value: Any) -> Mapping[str, Any]:
    """Read a number of tokens of a reply, which has at least one.

    More than the context holds is fine: the reply then ends where the context does. -1 is what
    llama.cpp's clients send for no limit.
    """
    return _max_tokens(name, value, least=1)


def max_tokens_or_none(name: str, value: Any) -> Mapping[str, Any]:
    """Read a number of tokens where 0 makes sense: only the prompt is judged."""
    return _max_tokens(name, value, least=0)


def _max_tokens(name: str, value: Any, least: int) -> Mapping[str, Any]:
    if value == -1 and type(value) is int:
        return {}
    return {"max_tokens": integer_in(name, value, least, MOST_TOKENS)}


def n_predict(name: str, value: Any) -> Mapping[str, Any]:
    """Read a number of tokens as llama.cpp has it: -1 and -2 continue until the context is full."""
    n = integer_in(name, value, -2, MOST_TOKENS)
    return {} if n < 0 else {"max_tokens": n}


def stream_options(name: str, value: Any) -> Mapping[str, Any]:
    """Read what a stream has besides; whether it ends with the usage."""
    given = checked(name, value, dict)
    for each in given:
        if each not in ("include_usage", "include_obfuscation", "continuous_usage_stats"):
            raise unsupported(
                name, f"stream_options has {as_json(each)}; only include_usage is known"
            )
    if given.get("continuous_usage_stats"):
        raise unsupported(name, "stream_options: usage comes once, at the end")
    usage = given.get("include_usage")
    usage = checked("stream_options.include_usage", False if usage is None else usage, bool)
    found: dict[str, Any] = {"include_usage": usage}
    if "include_obfuscation" in given:
        found[WITHOUT_EFFECT + name] = ["stream_options.include_obfuscation"]
    return found
