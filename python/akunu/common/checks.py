"""Checks of arguments: each returns the value in its plain form, or says what it must be."""

from __future__ import annotations

import math
import numbers
import operator
import os
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from akunu.errors import ArgumentError

MAX_UINT32 = 2**32 - 1
MAX_UINT64 = 2**64 - 1


def integer(
    name: str, value: object, lowest: int, highest: int | None = None, besides: str = ""
) -> int:
    """Return `value` as an int; ArgumentError if it is not one or outside lowest..highest."""
    allowed = f"an integer from {lowest}" + (f" to {highest}" if highest is not None else " up")
    try:
        if isinstance(value, bool):
            raise TypeError
        result = operator.index(value)  # type: ignore[arg-type]  # the TypeError is what we want
    except TypeError:
        raise refusal(name, value, allowed, besides) from None
    if result < lowest or (highest is not None and result > highest):
        raise refusal(name, value, allowed, besides)
    return result


def priority_of(value: object) -> int:
    """Return the priority of a request; ArgumentError for anything else."""
    return integer("priority", value, -(2**31), 2**31 - 1)


def number(
    name: str, value: object, lowest: float, highest: float, *, above: bool = False
) -> float:
    """Return `value` as a float; ArgumentError if it is not one, NaN or outside lowest..highest.

    `above`: lowest itself is refused as well.
    """
    allowed = f"a number from {lowest:g}{' (excluded)' if above else ''} to {highest:g}"
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise refusal(name, value, allowed, "")
    try:
        result = float(value)
    except OverflowError:  # an int beyond every float
        result = math.inf
    if not lowest <= result <= highest or (above and result == lowest):  # NaN is in no range
        raise refusal(name, value, allowed, "")
    return result


def file_path(name: str, value: object) -> Path:
    """Return the path of a file, with the home for ~; ArgumentError for anything else."""
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
        raise refusal(name, value, "the path of a file", "")
    path = Path(os.fsdecode(value))
    try:
        return path.expanduser()
    except RuntimeError:  # there is no such user
        return path


def flag(name: str, value: object) -> None:
    """Raise ArgumentError for anything but a bool; NumPy's bool is allowed."""
    if not isinstance(value, bool) and type(value).__name__ not in ("bool", "bool_"):
        raise refusal(name, value, "True or False", "")


def texts(name: str, value: object) -> tuple[str, ...]:
    """Return one str or several as a tuple; ArgumentError for empty ones and other types."""
    given = (value,) if isinstance(value, str) else value
    if isinstance(given, (bytes, bytearray, memoryview)) or not isinstance(given, (Sequence, Set)):
        raise refusal(name, value, "a str or several, each not empty", "")
    for text in given:
        # A lone surrogate is not text that a model could write.
        if not isinstance(text, str) or not text or any("\ud800" <= c <= "\udfff" for c in text):
            raise refusal(name, value, "a str or several, each not empty", "")
    return tuple(sorted(given) if isinstance(given, Set) else given)


def token_id_list(name: str, value: Any) -> tuple[int, ...]:
    """Return token ids in ascending order, each once; ArgumentError for anything else."""
    try:
        if isinstance(value, (str, bytes, bytearray, Mapping)):
            raise TypeError
        return tuple(sorted({integer("token", token, 0, MAX_UINT32) for token in value}))
    except (TypeError, ValueError):  # the ArgumentErrors of `integer`, too
        raise refusal(name, value, "token ids, each from 0 up", "") from None


def in_words(names: Sequence[str], last: str = "or") -> str:
    """Return a list as a sentence has it.

    >>> in_words(["md", "json", "csv"]), in_words(["a", "b"], "and"), in_words(["a"])
    ('md, json or csv', 'a and b', 'a')
    """
    return f" {last} ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def refusal(name: str, value: object, allowed: str, besides: str = "") -> ArgumentError:
    """Return the error that says what an argument is and what it must be."""
    shown = repr(value)
    if len(shown) > 60:
        shown = shown[:57] + "..."
    error = ArgumentError(f"{name} is {shown}; it must be {f'{allowed} {besides}'.rstrip()}")
    error.refused = (name, value, allowed)
    return error
