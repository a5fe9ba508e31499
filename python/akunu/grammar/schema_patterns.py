"""Patterns of JSON schemas: what of them no grammar has, and where it stands."""

from __future__ import annotations

import re

from akunu.grammar.schema_reading import Place

_NEVER = (
    (r"\(\?=", "a look ahead"),
    (r"\(\?!", "a negative look ahead"),
    (r"\(\?<=", "a look behind"),
    (r"\(\?<!", "a negative look behind"),
)


def checked_pattern(place: Place, pattern: str, *keys: str) -> str:
    """The pattern; Inexpressible where it has what no grammar can hold a text to."""
    if found := unsupported(pattern):
        from akunu.grammar.schema_writing import Inexpressible

        position, what = found
        raise Inexpressible(place, f"{what} at character {position + 1} of {pattern!r}", *keys)
    return pattern


def unsupported(pattern: str) -> tuple[int, str] | None:
    """Where a pattern has a look around or a reference back, and which."""
    inside = False
    position = 0
    while position < len(pattern):
        char = pattern[position]
        if char == "\\":
            after = pattern[position + 1 : position + 2]
            if not inside and after.isdigit() and after != "0":
                return position, "a reference back"
            if not inside and after == "k" and pattern[position + 2 : position + 3] == "<":
                return position, "a reference back"
            position += 2
            continue
        if inside:
            inside = char != "]"
        elif char == "[":
            inside = True
            # "]" right behind the opening is a character of the class in Rust and Python.
            position += 1 if pattern[position + 1 : position + 2] == "^" else 0
        else:
            for never, what in _NEVER:
                if re.match(never, pattern[position:]):
                    return position, what
        position += 1
    return None
