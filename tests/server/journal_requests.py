"""Requests whose answers are journalled, of every form that an answer has."""

from __future__ import annotations

import re
from typing import Any, Final

from add_tool import FUNCTION, PARAMETERS

ADD: Final = {"type": "function", "function": FUNCTION}
STORY: Final[dict[str, Any]] = {
    "messages": [{"role": "user", "content": "Tell me a story."}],
    "max_tokens": 24,
    "ignore_eos": True,
}
SUM: Final[dict[str, Any]] = {"messages": [{"role": "user", "content": "What is 12 + 7?"}]}
SCHEMA: Final = {"type": "json_schema", "json_schema": {"name": "sum", "schema": PARAMETERS}}
RESPONSE: Final[dict[str, Any]] = {"input": "What is 12 + 7?", "max_output_tokens": 40}
RESPONSE_TOOL: Final = {"type": "function", **FUNCTION}

CHATS, TEXTS, RESPONSES = "/v1/chat/completions", "/v1/completions", "/v1/responses"
REQUESTS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "greedy": (CHATS, STORY),
    "sampled": (CHATS, {**STORY, "temperature": 1.0}),
    "with a seed": (CHATS, {**STORY, "temperature": 1.0, "seed": 7}),
    "with usage": (
        CHATS,
        {**STORY, "timings_per_token": True, "stream_options": {"include_usage": True}},
    ),
    "several": (CHATS, {**STORY, "temperature": 1.0, "n": 3}),
    "logprobs": (CHATS, {**STORY, "logprobs": True, "top_logprobs": 2}),
    "stop string": (CHATS, {**STORY, "temperature": 1.0, "stop": [" the", "e "]}),
    "schema": (CHATS, {**STORY, "temperature": 1.0, "response_format": SCHEMA}),
    "tools": (CHATS, {**SUM, "tools": [ADD], "tool_choice": "required", "max_tokens": 60}),
    "sampled tools": (
        CHATS,
        {**SUM, "tools": [ADD], "tool_choice": "required", "temperature": 1.5, "max_tokens": 60},
    ),
    "drafted": (CHATS, {**STORY, "temperature": 0.7, "speculation": 3}),
    "texts": (
        TEXTS,
        {"prompt": ["One", "Two"], "n": 2, "temperature": 1.0, "max_tokens": 10},
    ),
    "echo": (TEXTS, {"prompt": "Once upon", "echo": True, "logprobs": 2, "max_tokens": 10}),
    "response": (RESPONSES, {**RESPONSE, "temperature": 1.0}),
    "response with calls": (
        RESPONSES,
        {**RESPONSE, "tools": [RESPONSE_TOOL], "tool_choice": "required"},
    ),
}


def request_of(name: str, *, is_stream: bool) -> tuple[str, dict[str, Any]]:
    """Return route and body of a request."""
    route, body = REQUESTS[name]
    if is_stream:
        return route, {**body, "stream": True}
    unwanted = ("stream_options", "timings_per_token")
    return route, {key: value for key, value in body.items() if key not in unwanted}


def without_times(answer: str) -> str:
    """Return an answer without what depends on when, and beside whom, it was computed."""
    times = re.compile(r'"timings":\{[^}]*\}')
    cached = re.compile(r'"cached_tokens":\d+')
    return cached.sub('"cached_tokens":0', times.sub('"timings":{}', answer))
