"""Messages as OpenAI's clients send them, in the form that `Model.chat` takes.

>>> messages_of([{"role": "assistant", "content": None, "refusal": "No.", "annotations": []}])
([{'role': 'assistant', 'content': 'No.'}], ['messages.annotations'])
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from akunu.server.fields.image_parts import of_url
from akunu.server.fields.table import unknown_keys
from akunu.server.http.errors import invalid, unsupported
from akunu.server.http.json_words import as_json, kind_of

_ROLES: Final = ("system", "developer", "user", "assistant", "tool", "function")
_KNOWN: Final = (
    *("role", "content", "name", "refusal", "tool_calls", "tool_call_id", "function_call"),
    *("reasoning_content", "reasoning", "thinking", "thought"),  # see akunu.templates.messages
)
_KNOWN_OF_PARTS: Final = ("type", "text", "refusal", "image", "image_url")
_MOST_UNKNOWN: Final = 500  # keys that are looked for in a chat template
_MEDIA: Final = ("input_image", "input_audio", "file", "video_url", "audio_url")


def messages_of(messages: Any) -> tuple[list[dict[str, Any]], list[str]]:
    """Return messages without what only OpenAI's API has, and the keys in them that no one reads.

    A template may know such a key, so the messages keep it. ApiError for what is not read here.

    Calls in the older form (`function_call`, the role `function`) get the newer one; whatever else
    is wrong with a message, `Model.chat` says.
    """
    if not isinstance(messages, list) or not messages:
        raise invalid("messages", "messages must be a list of at least one message")
    found: list[dict[str, Any]] = []
    calls: dict[Any, str] = {}
    unknown: dict[str, None] = {}  # in their order
    for index, message in enumerate(messages):
        if not isinstance(message, dict):
            raise invalid(
                "messages", f"messages[{index}] must be an object, got {kind_of(message)}"
            )
        if len(unknown) < _MOST_UNKNOWN:
            unknown.update(dict.fromkeys(_unknown(message)[:_MOST_UNKNOWN]))
        found.append(_message(message, index, calls))
    return found, list(unknown)


def _unknown(message: Mapping[str, Any]) -> list[str]:
    found = unknown_keys("messages", message, _KNOWN)
    content = message.get("content")
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict):
            found += unknown_keys("messages.content", part, _KNOWN_OF_PARTS)
            image = part.get("image_url")
            if isinstance(image, dict):  # `detail`: a model has one size of images
                found += unknown_keys("messages.content.image_url", image, ("url",))
    return found


def _message(
    message: Mapping[str, Any], index: int, calls_before: dict[Any, str]
) -> dict[str, Any]:
    where = f"messages[{index}]"
    found = dict(message)
    role = found.get("role")
    if role not in _ROLES:
        raise invalid(
            "messages", f"{where}.role is {as_json(role)}; it must be one of {', '.join(_ROLES)}"
        )
    if role == "tool" and not isinstance(found.get("tool_call_id"), str):
        raise invalid("messages", f"{where}.tool_call_id must be the id of the call it answers")
    refusal = found.pop("refusal", None)
    for name in ("audio", "annotations"):  # of OpenAI's own replies, sent back
        found.pop(name, None)
    content = found.get("content")
    if isinstance(content, list):
        found["content"] = _parts(content, where)
    call = found.pop("function_call", None)
    if isinstance(call, Mapping):
        call_id = f"call_{index}"
        found["tool_calls"] = [{"id": call_id, "type": "function", "function": dict(call)}]
    if found.get("content") is None and not found.get("tool_calls"):
        if role != "assistant":
            raise invalid("messages", f"{where}.content is missing")
        found["content"] = refusal if isinstance(refusal, str) else ""
    if role == "function":
        found["role"] = "tool"
        of = found.get("name")
        called = calls_before.get(of) if isinstance(of, str) else None
        if called is None:
            raise invalid("messages", f"a result of {as_json(of)} has no call of it before it")
        found["tool_call_id"] = called
    _note_calls(found, calls_before)
    return found


def _note_calls(message: Mapping[str, Any], calls: dict[Any, str]) -> None:
    """Note the latest call of each function, to which a result of its name belongs."""
    made = message.get("tool_calls")
    for call in reversed(made) if isinstance(made, list) else ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping) and isinstance(function.get("name"), str):
            calls[function["name"]] = str(call.get("id"))


def _parts(parts: list[Any], where: str) -> Any:
    found = []
    for index, part in enumerate(parts):
        kind = part.get("type") if isinstance(part, dict) else None
        if kind in _MEDIA:
            raise unsupported(
                "messages", f"{where}.content[{index}] is {as_json(kind)}, which is not supported"
            )
        if kind == "image_url":
            image, place = part.get("image_url"), f"{where}.content[{index}].image_url"
            part = (
                of_url(image.get("url"), "messages", f"{place}.url")
                if isinstance(image, dict)
                else of_url(image, "messages", place)
            )
        if kind == "refusal":
            part = {"type": "text", "text": part.get("refusal")}
        found.append(part)
    return found or ""
