"""Values and their kinds in JSON's words: who reads an answer over HTTP may not know Python.

>>> as_json([True, None, "a"]), kind_of(None), kind_of({})
('[true, null, "a"]', 'null', 'an object')
>>> in_json_words("thinking is 'None'; it must be True, or None")
"thinking is 'None'; it must be true, or null"
>>> in_json_words("messages[0]['content'] must be a dict, got NoneType")
'messages[0].content must be an object, got null'
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from akunu.common.quoting import shorten_text

_KINDS: Final[dict[str, str]] = {
    "NoneType": "null",
    "bool": "true or false",
    "str": "a text",
    "int": "a number",
    "float": "a number",
    "dict": "an object",
    "list": "a list",
    "tuple": "a list",
}
_WORDS: Final[dict[str, str]] = {
    "None": "null",
    "True": "true",
    "False": "false",
    "a dict or a function": "an object",
    "dicts or functions": "objects",
    "a dict": "an object",
    "dicts": "objects",
    "dict": "object",
    "a str": "a text",
    "str": "text",
    "a bool": "true or false",
    "an int": "an integer",
    "a float": "a number",
}
# What stands between quotes is a value of the request's own: it stays as it is.
_QUOTED: Final = r"""(?<!\w)(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")(?!\w)"""
_KEY: Final = re.compile(r"(?<=[\w\]])\['(\w+)'\]")
_WORD: Final = re.compile(rf"{_QUOTED}|\b(?:{'|'.join(_WORDS)})\b")
_GOT: Final = re.compile(rf"\b(got|not|of a) ({'|'.join(_KINDS)})\b")


def as_json(value: Any) -> str:
    """Return a value of a request as JSON, in at most 120 characters."""
    try:
        return shorten_text(json.dumps(value, ensure_ascii=False))
    except (TypeError, ValueError):  # a value that a reader has made of it
        return shorten_text(repr(value))
    except RecursionError:
        return "something nested deeply"


def kind_of(value: Any) -> str:
    """Return what JSON calls this kind of value."""
    name = type(value).__name__
    return _KINDS.get(name, name)


def in_json_words(message: str) -> str:
    """Return a message of akunu's with JSON's words in place of Python's."""
    message = _KEY.sub(r".\1", message)
    message = _GOT.sub(lambda found: f"{found[1]} {_KINDS[found[2]]}", message)
    return _WORD.sub(lambda found: _WORDS.get(found[0], found[0]), message)
