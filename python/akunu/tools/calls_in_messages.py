"""Calls in messages as text, for templates that know tools and yet leave calls out.

Only what the model's own notation reads back as the same call is written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from akunu.errors import ArgumentError
from akunu.tools.calls import calls_of
from akunu.tools.notation import Literal, Notation, NotationField, elements
from akunu.tools.recognise import read_reply
from akunu.tools.template import ToolTemplate


def with_calls_as_text(
    template: ToolTemplate, messages: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return messages whose calls are at the end of their content, as the model writes them.

    Raises ArgumentError where how it writes them is not known, or cannot say a call.
    """
    found = [dict(message) for message in messages]
    for index, message in enumerate(found):
        calls = message.pop("tool_calls", None)
        if calls:
            text = _calls_as_text(template, calls, f"messages[{index}]['tool_calls']")
            content = message.get("content") or ""
            if isinstance(content, list):
                message["content"] = [*content, {"type": "text", "text": text}]
            else:
                message["content"] = f"{content}\n{text}" if content else text
    return found


def _calls_as_text(template: ToolTemplate, calls: Sequence[Mapping[str, Any]], where: str) -> str:
    notation = template.tool_notation
    if notation is None:
        raise ArgumentError(
            f"{where}: this model's chat template does not write calls, and its notation is not "
            f"known; put them into the content in the notation of the model's authors"
        )
    wanted = [(call["function"]["name"], call["function"]["arguments"]) for call in calls]
    text = calls_as_text(notation.family.ways[0], wanted)
    if text is not None:
        deltas = read_reply(notation.family, template, text, {name: {} for name, _ in wanted})
        if [(call.name, call.arguments) for call in calls_of(deltas)] == wanted:
            return text
    raise ArgumentError(
        f"{where}: this model's chat template does not write calls, and its notation "
        f"({notation.family.name}) cannot express these; put them into the content in the "
        f"notation of the model's authors"
    )


def calls_as_text(way: Notation, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> str | None:
    """Return calls (name and arguments) in a notation; None for one that is not written here.

    >>> from akunu.tools.families import HERMES
    >>> calls_as_text(HERMES.ways[0], [("look", {"at": "it"})])
    '<tool_call>\\n{"name": "look", "arguments": {"at": "it"}}\\n</tool_call>'
    """
    texts = [_filled(way, way.call, name, arguments) for name, arguments in calls]
    around = [_filled(way, pattern, "", {}) for pattern in (way.before, way.after)]
    if None in texts or None in around:
        return None
    between = way.between or "\n"
    return f"{around[0]}{between.join(map(str, texts))}{around[1]}"


def _filled(way: Notation, pattern: str, name: str, arguments: Mapping[str, Any]) -> str | None:
    """Return a pattern with a call in it, without what may be missing."""
    call = {way.name_key: name, way.arguments_keys[0]: arguments}
    text = ""
    for part in elements(pattern):
        if isinstance(part, Literal):
            text += part.text
        elif isinstance(part, NotationField):
            if part.name == "name":
                text += name
            elif part.name == "arguments":
                text += _json(arguments)
            elif part.name == "call":
                text += _json(call)
            elif part.name == "keyed":
                text += _json({name: arguments})
            elif part.name == "python":
                given = [f"{key}={_python(value)}" for key, value in arguments.items()]
                text += f"{name}({', '.join(given)})"
            else:
                return None
    return text


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _python(value: object) -> str:
    """Return what JSON has as Python writes it, strings in double quotes."""
    if isinstance(value, list):
        return f"[{', '.join(map(_python, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_json(key)}: {_python(each)}' for key, each in value.items())}}}"
    return _json(value) if isinstance(value, str) else repr(value)
