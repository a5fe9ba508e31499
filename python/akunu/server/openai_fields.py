"""Fields that chats and completions of OpenAI's API share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from akunu.server.errors import unsupported
from akunu.server.fields import checked


def model_name(name: str, value: Any) -> Mapping[str, Any]:
    """Read the name of a model."""
    return {"model": checked(name, value, str)}


def max_tokens(name: str, value: Any) -> Mapping[str, Any]:
    """Read a number of tokens."""
    return {"max_tokens": checked(name, value, int)}


def stream_options(name: str, value: Any) -> Mapping[str, Any]:
    """Read what a stream has besides; whether it ends with the usage."""
    given = checked(name, value, dict)
    for each in given:
        if each not in ("include_usage", "include_obfuscation", "continuous_usage_stats"):
            raise unsupported(name, f"stream_options has {each!r}; only include_usage is known")
    if given.get("continuous_usage_stats"):
        raise unsupported(name, "stream_options: usage is told once, at the end")
    usage = given.get("include_usage") or False
    return {"include_usage": checked("stream_options.include_usage", usage, bool)}
