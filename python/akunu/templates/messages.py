"""Messages as a caller gives them: checked, and copied into plain JSON types.

>>> from akunu.templates.messages import checked
>>> checked([{"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}])
[{'role': 'user', 'content': [{'type': 'text', 'text': 'Hi'}]}]
>>> checked([{"role": "user", "content": [{"type": "image_url"}]}])
Traceback (most recent call last):
...
akunu.errors.ArgumentError: messages[0]['content'][0] is of type 'image_url': only text is supported

What a template makes of them is said in `template_habits`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from akunu.errors import ArgumentError

Message = Mapping[str, Any]


class ImagePart(dict[str, Any]):
    """What stands in a content for an image that was taken out of it: see `images`."""

    def __init__(self) -> None:
        """As templates know it."""
        super().__init__(type="image")


_PLAIN: Final = frozenset({"role", "content"})
_ASKING: Final = {"user": "assistant", "assistant": "user"}

MOST_PARTS: Final = 10_000
"""Most parts of a content; each costs a template time, even an empty one."""
_IMAGES: Final = ("image", "image_url", "input_image")
_ROLE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_TEXT_PARTS: Final = ("text", "input_text", "output_text")
# Templates know a model's reasoning by several names; each of them finds it.
_REASONING: Final = ("reasoning_content", "thinking", "reasoning")
_REASONING_NAMES: Final = (*_REASONING, "thought")


def is_plain(messages: Sequence[Message]) -> bool:
    """Whether users and replies take turns and have only texts: every template takes that as is."""
    wanted = None
    for message in messages:
        role = message["role"]
        if role not in _ASKING or wanted not in (None, role) or message.keys() != _PLAIN:
            return False
        if type(message["content"]) is not str or not message["content"]:
            return False
        wanted = _ASKING[role]
    return True


def is_image(part: object) -> bool:
    """Whether a part of a content is an image."""
    return isinstance(part, Mapping) and part.get("type") in _IMAGES


def has_images(messages: object) -> bool:
    """Whether a message has a part that is an image."""
    return isinstance(messages, (list, tuple)) and any(
        is_image(part)
        for message in messages
        if isinstance(message, Mapping) and isinstance(message.get("content"), (list, tuple))
        for part in message["content"]
    )


def checked(messages: Sequence[Message], first: int = 0) -> list[dict[str, Any]]:
    """Return a copy of a conversation, made of plain JSON types.

    Parts of a content are all of type "text"; calls have the form {"id", "type": "function",
    "function": {"name", "arguments"}}; a key whose value is None is left out, but for `content`;
    an assistant's reasoning has every name that templates know. Raises ArgumentError that names
    the message and the key; `first` is the number of the first message in it.
    """
    if not isinstance(messages, (list, tuple)):
        raise ArgumentError(f"messages must be a list of dicts, got {type(messages).__name__}")
    if not messages:
        raise ArgumentError("messages is empty: a conversation has at least one message")
    return [
        _message(message, f"messages[{index}]") for index, message in enumerate(messages, first)
    ]


def _message(message: object, where: str) -> dict[str, Any]:
    if not isinstance(message, Mapping):
        raise ArgumentError(f"{where} must be a dict, got {type(message).__name__}")
    role = message.get("role")
    if not isinstance(role, str) or not _ROLE.fullmatch(role):
        raise ArgumentError(
            f"{where}['role'] must be a name such as 'user' or 'assistant', got {role!r}"
        )
    calls = message.get("tool_calls")
    if calls is not None and not isinstance(calls, (list, tuple)):
        raise ArgumentError(f"{where}['tool_calls'] must be a list, got {type(calls).__name__}")
    content = message.get("content")
    if not isinstance(content, (str, list, tuple)) and not (content is None and calls):
        raise ArgumentError(
            f"{where}['content'] must be a str or a list of text parts (or None with "
            f"'tool_calls'), got {type(content).__name__}"
        )
    if isinstance(content, (list, tuple)) and len(content) > MOST_PARTS:
        raise ArgumentError(
            f"{where}['content'] has {len(content)} parts; at most {MOST_PARTS} are read"
        )
    given = {key: value for key, value in message.items() if value is not None or key == "content"}
    copied: dict[str, Any] = plain(given, where)
    if not isinstance(content, str) and content is not None:
        copied["content"] = _parts(copied["content"], f"{where}['content']")
    if calls:
        copied["tool_calls"] = [
            _call(call, f"{where}['tool_calls'][{index}]")
            for index, call in enumerate(copied["tool_calls"])
        ]
    else:
        copied.pop("tool_calls", None)
    reasoning = next((copied[key] for key in _REASONING if key in copied), None)
    if reasoning is not None:
        copied = {**dict.fromkeys(_REASONING_NAMES, reasoning), **copied}
        copied["reasoning_content"] = reasoning
    return copied


def _parts(parts: Sequence[Any], where: str) -> list[dict[str, Any]]:
    if not parts:
        raise ArgumentError(f"{where} is an empty list: use a text, or '' for none")
    checked_parts: list[dict[str, Any]] = []
    for index, part in enumerate(parts):
        place = f"{where}[{index}]"
        if not isinstance(part, dict):
            raise ArgumentError(f"{place} must be a dict, got {type(part).__name__}")
        if isinstance(part, ImagePart):
            checked_parts.append(part)
            continue
        kind = part.get("type")
        if kind not in _TEXT_PARTS:
            raise ArgumentError(f"{place} is of type {kind!r}: only text is supported")
        if not isinstance(part.get("text"), str):
            raise ArgumentError(
                f"{place}['text'] must be a str, got {type(part.get('text')).__name__}"
            )
        checked_parts.append({"type": "text", "text": part["text"]})
    return checked_parts


def _call(call: Any, where: str) -> dict[str, Any]:
    if not isinstance(call, dict):
        raise ArgumentError(f"{where} must be a dict, got {type(call).__name__}")
    if call.get("type", "function") != "function":
        raise ArgumentError(f"{where} is of type {call['type']!r}: only functions are supported")
    function = call.get("function")
    if function is None and "name" in call:  # as Hugging Face's guides write it
        function = {key: call[key] for key in ("name", "arguments") if key in call}
        call = {key: value for key, value in call.items() if key not in function}
    if not isinstance(function, dict):
        raise ArgumentError(
            f"{where}['function'] must be a dict with name and arguments, "
            f"got {type(function).__name__}"
        )
    name = function.get("name")
    if not isinstance(name, str) or not name:
        raise ArgumentError(f"{where}['function']['name'] must be a name, got {name!r}")
    arguments = function.get("arguments")
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, (str, dict)):
        raise ArgumentError(
            f"{where}['function']['arguments'] must be a dict, or a str of JSON, "
            f"got {type(arguments).__name__}"
        )
    if "id" in call and not isinstance(call["id"], str):
        raise ArgumentError(f"{where}['id'] must be a str, got {type(call['id']).__name__}")
    return {
        **{key: value for key, value in call.items() if value is not None},
        "type": "function",
        "function": {**function, "arguments": arguments},
    }


def plain(value: Any, where: str) -> Any:
    """Copy JSON-like data, so that a template gets no object with methods of another class.

    Raises ArgumentError with the place of anything that is not such data.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        text = str.__str__(value)
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ArgumentError(
                f"{where} has a lone surrogate at character {error.start}: not valid Unicode"
            ) from None
        return text
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    try:
        if isinstance(value, ImagePart):
            return ImagePart()
        if isinstance(value, Mapping):
            for key in value:
                if isinstance(key, (list, tuple, Mapping)):
                    raise ArgumentError(f"a key of {where} must be a str, got {type(key).__name__}")
            return {
                plain(key, f"a key of {where}"): plain(item, f"{where}[{key!r}]")
                for key, item in value.items()
            }
        if isinstance(value, (list, tuple)):
            return [plain(item, f"{where}[{index}]") for index, item in enumerate(value)]
    except RecursionError:
        raise ArgumentError(f"{where[:60]} is nested too deeply") from None
    raise ArgumentError(
        f"{where} must be made of JSON types (str, int, float, bool, None, list, dict), "
        f"got {type(value).__name__}"
    )
