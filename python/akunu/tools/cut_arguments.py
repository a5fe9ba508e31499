"""The arguments of a call as an object of JSON, also of a call that was cut.

A number that no double holds, such as 9e999, is null there, as where JavaScript and pydantic write
JSON: Python would read infinity, which JSON cannot say.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final

from akunu.tools.calls import ToolCall
from akunu.tools.json_reader import read_value
from akunu.tools.text_reader import TextReader

_CLOSERS: Final = {"{": "}", "[": "]"}


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """Return the arguments of a call; if the call was cut, those that are complete."""
    return arguments_so_far(call.arguments_text) if call.is_cut else _read(call.arguments_text)


def arguments_so_far(text: str) -> dict[str, Any]:
    """Return the object that a text begins, without a string or a key that is not complete.

    Raises ValueError for a text that does not begin an object.

    >>> arguments_so_far('{"city": "Rome", "days": [1, 2, "thr')
    {'city': 'Rome', 'days': [1, 2]}
    """
    if not begins_object(text):
        raise ValueError("it does not begin an object")
    closers = ""  # of the arrays and objects around this place
    end, closing = 0, "{}"  # the end of the complete part, and the characters that close it
    in_string = is_escaped = False
    for at, character in enumerate(text):
        if in_string:
            in_string = is_escaped or character != '"'
            is_escaped = not is_escaped and character == "\\"
        elif character == '"':
            in_string = True
        elif character in _CLOSERS:
            closers = _CLOSERS[character] + closers
            end, closing = at + 1, closers
        elif closers and character == closers[0]:
            closers = closers[1:]
            end, closing = at + 1, closers
        elif character == ",":
            end, closing = at, closers
    try:
        return _read(text + closers)
    except ValueError:
        return _read(text[:end] + closing)


def _read(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        text, parse_float=_float, parse_int=_int, parse_constant=lambda _: None
    )
    return found


def _float(text: str) -> float | None:
    found = float(text)
    return found if math.isfinite(found) else None


def _int(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:  # thousands of digits, which Python does not read
        return None


def begins_object(text: str) -> bool:
    """Whether a text is the beginning of an object, or its whole."""
    reader = TextReader()
    reader.text, reader.is_over = text.lstrip(), True
    parser = read_value(reader)
    while True:
        try:
            next(parser)
        except StopIteration as end:
            is_object = reader.text[:1] in ("", "{")
            return is_object and (end.value or reader.lacked_text)
