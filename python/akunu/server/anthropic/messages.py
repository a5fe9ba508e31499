"""Conversations as Anthropic's clients send them, in the form that `Model.chat` takes.

>>> messages_of("Be brief.", [{"role": "user", "content": "Hi"}]).messages
[{'role': 'system', 'content': 'Be brief.'}, {'role': 'user', 'content': 'Hi'}]
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from akunu.server.fields.image_parts import joined_texts, not_fetched, of_base64
from akunu.server.fields.table import unknown_keys
from akunu.server.http.errors import invalid, unsupported
from akunu.server.http.json_words import as_json, kind_of

_KNOWN: Final[Mapping[str, tuple[str, ...]]] = {  # keys of blocks, by their type
    "text": ("type", "text", "cache_control", "citations"),
    "image": ("type", "source", "cache_control"),
    "tool_result": ("type", "tool_use_id", "content", "is_error", "cache_control"),
    "thinking": ("type", "thinking", "signature"),
    "redacted_thinking": ("type", "data"),
    "tool_use": ("type", "id", "name", "input", "cache_control"),
}
CHANGING_LINE: Final = "x-anthropic-billing-header"
"""Begins a line that an agent changes in every request, in front of its long system prompt."""


@dataclass(slots=True)
class AnthropicConversation:
    """Messages, and the inner fields that have no effect."""

    messages: list[dict[str, Any]] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)

    def ignore(self, name: str) -> None:
        """Note an inner field without effect, once."""
        if name not in self.ignored:
            self.ignored.append(name)


def messages_of(system: Any, messages: Any) -> AnthropicConversation:
    """Return a conversation; ApiError for parts that are not supported.

    Lines that an agent changes in every request are left out: the cache would not find the rest.
    """
    found = AnthropicConversation()
    if system is not None:
        text = _system(system, found)
        if text:
            found.messages.append({"role": "system", "content": text})
    if not isinstance(messages, list) or not messages:
        raise invalid("messages", "messages must be a list of at least one message")
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        if not isinstance(message, dict):
            raise invalid("messages", f"{where} must be an object, got {kind_of(message)}")
        for name in unknown_keys("messages", message, ("role", "content")):
            found.ignore(name)
        role = message.get("role")
        if role == "assistant":
            found.messages.append(_reply(_blocks(message, where), where, found))
        elif role in ("user", "system"):
            _add_turn(found, role, _blocks(message, where), where)
        else:
            raise invalid(
                "messages", f"{where}.role is {as_json(role)}; it must be user or assistant"
            )
    return found


def _system(system: Any, found: AnthropicConversation) -> str:
    if isinstance(system, str):
        return _without_changing_lines(system, found)
    if not isinstance(system, list):
        raise invalid("system", f"system is {as_json(system)}; it must be a text or a list of them")
    texts = []
    for index, block in enumerate(system):
        if not isinstance(block, dict) or block.get("type", "text") != "text":
            raise unsupported("system", f"system[{index}] is not a text block")
        text = _without_changing_lines(_text(block, f"system[{index}]", found, "system"), found)
        if text:
            texts.append(text)
    return "\n\n".join(texts)


def _without_changing_lines(text: str, found: AnthropicConversation) -> str:
    if CHANGING_LINE not in text:
        return text
    lines = text.split("\n")
    kept = [line for line in lines if not line.startswith(CHANGING_LINE)]
    if len(kept) < len(lines):
        found.ignore(CHANGING_LINE)
        return "\n".join(kept).lstrip("\n")
    return text


def _blocks(message: Mapping[str, Any], where: str) -> list[Any]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise invalid("messages", f"{where}.content must be a text or a list of blocks")
    return content


def _kind(block: Any, where: str, found: AnthropicConversation) -> str:
    kind = block.get("type") if isinstance(block, dict) else None
    if not isinstance(kind, str):
        raise invalid("messages", f"{where} must be an object with a type")
    if kind in _KNOWN:
        for name in unknown_keys("messages.content", block, _KNOWN[kind]):
            found.ignore(name)
    return kind


def _text(
    block: Mapping[str, Any], where: str, found: AnthropicConversation, param: str = "messages"
) -> str:
    for name in ("cache_control", "citations"):
        if block.get(name) is not None:
            found.ignore(name)
    text = block.get("text")
    if not isinstance(text, str):
        raise invalid(param, f"{where}.text must be a text, got {kind_of(text)}")
    return text


def _add_turn(found: AnthropicConversation, role: str, blocks: list[Any], where: str) -> None:
    """Add the results of tools, each a message, and what else the turn has."""
    parts: list[dict[str, Any]] = []
    n_before = len(found.messages)
    for index, block in enumerate(blocks):
        place = f"{where}.content[{index}]"
        kind = _kind(block, place, found)
        if kind == "text":
            parts.append({"type": "text", "text": _text(block, place, found)})
        elif kind == "image" and role == "user":
            parts.append(_image(block, place, found))
        elif kind == "tool_result" and role == "user":
            found.messages.append(_result(block, place, found))
        else:
            raise unsupported(
                "messages", f"{place} is of type {as_json(kind)}, which is not supported"
            )
    if not parts and len(found.messages) == n_before:
        parts.append({"type": "text", "text": ""})
    if parts:
        is_text = len(parts) == 1 and parts[0]["type"] == "text"
        found.messages.append({"role": role, "content": parts[0]["text"] if is_text else parts})


def _image(block: Mapping[str, Any], where: str, found: AnthropicConversation) -> dict[str, Any]:
    if block.get("cache_control") is not None:
        found.ignore("cache_control")
    source = block.get("source")
    kind = source.get("type") if isinstance(source, dict) else None
    if not isinstance(source, dict) or kind not in ("base64", "url", "file"):
        raise invalid("messages", f"{where}.source must be an object of type base64")
    if kind != "base64":
        raise not_fetched("messages", f"{where}.source is of type {as_json(kind)}")
    for name in unknown_keys("messages.content.source", source, ("type", "media_type", "data")):
        found.ignore(name)
    if not isinstance(source.get("data"), str):
        raise invalid("messages", f"{where}.source.data must be a text")
    return of_base64(source["data"])


def _result(block: Mapping[str, Any], where: str, found: AnthropicConversation) -> dict[str, Any]:
    call_id = block.get("tool_use_id")
    if not isinstance(call_id, str):
        raise invalid("messages", f"{where}.tool_use_id must be the id of a call")
    if block.get("cache_control") is not None:
        found.ignore("cache_control")
    content = block.get("content")
    if content is None:
        content = ""
    elif isinstance(content, list):
        content = _result_content(content, f"{where}.content", found)
    elif not isinstance(content, str):
        raise invalid("messages", f"{where}.content must be a text or a list of blocks")
    if block.get("is_error") is True:  # templates have no other place for it
        if isinstance(content, str):
            content = f"Error: {content}"
        else:
            content = [{"type": "text", "text": "Error: "}, *content]
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def _result_content(blocks: list[Any], where: str, found: AnthropicConversation) -> Any:
    """Return a text, or where a result has images a list of parts."""
    parts: list[dict[str, Any]] = []
    for index, block in enumerate(blocks):
        place = f"{where}[{index}]"
        kind = _kind(block, place, found)
        if kind == "text":
            parts.append({"type": "text", "text": _text(block, place, found)})
        elif kind == "image":
            parts.append(_image(block, place, found))
        else:
            raise unsupported(
                "messages",
                f"{place} is of type {as_json(kind)}: only text and images are supported",
            )
    return joined_texts(parts)


def _reply(blocks: list[Any], where: str, found: AnthropicConversation) -> dict[str, Any]:
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[dict[str, Any]] = []
    for index, block in enumerate(blocks):
        place = f"{where}.content[{index}]"
        kind = _kind(block, place, found)
        if kind == "text":
            texts.append(_text(block, place, found))
        elif kind == "thinking":
            if not isinstance(block.get("thinking"), str):
                raise invalid("messages", f"{place}.thinking must be a text")
            thoughts.append(block["thinking"])
        elif kind == "redacted_thinking":  # no one here can read it
            found.ignore("redacted_thinking")
        elif kind == "tool_use":
            if block.get("cache_control") is not None:
                found.ignore("cache_control")
            calls.append(_call(block, place))
        else:
            raise unsupported(
                "messages", f"{place} is of type {as_json(kind)}: it is not supported"
            )
    reply: dict[str, Any] = {"role": "assistant", "content": "".join(texts)}
    if thoughts:
        reply["reasoning_content"] = "".join(thoughts)
    if calls:
        reply["tool_calls"] = calls
    return reply


def _call(block: Mapping[str, Any], where: str) -> dict[str, Any]:
    if not isinstance(block.get("name"), str) or not isinstance(block.get("id"), str):
        raise invalid("messages", f"{where} must have an id and a name")
    arguments = block.get("input", {})
    if not isinstance(arguments, dict):
        raise invalid("messages", f"{where}.input must be an object")
    function = {"name": block["name"], "arguments": json.dumps(arguments, ensure_ascii=False)}
    return {"id": block["id"], "type": "function", "function": function}
