"""Tools for models whose chat template does not know any: what the template would have to say.

The system message lists the tools, in the words and the notation of Hermes, which most models have
read; calls and results in the conversation become text in the same notation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from akunu.errors import ArgumentError
from akunu.templates.messages import has_images


def messages_with_tools(
    messages: Sequence[Mapping[str, Any]], definitions: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return a conversation whose texts say what its tools, calls and results are."""
    told: list[dict[str, Any]] = []
    for message in messages:
        content = message.get("content") or ""
        if message.get("role") == "tool":
            result = _around("<tool_response>\n", content, "\n</tool_response>")
            if told and told[-1].get("is_result"):
                told[-1]["content"] = _behind(told[-1]["content"], "\n", result)
            else:
                told.append({"role": "user", "content": result, "is_result": True})
        elif message.get("tool_calls"):
            calls = [_call(call) for call in message["tool_calls"]]
            said = _behind(content, "\n" if content else "", "\n".join(calls))
            others = {k: v for k, v in message.items() if k not in ("tool_calls", "content")}
            told.append({**others, "content": said})
        else:
            told.append(dict(message))
    for message in told:
        message.pop("is_result", None)
    if definitions:
        _tell(told, _instructions(definitions))
    return told


def _tell(messages: list[dict[str, Any]], text: str) -> None:
    if messages and messages[0].get("role") in ("system", "developer"):
        system = _text(messages[0].get("content") or "")
        messages[0] = {**messages[0], "content": f"{system}\n\n{text}".lstrip()}
    else:
        messages.insert(0, {"role": "system", "content": text})


def _instructions(definitions: Sequence[Mapping[str, Any]]) -> str:
    listed = "\n".join(json.dumps(each, ensure_ascii=False) for each in definitions)
    return (
        "You may call one or more functions to help with the request. Their signatures, as JSON, "
        f"stand between <tools> tags:\n<tools>\n{listed}\n</tools>\n\n"
        "For each call, write a JSON object with the function's name and its arguments between "
        '<tool_call> tags:\n<tool_call>\n{"name": <name>, "arguments": <object>}\n</tool_call>'
    )


def _call(call: object) -> str:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        raise ArgumentError("a call in 'tool_calls' must be a dict with a 'function'")
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        arguments = arguments.strip() or "{}"
    else:
        arguments = json.dumps(arguments, ensure_ascii=False)
    name = json.dumps(function.get("name"), ensure_ascii=False)
    return f'<tool_call>\n{{"name": {name}, "arguments": {arguments}}}\n</tool_call>'


def _around(before: str, content: Any, behind: str) -> Any:
    return _behind(_behind(before, "", content), "", behind)


def _behind(first: Any, between: str, second: Any) -> Any:
    """Return two contents as one: a text, or where one has images a list of parts."""
    if not has_images([{"content": each} for each in (first, second)]):
        return f"{_text(first)}{between}{_text(second)}"
    joined: list[Any] = []
    for part in (*_parts(first), *_parts(between), *_parts(second)):
        if joined and "text" in joined[-1] and "text" in part:
            joined[-1] = {"type": "text", "text": joined[-1]["text"] + part["text"]}
        else:
            joined.append(part)
    return joined


def _parts(content: Any) -> Sequence[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content)


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, (list, tuple)) else ()
    return "".join([str(part.get("text", "")) for part in parts if isinstance(part, Mapping)])
