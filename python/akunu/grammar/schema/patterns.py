"""Patterns of JSON schemas in llguidance's words, or what of them no grammar has, and where."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from akunu.grammar.ecma.parsing import PatternError
from akunu.grammar.ecma.translation import translated, translated_as_one
from akunu.grammar.schema.reading import SchemaPlace
from akunu.grammar.schema.writer_parts import Inexpressible

Result = TypeVar("Result")


def patterns_of(place: SchemaPlace, pattern: str, *keys: str) -> tuple[str, ...]:
    """The patterns that a text must all match; Inexpressible where no grammar holds it to that."""
    return _said(translated, place, pattern, keys)


def checked_pattern(place: SchemaPlace, pattern: str, *keys: str) -> str:
    """The pattern as one; Inexpressible where no grammar holds a text to it."""
    return _said(translated_as_one, place, pattern, keys)


def _said(
    translate: Callable[[str], Result], place: SchemaPlace, pattern: str, keys: tuple[str, ...]
) -> Result:
    try:
        return translate(pattern)
    except PatternError as error:
        shown = pattern if len(pattern) <= 200 else pattern[:197] + "..."
        what = f"{error.what} at character {error.position + 1} of {shown!r}"
        if error.is_syntax:
            what = f"the pattern is not a regular expression: {what}"
        raise Inexpressible(place, what, *keys) from None
