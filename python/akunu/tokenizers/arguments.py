"""The arguments of tokenizers: texts, and sequences of token ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from contextlib import suppress
from typing import TypeVar

from akunu.errors import ArgumentError

Item = TypeVar("Item")


def ordered(name: str, given: Iterable[Item], wanted: str) -> Iterable[Item]:
    """Return a value that has an order and is not a text; ArgumentError for anything else."""
    if not isinstance(given, (str, bytes, bytearray, memoryview, Set, Mapping)):
        with suppress(TypeError):
            return iter(given)
    raise ArgumentError(f"{name} must be {wanted}, got {type(given).__name__}")


def checked_text(text: str) -> str:
    """Return a text that is valid Unicode; ArgumentError for anything else."""
    if not isinstance(text, str):
        raise ArgumentError(f"text must be a str, got {type(text).__name__}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ArgumentError(
            f"text has a lone surrogate ({text[error.start]!r}) at character {error.start}: "
            "it is not valid Unicode"
        ) from None
    return text
