"""Errors as OpenAI's clients read them: `{"error": {"message", "type", "param", "code"}}`.

A client decides by the status whether to try again: 408, 409, 429 and 5xx twice, unless
`x-should-retry: false` forbids it. So what a request does wrong is 4xx, and what would fail again
says so.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any, Final

from akunu.errors import (
    AkunuError,
    ArgumentError,
    AudioError,
    ContextOverflowError,
    DeadEndError,
    DownloadError,
    MisuseError,
    ModelFormatError,
    OutOfMemoryError,
    QueueFullError,
    UnsupportedModelError,
)
from akunu.grammar.errors import SchemaError
from akunu.server.http.json_words import as_json, in_json_words

_LOG: Final = logging.getLogger("akunu.server")
RETRY_AFTER_SECONDS: Final = 1  # a place in the queue is free again soon
_PART: Final = r"""[^/\s:,;'"()](?:[^/\n:,;'"()]*[^/\s:,;'"()])?/"""  # of a path, spaces within
_FOLDERS: Final = re.compile(rf"(?<![\w.~/:])/(?=[^\s/])(?:{_PART})*")
_NEVER_AGAIN: Final = {"x-should-retry": "false"}

# An engine error whose message begins so is about the tools, or about the prompt. An API may have
# another name for that field.
_OF_TOOLS: Final = ("parameters of the tool", "the parameters of")
_OF_PROMPTS: Final = ("messages", "prompt", "the prompt", "a token id", "token id", "text has")
_KINDS: Final = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}


class ApiError(AkunuError):
    """A request that is answered with an error, and which one."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
        facts: Mapping[str, Any] | None = None,
        logged: str = "",
    ) -> None:
        """`param`: the field that is wrong. `facts`: what else the body of the error has.

        `logged`: what the log has besides. A client sees no folders of this machine in what went
        wrong on it; the log does.
        """
        super().__init__(message)
        self.status = status
        self.message = without_folders(message) if status >= 500 else message
        self.logged = f"{message} ({logged})" if logged else message
        self.param = param
        self.code = code
        self.headers = dict(headers or {})
        self.facts = dict(facts or {})

    @property
    def kind(self) -> str:
        """What OpenAI calls this kind of error."""
        usual = "server_error" if self.status >= 500 else "invalid_request_error"
        return _KINDS.get(self.status, usual)

    @property
    def body(self) -> dict[str, Any]:
        """What the answer has, or the last event of a stream that fails."""
        return {
            "error": {
                "message": self.message,
                "type": self.kind,
                "param": self.param,
                "code": self.code,
                **self.facts,
            }
        }


def without_folders(text: str) -> str:
    """Return a text with the last part alone of each absolute path in it.

    >>> without_folders("/srv/my models/a.gguf, byte 24: cut off; see docs/models.md")
    'a.gguf, byte 24: cut off; see docs/models.md'
    """
    return _FOLDERS.sub("", text)


def invalid(param: str | None, message: str, code: str | None = None) -> ApiError:
    """Return the error for a field that makes no sense."""
    return ApiError(400, message, param=param, code=code)


def stopping() -> ApiError:
    """Return the error for requests that were not finished when the server stopped."""
    return ApiError(503, "the server is stopping", code="server_stopping")


def unsupported(param: str, message: str) -> ApiError:
    """Return the error for a field, or a value of it, that is known and not done here."""
    return ApiError(400, message, param=param, code="unsupported_parameter")


def api_error(
    error: Exception, *, names: Mapping[str, str] | None = None, prompt: str = "messages"
) -> ApiError:
    """Return how an exception is answered.

    `names`: the fields of the request by the names of the options that they became; `prompt`: the
    field that the prompt came from.
    """
    if isinstance(error, ApiError):
        return error
    text = str(error)
    if isinstance(error, ContextOverflowError):
        return _overflow(text, prompt)
    if isinstance(error, QueueFullError):
        retry = {"retry-after": str(RETRY_AFTER_SECONDS)}
        return ApiError(503, text, code="queue_full", headers=retry)
    if isinstance(error, AudioError):
        return ApiError(400, text, param="file", code="invalid_audio")
    if isinstance(error, DeadEndError):
        return ApiError(400, text, code="grammar_dead_end")
    if isinstance(error, (ArgumentError, MisuseError)):
        return _argument_error(error, dict(names or {}), prompt)
    if isinstance(error, UnsupportedModelError):
        told = without_folders(text)
        return ApiError(400, told, param="model", code="unsupported_model")
    if isinstance(error, (OutOfMemoryError, ModelFormatError, DownloadError)):
        return ApiError(500, text, param="model", code="model_not_loaded", headers=_NEVER_AGAIN)
    if isinstance(error, AkunuError):
        return ApiError(500, text)
    _LOG.error("a request failed with an unexpected error", exc_info=error)
    return internal_error()


def internal_error() -> ApiError:
    """Return the error for a fault of the server."""
    return ApiError(500, "the server failed; see its log", code="internal_error")


def _overflow(text: str, prompt: str) -> ApiError:
    """Agents shorten their conversation on this one: by its code, or by words of two servers."""
    numbers = re.match(r"the prompt has (at least )?(\d+) tokens, the context holds (\d+);", text)
    facts = {}
    if numbers:
        at_least, n_prompt, context = numbers[1] or "", int(numbers[2]), int(numbers[3])
        facts = {"n_prompt_tokens": n_prompt, "n_ctx": context}
        text = (
            f"This model's maximum context length is {context} tokens. However, your {prompt} "
            f"resulted in {at_least}{n_prompt} tokens: the request exceeds the available context "
            "size."
        )
    text = text.replace("truncate=True", '"truncate": true')  # JSON's, not Python's
    return ApiError(400, text, param=prompt, code="context_length_exceeded", facts=facts)


def _argument_error(error: AkunuError, names: dict[str, str], prompt: str) -> ApiError:
    text = str(error)
    refused = getattr(error, "refused", None)
    option = refused[0] if refused is not None else re.split(r"[ \[,:]", text, maxsplit=1)[0]
    if refused is not None:
        text = f"{option} is {as_json(refused[1])}; it must be {in_json_words(refused[2])}"
    elif not isinstance(error, SchemaError):
        text = in_json_words(text)
    if isinstance(error, SchemaError):
        field = names.get("schema", "response_format")
        return invalid(field, f"Invalid schema for {field}: {text}", "invalid_json_schema")
    if text.startswith(_OF_TOOLS):
        option = "tools"
    field = names.get(option, prompt if text.startswith(_OF_PROMPTS) else "")
    if option in names and field != option and text.startswith(option):
        text = field + text[len(option) :]
    return invalid(field or None, text)
