"""What a request for /v1/responses asks for, as arguments of `Model.chat_async`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from akunu.server.fields.common import OF_OPENAI, WITHOUT_EFFECT, max_tokens
from akunu.server.fields.sampling import SAMPLING_FIELDS
from akunu.server.fields.structure import response_format
from akunu.server.fields.table import (
    Field,
    checked,
    flag,
    honoured,
    refused,
    table_of,
    to,
    without_effect,
)
from akunu.server.http.errors import invalid, unsupported
from akunu.server.http.json_words import as_json
from akunu.server.openai.chat_fields import allowed_only, tool_choice, top_logprobs
from akunu.server.openai.responses_answer import ResponseAnswer
from akunu.server.openai.responses_input import messages_of
from akunu.server.openai.responses_tools import tools_of
from akunu.server.settings import ServerSettings
from akunu.server.stored.items import as_items, conversation_id
from akunu.server.stored.responses import StoredResponses
from akunu.server.text_request import TextRequest, text_request

_INCLUDED: Final = "message.output_text.logprobs"
_ECHOED: Final[Mapping[str, Any]] = {
    "background": False,
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "reasoning": None,
    "store": True,
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": None,
    "truncation": "disabled",
    "user": None,
}
"""Fields that the answer repeats, as clients expect, and what they are where no one gave them."""


def _text(name: str, value: Any) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for key, inner in checked(name, value, dict).items():
        if key == "verbosity":
            found[WITHOUT_EFFECT + name] = ["text.verbosity"]
        elif key != "format":
            raise unsupported(name, f"text has {as_json(key)}; only format is known")
        elif inner is not None:
            found.update(response_format("text.format", inner))
    return found


def _reasoning(name: str, value: Any) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for key, inner in checked(name, value, dict).items():
        if inner is None:
            continue
        if key == "effort":
            effort = checked("reasoning.effort", inner, str)
            found["thinking"] = False if effort == "none" else effort
        elif key in ("summary", "generate_summary", "context"):  # thoughts are reported whole
            found.setdefault(WITHOUT_EFFECT + name, []).append(f"reasoning.{key}")
        elif key == "mode" and inner == "standard":
            continue  # the only one that there is
        else:
            raise unsupported(name, f"reasoning has {as_json(key)}; only effort is known")
    return found


def _include(name: str, value: Any) -> Mapping[str, Any]:
    asked = checked(name, value, list)
    found: dict[str, Any] = {"has_logprobs": True} if _INCLUDED in asked else {}
    others = [each for each in asked if each != _INCLUDED]
    return {**found, WITHOUT_EFFECT + name: [f"include.{each}" for each in others]}


def _stream_options(name: str, value: Any) -> Mapping[str, Any]:
    for key in checked(name, value, dict):
        if key != "include_obfuscation":
            raise unsupported(name, f"stream_options has {as_json(key)}; usage comes at the end")
    return {WITHOUT_EFFECT + name: ["stream_options"]}


def _instructions(name: str, value: Any) -> Mapping[str, Any]:
    return {"instructions": checked(name, value, str)}


def _previous(name: str, value: Any) -> Mapping[str, Any]:
    return {name: checked(name, value, str)}


RESPONSES_FIELDS: Final[Mapping[str, Field]] = table_of(
    [
        honoured("model", "string", lambda name, value: {"model": checked(name, value, str)}),
        honoured("input", {"type": ["string", "array"]}, to("input")),
        honoured("instructions", "string", _instructions),
        honoured("max_output_tokens", "integer", max_tokens),
        honoured("stream", "boolean", flag("stream")),
        honoured("stream_options", "object", _stream_options),
        honoured("tools", "array", tools_of),
        honoured("tool_choice", {"type": ["string", "object", "null"]}, tool_choice),
        honoured("parallel_tool_calls", "boolean", flag("parallel_tool_calls")),
        honoured("text", "object", _text),
        honoured("reasoning", "object", _reasoning, "effort: how much the model thinks"),
        honoured("include", "array", _include),
        honoured("top_logprobs", "integer", top_logprobs),
        honoured("chat_template_kwargs", "object", to("template_variables")),
        honoured("continue_final_message", "boolean", flag("continue_final_message")),
        *SAMPLING_FIELDS,
        honoured(
            "store", "boolean", flag("store"), "whether the response is stored; default: true"
        ),
        honoured(
            "previous_response_id",
            "string",
            _previous,
            "a stored response, after whose conversation the input comes",
        ),
        honoured(
            "conversation",
            {"type": ["string", "object", "null"]},
            lambda name, value: {name: conversation_id(value)},
            "a stored conversation, or its id; input and output are added to it",
        ),
        refused("prompt", "no prompts are stored, send instructions and input"),
        honoured(
            "background",
            "boolean",
            flag("background"),
            "return at once; the response is retrieved later. Needs `--journal`",
        ),
        refused("truncation", "texts are never cut without an error, send what fits", "disabled"),
        without_effect("metadata", "object", "it is sent back"),
        without_effect("max_tool_calls", "integer", "the client runs tools, not the server"),
        *OF_OPENAI,
        without_effect("client_metadata", "object", "the server does not report it"),
        without_effect("context_management", "array", "the client shortens its conversation"),
    ]
)


def response_request(
    body: Mapping[str, Any],
    settings: ServerSettings,
    stored: StoredResponses,
    before: Sequence[Mapping[str, Any]] | None = None,
) -> TextRequest:
    """Read a request; ApiError for values that make no sense or are not supported.

    `stored`: the responses that it may continue, and that its own is added to. `before`: the
    conversation so far, where it is known.
    """
    wanted = text_request(RESPONSES_FIELDS, body)
    options = wanted.arguments
    wanted.prompt_name = "input"
    if "input" not in options:
        raise invalid("input", "input is missing", "missing_required_parameter")
    previous = options.pop("previous_response_id", None)
    conversation = options.pop("conversation", None)
    if before is None:
        before = stored.before(previous, conversation)
    given = options.pop("input")
    messages, unread = messages_of(options.pop("instructions", None), given, before)
    options["messages"] = messages
    wanted.ignore(unread)
    allowed = options.pop("allowed_tools", None)
    if allowed is not None:
        options["tools"] = allowed_only(options.get("tools", []), allowed)
    top = options.pop("top_logprobs", None)
    has_logprobs = options.pop("has_logprobs", False) or top is not None
    if has_logprobs:
        options["logprobs"] = top or 0
    echoed = {
        name: default if body.get(name) is None else body[name] for name, default in _ECHOED.items()
    }
    echoed["conversation"] = None if conversation is None else {"id": conversation}
    is_stored = options.pop("store", True)
    if options.pop("background", False) and not is_stored:
        raise invalid("background", "background needs store: its response is retrieved later")
    if conversation is not None and not is_stored:
        raise invalid("conversation", "conversation needs store: the response is added to it")
    keep = partial(stored.keep, as_items(given)) if is_stored else None
    wanted.answer = partial(
        ResponseAnswer,
        echoed=echoed,
        has_logprobs=has_logprobs,
        namespaces=options.pop("namespaces", {}),
        keep=keep,
    )
    return wanted
