"""Typed access to a GGUF file's keys and values.

What a model cannot do without is an error where it is missing or wrong. What it can do without is
ignored where it is wrong, with a note that says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from akunu.errors import ModelFormatError

TOKENS: Final = "tokenizer.ggml.tokens"


class Metadata(Protocol):
    """Keys and values of a GGUF file; a dict has the form, and `akunu._core.GgufFile`."""

    def __contains__(self, key: object, /) -> bool:
        """Whether the file has `key`."""

    def __getitem__(self, key: str, /) -> object:
        """Return the value of `key`."""


def is_utf8(text: str) -> bool:
    """Whether a string of a file was valid UTF-8; bytes that are not come as lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def raw_bytes(text: str) -> bytes:
    """Return the bytes that a string has in the file."""
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError:  # a surrogate that stands for no byte, out of a dict of the caller's
        return text.encode(errors="surrogatepass")


def printable(text: str) -> str:
    """Return a string of a file with its bytes that are not UTF-8 spelled out.

    >>> printable("J\\udcf6rg")
    'J\\\\xf6rg'
    """
    return text if is_utf8(text) else raw_bytes(text).decode(errors="backslashreplace")


class Reader:
    """The values of a file by key, checked, and notes on those that were ignored."""

    def __init__(self, metadata: Metadata) -> None:
        """Read from `metadata`."""
        self._metadata = metadata
        self.notes: list[str] = []

    def value(self, key: str) -> object:
        """Return a value as it is, None where the file has none."""
        # `in` and [] only: the parser's mapping raises KeyError and has no other promise.
        return self._metadata[key] if key in self._metadata else None  # noqa: SIM401

    def string(self, key: str) -> str | None:
        """Return a string, None where there is none. Raises ModelFormatError for something else."""
        value = self.value(key)
        if value is None:
            return None
        if not isinstance(value, str):
            raise ModelFormatError(f"{key} is {type(value).__name__}, expected a string")
        return value

    def flag(self, key: str) -> bool | None:
        """Return a bool, None where there is none; anything else is noted and ignored."""
        value = self.value(key)
        if value is None or isinstance(value, (bool, np.bool_)):
            return None if value is None else bool(value)
        self.notes.append(f"{key} is {type(value).__name__}, expected a bool: ignored")
        return None

    def token_id(self, key: str, n_tokens: int, *, needed: bool) -> int | None:
        """Return a token id, None where there is none.

        An id outside this vocabulary is noted and ignored, or a ModelFormatError if
        `needed`.
        """
        value = self.value(key)
        if value is None:
            return None
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
            fault = f"{key} is {type(value).__name__}, expected a token id"
        elif not 0 <= value < n_tokens:
            fault = f"{key} is {value}, but {TOKENS} has ids 0 to {n_tokens - 1}"
        else:
            return int(value)
        if needed:
            raise ModelFormatError(fault)
        self.notes.append(f"{fault}: ignored")
        return None

    def strings(self, key: str) -> tuple[list[str], dict[int, bytes]]:
        """Return strings, "" where one is not UTF-8, and the bytes of those by index.

        Raises ModelFormatError where they are missing or something else.
        """
        value = self.value(key)
        if value is None:
            raise ModelFormatError(f"{key} is missing")
        if isinstance(value, (str, bytes)) or not isinstance(value, (Sequence, np.ndarray)):
            raise ModelFormatError(f"{key} is {type(value).__name__}, expected a list of strings")
        strings = value if isinstance(value, list) else list(value)
        try:  # one pass in C; the rest is for the rare file
            "".join(strings).encode()
        except TypeError:
            index = next(i for i, string in enumerate(strings) if not isinstance(string, str))
            kind = type(strings[index]).__name__
            raise ModelFormatError(f"{key}[{index}] is {kind}, expected a string") from None
        except UnicodeEncodeError:
            raw = {i: raw_bytes(text) for i, text in enumerate(strings) if not is_utf8(text)}
            return ["" if i in raw else text for i, text in enumerate(strings)], raw
        return strings, {}

    def numbers(self, key: str, n_tokens: int | None, kinds: str) -> NDArray[np.generic] | None:
        """Return an array of a number per token, None where there is none.

        `n_tokens`: None for an array of any length.

        Raises ModelFormatError for another length, or a type that is not one of NumPy's `kinds`.
        """
        value = self.value(key)
        if value is None:
            return None
        if isinstance(value, str) or not isinstance(value, (Sequence, np.ndarray)):
            raise ModelFormatError(f"{key} is {type(value).__name__}, expected an array of numbers")
        try:
            array = np.asarray(value)
        except (ValueError, OverflowError):
            raise ModelFormatError(f"{key} is not an array of numbers") from None
        if array.ndim != 1 or (array.size and array.dtype.kind not in kinds):
            raise ModelFormatError(
                f"{key} holds {array.dtype} in {array.ndim} dimensions, expected numbers in one"
            )
        if n_tokens is not None and array.size != n_tokens:
            raise ModelFormatError(f"{key} has {array.size} entries, {TOKENS} has {n_tokens}")
        return array
