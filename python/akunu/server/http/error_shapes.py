"""Errors as each dialect's clients read them; which one it is, the request's path and headers say.

>>> from akunu.server.http.errors import invalid
>>> shaped(invalid("top_k", "top_k is -1"), {"path": "/api/chat", "headers": []})
{'error': 'top_k is -1'}
>>> request = {"path": "/v1/models/a", "headers": [(b"anthropic-version", b"2023-06-01")]}
>>> shaped(invalid("top_k", "top_k is -1"), request, "req_1")["error"]["type"]
'invalid_request_error'
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from akunu.server.http.errors import ApiError
from akunu.server.http.json_body import json_bytes

_ANTHROPIC_KINDS: Final = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}


def shaped(error: ApiError, scope: Mapping[str, Any], request_id: str = "") -> dict[str, Any]:
    """Return the body of an error for a request, whose ASGI scope this is."""
    if scope["path"].startswith("/api/"):
        return {"error": error.message}
    if is_anthropic(scope):
        return anthropic_error(error, request_id)
    return error.body


def failed_event(error: ApiError, scope: Mapping[str, Any], request_id: str = "") -> bytes:
    r"""Return the event that ends a stream of this request after the code that began it failed.

    >>> from akunu.server.http.errors import invalid
    >>> failed_event(invalid("top_k", "top_k is -1"), {"path": "/api/chat", "headers": []})
    b'{"error":"top_k is -1"}\n'
    """
    path = scope["path"]
    body = shaped(error, scope, request_id)
    if path.startswith("/api/"):
        return json_bytes(body) + b"\n"
    if is_anthropic(scope):
        return b"event: error\ndata: " + json_bytes(body) + b"\n\n"
    if path.removeprefix("/v1") == "/responses":
        told = {"type": "error", "code": error.code, "message": error.message, **body}
        return b"event: error\ndata: " + json_bytes(told) + b"\n\n"
    return b"data: " + json_bytes(body) + b"\n\n"


def is_anthropic(scope: Mapping[str, Any]) -> bool:
    """Whether a request is of Anthropic's API: by its route, or by a header where two share it."""
    route = scope["path"].removeprefix("/v1")
    if route == "/models" or route.startswith("/models/"):
        return any(name == b"anthropic-version" for name, _ in scope["headers"])
    return bool(route.startswith("/messages"))


def anthropic_error(error: ApiError, request_id: str = "") -> dict[str, Any]:
    """Return an error as Anthropic has it, with the field and the code that OpenAI's have.

    Agents shorten their conversation on the words "prompt is too long".
    """
    usual = "api_error" if error.status >= 500 else "invalid_request_error"
    message = error.message
    if error.code == "context_length_exceeded" and "n_ctx" in error.facts:
        n_prompt, context = error.facts["n_prompt_tokens"], error.facts["n_ctx"]
        least = "at least " if "at least" in message else ""
        message = f"prompt is too long: {least}{n_prompt} tokens > {context} maximum"
    elif error.code == "context_length_exceeded":
        message = f"prompt is too long: {message}"
    told: dict[str, Any] = {
        "type": _ANTHROPIC_KINDS.get(error.status, usual),
        "message": message,
        "param": error.param,
        "code": error.code,
    }
    if "details" in error.facts:
        told["details"] = error.facts["details"]
    return {"type": "error", "error": told, "request_id": request_id or None}
