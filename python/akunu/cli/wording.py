"""Pieces of sentences that several messages have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from akunu.cli.terminal.console import UsageError
from akunu.errors import ArgumentError
from akunu.options.sampling_options import declared_options


def counted(count: int, thing: str) -> str:
    """Return a number and the word for what it counts.

    >>> counted(1, "turn"), counted(2, "turn"), counted(0, "turn")
    ('1 turn', '2 turns', '0 turns')
    """
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def shortened(text: str, most: int = 60) -> str:
    """Return a text in one line of at most this many characters.

    >>> shortened("What is\\n12 + 7?"), shortened("What is it?", most=7)
    ('What is 12 + 7?', 'What...')
    """
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 3] + "..."


def reason(error: Exception) -> str:
    """Return the message of an error, with the file if the system names it."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror


def refusal(error: ArgumentError, name: str = "") -> str:
    """Return an error about an option's value, without Python's notation.

    `name`: what the person calls the option, where that is not its name in Python.

    >>> from akunu import SamplingOptions
    >>> try:
    ...     SamplingOptions(top_k="a\\\\b")
    ... except ArgumentError as error:
    ...     print(refusal(error, "--top-k"))
    --top-k is 'a\\b'; it must be an integer from 0 to 4294967295, or -1
    """
    if error.refused is None:
        return str(error)
    option, value, allowed = error.refused
    name = name or option
    if option == "stop":
        return f"{name} must be text, of one character at least"
    shown = f"'{shortened(value)}'" if isinstance(value, str) else str(value)
    declared = declared_options().get(option)
    or_minus_one = ", or -1" if declared and declared.minus_one is not ... else ""
    return f"{name} is {shown}; it must be {allowed}{or_minus_one}"


@contextmanager
def without_notation() -> Iterator[None]:
    """Have an ArgumentError about an option's value be a UsageError, in the words of `refusal`."""
    try:
        yield
    except ArgumentError as error:
        if error.refused is None:
            raise
        raise UsageError(refusal(error)) from None


def thinking_of(text: str) -> bool | str | None:
    """Return what a person wrote of thinking: on, off, a level, or default.

    >>> thinking_of("off"), thinking_of("low"), thinking_of("default")
    (False, 'low', None)
    """
    words = {"on": True, "true": True, "off": False, "false": False, "none": False}
    lower = text.strip().lower()
    return None if lower == "default" else words.get(lower, lower)
