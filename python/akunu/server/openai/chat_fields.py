"""What a request for /v1/chat/completions asks for, as arguments of `Model.chat_async`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from akunu.server.fields.common import (
    MOST_LOGPROBS,
    MOST_TOKENS,
    OF_OPENAI,
    UNREAD,
    WITHOUT_EFFECT,
    includes_usage,
    integer_in,
    max_tokens,
    model_name,
    n_texts,
    stream_options,
)
from akunu.server.fields.keep_alive import KEEP_ALIVE, TTL
from akunu.server.fields.offered_tools import functions_among, offered_functions
from akunu.server.fields.sampling import SAMPLING_FIELDS
from akunu.server.fields.structure import STRUCTURE_FIELDS, response_format
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
from akunu.server.openai.chat_answer import ChatAnswer
from akunu.server.openai.messages import messages_of
from akunu.server.settings import ServerSettings
from akunu.server.text_request import TextRequest, text_request


def _messages(name: str, value: Any) -> Mapping[str, Any]:
    messages, unknown = messages_of(value)
    return {"messages": messages, UNREAD + name: unknown}


def _functions(name: str, value: Any) -> Mapping[str, Any]:
    functions = checked(name, value, list)
    tools = [{"type": "function", "function": each} for each in functions]
    return {"tools": tools, "is_legacy": True}


def tool_choice(name: str, value: Any) -> Mapping[str, Any]:
    """Read which tools may, or must, be called; `allowed_only` does what `allowed_tools` says."""
    if not isinstance(value, dict):
        return {"tool_choice": value}
    if value.get("type") == "allowed_tools":
        allowed = value.get("allowed_tools", value)
        if not isinstance(allowed, dict) or not isinstance(allowed.get("tools"), list):
            raise invalid(name, "tool_choice of type 'allowed_tools' must have a list of tools")
        tools, others = functions_among(name, allowed["tools"])
        names = [_name_in(name, each) for each in tools]
        mode = allowed.get("mode", "auto")
        if mode not in ("auto", "required"):
            raise invalid(
                name, f"mode of tool_choice is {as_json(mode)}; it must be auto or required"
            )
        return {"allowed_tools": names, "tool_choice": mode, WITHOUT_EFFECT + name: others}
    return {"tool_choice": {"function": {"name": _name_in(name, value)}}}


def _function_call(name: str, value: Any) -> Mapping[str, Any]:
    if isinstance(value, dict):
        return {"tool_choice": {"function": {"name": _name_in(name, value)}}}
    return {"tool_choice": value}


def _name_in(field: str, choice: Any) -> str:
    function = choice.get("function", choice) if isinstance(choice, dict) else None
    found = function.get("name") if isinstance(function, dict) else None
    if not isinstance(found, str):
        raise invalid(field, f"{field} has {as_json(choice)}, which does not name a function")
    return found


def _effort(name: str, value: Any) -> Mapping[str, Any]:
    effort = checked(name, value, str)
    return {"thinking": False if effort == "none" else effort}


def _reasoning(name: str, value: Any) -> Mapping[str, Any]:
    given = checked(name, value, dict)
    known = ("effort", "summary", "generate_summary", "enabled", "max_tokens", "exclude")
    for each in given:
        if each not in known:
            raise unsupported(
                name, f"reasoning has {as_json(each)}; effort, enabled and max_tokens are known"
            )
    if given.get("exclude"):
        raise unsupported(name, "reasoning.exclude: thinking has its own field")
    found: dict[str, Any] = {}
    if given.get("effort") is not None:
        found.update(_effort("reasoning.effort", given["effort"]))
    elif given.get("enabled") is not None:
        found["thinking"] = checked("reasoning.enabled", given["enabled"], bool)
    if given.get("max_tokens") is not None:
        found.update(_budget("reasoning.max_tokens", given["max_tokens"]))
    return found


def _budget(name: str, value: Any) -> Mapping[str, Any]:
    return {"thinking_budget": integer_in(name, value, 0, MOST_TOKENS)}


def _thinking_switch(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, (bool, str)):
        raise invalid(name, f"{name} is {as_json(value)}; it must be true, false or a level")
    return {"thinking": value}


def _modalities(name: str, value: Any) -> Mapping[str, Any]:
    if value != ["text"]:
        raise unsupported(name, f"modalities is {as_json(value)}; models write text here")
    return {}


def _reasoning_format(name: str, value: Any) -> Mapping[str, Any]:
    if value not in ("auto", "deepseek"):
        raise unsupported(name, "thinking has its own field and is never in the content")
    return {}


def top_logprobs(name: str, value: Any) -> Mapping[str, Any]:
    """Read how many tokens to tell next to each."""
    return {"top_logprobs": integer_in(name, value, 0, MOST_LOGPROBS)}


_TOOL: Final = {"type": "object", "properties": {"type": {"type": ["string", "null"]}}}

CHAT_FIELDS: Final[Mapping[str, Field]] = table_of(
    [
        honoured("model", "string", model_name),
        honoured(
            "messages",
            {"type": "array", "items": {"type": "object"}, "minItems": 1},
            _messages,
        ),
        honoured("max_completion_tokens", "integer", max_tokens),
        honoured("max_tokens", "integer", max_tokens),
        honoured("n", "integer", to("n")),
        honoured("stream", "boolean", flag("stream")),
        honoured("stream_options", "object", stream_options),
        honoured("timings_per_token", "boolean", flag("timings_per_token")),
        honoured("logprobs", "boolean", flag("logprobs")),
        honoured("top_logprobs", "integer", top_logprobs),
        honoured("response_format", "object", response_format),
        honoured("tools", {"type": ["array", "null"], "items": _TOOL}, offered_functions),
        honoured("tool_choice", {"type": ["string", "object", "null"]}, tool_choice),
        honoured("parallel_tool_calls", "boolean", flag("parallel_tool_calls")),
        honoured("functions", "array", _functions, "the older form of tools"),
        honoured("function_call", {"type": ["string", "object", "null"]}, _function_call),
        honoured("reasoning_effort", "string", _effort),
        honoured("reasoning", "object", _reasoning),
        honoured("enable_thinking", "boolean", flag("thinking")),
        honoured("thinking", {"type": ["boolean", "string", "null"]}, _thinking_switch),
        honoured("thinking_budget", "integer", _budget),
        honoured("thinking_budget_tokens", "integer", _budget),
        honoured("chat_template_kwargs", "object", to("template_variables")),
        honoured("modalities", "array", _modalities),
        honoured("reasoning_format", "string", _reasoning_format),
        *SAMPLING_FIELDS,
        *STRUCTURE_FIELDS,
        refused("audio", "models write text here"),
        refused("web_search_options", "there is no search"),
        honoured("continue_final_message", "boolean", flag("continue_final_message")),
        honoured("add_generation_prompt", "boolean", flag("add_generation_prompt")),
        refused("echo", "a reply has no text before it", False),
        *OF_OPENAI,
        without_effect("store", "boolean", "chats are not stored"),
        without_effect("metadata", "object", "chats are not stored"),
        without_effect("verbosity", "string", "write it in a message"),
        without_effect("prediction", "object", "the text is the same"),
        without_effect("cache_prompt", "boolean", "the text is the same"),
        without_effect("id_slot", "integer", "there are no slots"),
        without_effect("return_progress", "boolean", "a stream begins with comments"),
        KEEP_ALIVE,
        TTL,
    ]
)


def chat_request(body: Mapping[str, Any], settings: ServerSettings) -> TextRequest:
    """Read a request; ApiError for values that make no sense or are not supported."""
    wanted = text_request(CHAT_FIELDS, body)
    options = wanted.arguments
    if "messages" not in options:
        raise invalid("messages", "messages is missing", "missing_required_parameter")
    _check_generation_prompt(options)
    wanted.n = n_texts("n", options.pop("n", 1), settings)
    usage_follows = includes_usage(options, is_stream=wanted.is_stream)
    wants_logprobs = options.pop("logprobs", False)
    top = options.pop("top_logprobs", 0)
    if top and not wants_logprobs:
        raise invalid("top_logprobs", "top_logprobs needs logprobs: true")
    if wants_logprobs:
        options["logprobs"] = top
    allowed = options.pop("allowed_tools", None)
    if allowed is not None:
        options["tools"] = allowed_only(options.get("tools", []), allowed)
    wanted.answer = partial(
        ChatAnswer,
        includes_usage=usage_follows,
        has_logprobs=wants_logprobs,
        has_timings=options.pop("timings_per_token", False),
        is_legacy=options.pop("is_legacy", False),
        reasoning_field=settings.reasoning_field,
    )
    return wanted


def _check_generation_prompt(options: dict[str, Any]) -> None:
    """Take out `add_generation_prompt`, which says the reverse of `continue_final_message`."""
    is_added = options.pop("add_generation_prompt", None)
    continues = options.get("continue_final_message", False)
    if is_added is not None and is_added is continues:
        raise invalid(
            "add_generation_prompt",
            f"add_generation_prompt is {as_json(is_added)}, and continue_final_message is "
            f"{as_json(continues)}: a reply either begins or continues the last message",
        )


def allowed_only(tools: list[Any], names: list[str]) -> list[Any]:
    """Return the tools of these names: the model hears of no others."""
    by_name = {_name_in("tools", each): each for each in tools}
    for name in names:
        if name not in by_name:
            raise invalid(
                "tool_choice", f"tool_choice allows {as_json(name)}, which is not one of the tools"
            )
    return [by_name[name] for name in by_name if name in names]
