"""Conversations as /v1/responses has them, a list of items, in the form that `Model.chat` takes.

>>> messages_of("Be brief.", "Hi")
([{'role': 'system', 'content': 'Be brief.'}, {'role': 'user', 'content': 'Hi'}], [])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from akunu.server.fields.image_parts import joined_texts, not_fetched, of_url
from akunu.server.fields.table import unknown_keys
from akunu.server.http.errors import invalid, unsupported
from akunu.server.http.json_words import as_json, kind_of
from akunu.server.openai.responses_tools import name_within

_ROLES: Final = ("user", "assistant", "system", "developer")
_OF_ALL: Final = ("type", "id", "status")  # an item may be one that the server has sent
_KNOWN: Final[Mapping[str, tuple[str, ...]]] = {  # keys of items, by their type
    "message": (*_OF_ALL, "role", "content"),
    "function_call": (*_OF_ALL, "call_id", "namespace", "name", "arguments"),
    "function_call_output": (*_OF_ALL, "call_id", "output"),
    "reasoning": (*_OF_ALL, "summary", "content", "encrypted_content"),
}
_OF_PARTS: Final = ("type", "text", "refusal", "annotations", "logprobs", "image_url", "file_id")
_TEXTS: Final = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}


def messages_of(
    instructions: str | None, given: Any, before: Sequence[Mapping[str, Any]] = ()
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the messages, and keys of items that no one reads; ApiError for what is not done.

    `before`: items that are stored, which come first.
    """
    found = _Messages()
    for item in before:
        found.add(item, "the stored conversation")
    if isinstance(given, str):
        found.messages.append({"role": "user", "content": given})
    elif isinstance(given, list) and given:
        for index, item in enumerate(given):
            if not isinstance(item, dict):
                raise invalid("input", f"input[{index}] must be an object, got {kind_of(item)}")
            found.add(item, f"input[{index}]")
    else:
        raise invalid("input", f"input is {as_json(given)}; it must be a text or a list of items")
    if instructions:
        _instruct(found.messages, instructions)
    return found.messages, list(found.unread)


def _instruct(messages: list[dict[str, Any]], instructions: str) -> None:
    """Put instructions in front; most templates have room for one system message only."""
    first = messages[0]
    if first["role"] in ("system", "developer"):
        messages[0] = {"role": "system", "content": f"{instructions}\n\n{first['content']}"}
    else:
        messages.insert(0, {"role": "system", "content": instructions})


class _Messages:
    """Puts items together: thoughts, a text and calls that follow each other are one message."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.unread: dict[str, None] = {}  # in their order

    def add(self, item: Mapping[str, Any], where: str) -> None:
        kind = item.get("type", "message")
        if isinstance(kind, str) and kind in _KNOWN:
            self.unread.update(dict.fromkeys(unknown_keys("input", item, _KNOWN[kind])))
        self._note_parts("input.content", item.get("content"))
        if kind == "message":
            self._message(item, where)
        elif kind == "function_call":
            self._call(item, where)
        elif kind == "function_call_output":
            output, place = item.get("output"), f"{where}.output"
            self.messages.append(
                {
                    "role": "tool",
                    "tool_call_id": _named(item, "call_id", where),
                    "content": _with_images(output, place)
                    if isinstance(output, list)
                    else _text(output, place),
                }
            )
            self._note_parts("input.output", output)
        elif kind == "reasoning":
            self._reasoning(item, where)
        else:
            raise unsupported("input", f"{where} is of type {as_json(kind)}: it is not supported")

    def _note_parts(self, name: str, parts: Any) -> None:
        """Note the keys of parts that no one reads."""
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, dict):
                self.unread.update(dict.fromkeys(unknown_keys(name, part, _OF_PARTS)))

    def _message(self, item: Mapping[str, Any], where: str) -> None:
        role = item.get("role")
        if role not in _ROLES:
            raise invalid(
                "input", f"{where}.role is {as_json(role)}; it must be one of {', '.join(_ROLES)}"
            )
        content, place = item.get("content"), f"{where}.content"
        if role == "assistant":
            last = self._reply(("content", "tool_calls"))
            last["content"] = _text(content, place)
        elif role == "user" and isinstance(content, list):
            self.messages.append({"role": role, "content": _with_images(content, place)})
        else:
            self.messages.append({"role": role, "content": _text(content, place)})

    def _call(self, item: Mapping[str, Any], where: str) -> None:
        name = _named(item, "name", where)
        if item.get("namespace") is not None:
            name = name_within(_named(item, "namespace", where), name)
        function = {"name": name, "arguments": _named(item, "arguments", where)}
        call = {"id": _named(item, "call_id", where), "type": "function", "function": function}
        self._reply(()).setdefault("tool_calls", []).append(call)

    def _reasoning(self, item: Mapping[str, Any], where: str) -> None:
        parts = item.get("content") or item.get("summary") or []
        if not isinstance(parts, list):
            raise invalid("input", f"{where}.content must be a list")
        texts = [part.get("text") for part in parts if isinstance(part, dict)]
        if len(texts) < len(parts) or not all(isinstance(text, str) for text in texts):
            raise invalid("input", f"{where}.content must be a list of texts")
        if texts:
            reply = self._reply(("content", "tool_calls", "reasoning_content"))
            reply["reasoning_content"] = "\n\n".join(map(str, texts))

    def _reply(self, closing: tuple[str, ...]) -> dict[str, Any]:
        """Return the message of the assistant that continues, or a new one where it has these."""
        last = self.messages[-1] if self.messages else {}
        if last.get("role") != "assistant" or any(last.get(key) for key in closing):
            last = {"role": "assistant", "content": ""}
            self.messages.append(last)
        return last


def _named(item: Mapping[str, Any], key: str, where: str) -> str:
    value = item.get(key)
    if not isinstance(value, str):
        raise invalid("input", f"{where}.{key} must be a text, got {kind_of(value)}")
    return value


def _with_images(parts: list[Any], where: str) -> Any:
    """Return a content: a text, or where it has images a list of parts."""
    found: list[dict[str, Any]] = []
    for index, part in enumerate(parts):
        place = f"{where}[{index}]"
        if not isinstance(part, dict) or part.get("type") != "input_image":
            found.append({"type": "text", "text": _part_text(part, place)})
        elif part.get("file_id") is not None:
            raise not_fetched("input", f"{place}.file_id")
        else:
            found.append(of_url(part.get("image_url"), "input", f"{place}.image_url"))
    return joined_texts(found)


def _text(content: Any, where: str) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise invalid("input", f"{where} must be a text or a list of parts")
    return "\n".join(_part_text(part, f"{where}[{index}]") for index, part in enumerate(content))


def _part_text(part: Any, where: str) -> str:
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(kind, str) or kind not in _TEXTS:
        raise unsupported("input", f"{where} is of type {as_json(kind)}: only text is supported")
    text = part.get(_TEXTS[kind])
    if not isinstance(text, str):
        raise invalid("input", f"{where} has no text")
    return text
