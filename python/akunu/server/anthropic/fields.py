"""What a request for /v1/messages asks for, as arguments of `Model.chat_async`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from akunu.server.anthropic.answer import MessageAnswer
from akunu.server.anthropic.messages import messages_of
from akunu.server.fields.common import WITHOUT_EFFECT, continued, max_tokens
from akunu.server.fields.offered_tools import functions_among
from akunu.server.fields.sampling import SAMPLING_FIELDS, stop_strings
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
from akunu.server.http.errors import ApiError, invalid, unsupported
from akunu.server.http.json_words import as_json
from akunu.server.settings import ServerSettings
from akunu.server.text_request import TextRequest, text_request

_TOOL_KEYS: Final = ("type", "name", "description", "input_schema")


def _tools(name: str, value: Any) -> Mapping[str, Any]:
    found = []
    tools, ignored = functions_among(name, checked(name, value, list), "custom")
    for tool in tools:
        ignored += [key for key in tool if key not in _TOOL_KEYS and key not in ignored]
        function = {
            "name": tool.get("name"),
            "description": tool.get("description") or "",
            "parameters": tool.get("input_schema"),
        }
        found.append({"type": "function", "function": function})
    return {**({"tools": found} if found else {}), WITHOUT_EFFECT + name: ignored}


def _tool_choice(name: str, value: Any) -> Mapping[str, Any]:
    given = checked(name, value, dict)
    kind = given.get("type")
    found: dict[str, Any] = {}
    if kind in ("auto", "none"):
        found["tool_choice"] = kind
    elif kind == "any":
        found["tool_choice"] = "required"
    elif kind == "tool" and isinstance(given.get("name"), str):
        found["tool_choice"] = {"function": {"name": given["name"]}}
    else:
        raise invalid(
            name, f"tool_choice is {as_json(given)}; its type must be auto, any, none, or tool"
        )
    if given.get("disable_parallel_tool_use") is not None:
        single = checked("disable_parallel_tool_use", given["disable_parallel_tool_use"], bool)
        found["parallel_tool_calls"] = not single
    return found


def _thinking(name: str, value: Any) -> Mapping[str, Any]:
    given = checked(name, value, dict)
    kind = given.get("type")
    if kind == "disabled":
        return {"thinking": False}
    if kind == "adaptive":  # the model decides: as its template has it
        return {}
    if kind != "enabled":
        raise invalid(
            name, f"thinking.type is {as_json(kind)}; it must be enabled, adaptive or disabled"
        )
    budget = given.get("budget_tokens")
    if budget is None:
        return {"thinking": True}
    return {"thinking": True, "thinking_budget": checked("budget_tokens", budget, int)}


def _output_config(name: str, value: Any) -> Mapping[str, Any]:
    given = checked(name, value, dict)
    found: dict[str, Any] = {}
    for key, inner in given.items():
        if inner is None:
            continue
        if key == "format":
            found.update(_output_format(name, inner))
        elif key in ("effort", "task_budget"):  # advice to the model, which agents give any
            found.setdefault(WITHOUT_EFFECT + name, []).append(f"output_config.{key}")
        else:
            raise unsupported(name, f"output_config has {as_json(key)}; only format is known")
    return found


def _output_format(name: str, value: Any) -> Mapping[str, Any]:
    given = checked(name, value, dict)
    if given.get("type") != "json_schema" or not isinstance(given.get("schema"), dict):
        raise invalid(name, f"{name} must have the type json_schema, and a schema")
    return {"schema": given["schema"]}


def _thread(name: str, value: Any) -> Mapping[str, Any]:
    """Refuse as Anthropic does where it cannot: its client sends the whole conversation then."""
    details = {"error_code": "thread_unsupported_request", "unsupported": [name]}
    raise ApiError(
        400,
        f"{name} is not supported: {_NOT_STORED}",
        param=name,
        code="unsupported_parameter",
        facts={"details": details},
    )


_NOT_STORED: Final = "the server stores nothing: send the whole conversation"
_BLOCKS: Final = {"type": ["string", "array", "null"]}

MESSAGES_FIELDS: Final[Mapping[str, Field]] = table_of(
    [
        honoured("model", "string", lambda name, value: {"model": checked(name, value, str)}),
        honoured(
            "messages", {"type": "array", "items": {"type": "object"}, "minItems": 1}, to("turns")
        ),
        honoured("system", _BLOCKS, to("system")),
        honoured("max_tokens", "integer", max_tokens),
        honoured("stop_sequences", "array", stop_strings),
        honoured("stream", "boolean", flag("stream")),
        honoured("tools", "array", _tools),
        honoured("tool_choice", "object", _tool_choice),
        honoured("thinking", "object", _thinking, "type and budget_tokens"),
        honoured("output_config", "object", _output_config),
        honoured("output_format", "object", _output_format),
        honoured("chat_template_kwargs", "object", to("template_variables")),
        *(each for each in SAMPLING_FIELDS if each.name != "stop"),
        refused("mcp_servers", "the client runs tools, not the server", []),
        refused("container", "there are no containers"),
        refused("compaction", "the client shortens its conversation"),
        Field(name="thread", schema={}, effect="refused", read=_thread, note=_NOT_STORED),
        without_effect("metadata", "object", "nothing is stored"),
        without_effect("service_tier", "string", "see priority"),
        without_effect("cache_control", "object", "the KV cache finds prompts by their tokens"),
        without_effect("context_management", "object", "the client shortens its conversation"),
        without_effect("inference_geo", "string", "the model runs here"),
        without_effect("speed", "string", "there is only one speed"),
        without_effect("diagnostics", "object", "usage reports it"),
        without_effect("fallbacks", "", "no model refuses"),
        without_effect("fallback_credit_token", "", "there is no billing"),
        without_effect("billing_policy", "object", "there is no billing"),
    ]
)


def messages_request(body: Mapping[str, Any], settings: ServerSettings) -> TextRequest:
    """Read a request; ApiError for values that make no sense or are not supported."""
    wanted = text_request(MESSAGES_FIELDS, body)
    arguments = wanted.arguments
    if "turns" not in arguments:
        raise invalid("messages", "messages is missing", "missing_required_parameter")
    conversation = messages_of(arguments.pop("system", None), arguments.pop("turns"))
    arguments["messages"] = conversation.messages
    arguments.update(continued(conversation.messages))
    wanted.ignore([each for each in conversation.ignored if each not in wanted.ignored])
    wanted.answer = MessageAnswer
    return wanted
