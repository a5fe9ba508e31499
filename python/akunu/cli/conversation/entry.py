"""What a person typed, taken apart: a question, or a command and its argument."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

QUOTES: Final = '"""'

_COMMAND = re.compile(r"(/(?:\w+|\?))(?:[ \t]+(.*))?", re.DOTALL)
_OPENED = re.compile(r'\s*(?:/\w+[ \t]+)?"""')
# Commands whose argument is a text, which may have several lines without quotes as well.
_TEXT_COMMANDS: Final = ("/system", "/sys")


@dataclass(frozen=True, slots=True)
class Entry:
    """The input until it was complete."""

    text: str
    """The question; what was typed where it is a command."""
    command: str = ""
    """The command's name with its slash, "" for a question."""
    argument: str = ""
    """What follows the command's name, without quotes around several lines."""


def parse_entry(typed: str) -> Entry:
    r"""Return a complete text as a question or a command.

    A command is one line, or has an argument between three quotation marks: a pasted text that
    begins with a slash is a question.

    >>> parse_entry("/undo 2").argument, parse_entry(" /undo is what?").text
    ('2', '/undo is what?')
    >>> parse_entry('/system \"\"\"Be brief.\nBe kind.\"\"\"').argument
    'Be brief.\nBe kind.'
    """
    block = _unquoted(typed)
    if block is not None:
        return Entry(block)
    line = typed.rstrip()
    match = _COMMAND.fullmatch(line)
    if match is not None:
        argument = (match[2] or "").strip()
        quoted = _unquoted(argument)
        if quoted is not None:
            return Entry(line, match[1], quoted)
        if "\n" not in line or match[1] in _TEXT_COMMANDS:
            return Entry(line, match[1], argument)
    # The first line of pasted code keeps its indentation.
    return Entry(line.lstrip() if "\n" not in line.strip() else line.strip("\n"))


def is_open(typed: str) -> bool:
    """Whether a text has begun with three quotation marks that no line's end has closed yet."""
    match = _OPENED.match(typed)
    return match is not None and not _is_closed(typed[match.end() :])


def _is_closed(text: str) -> bool:
    return any(line.rstrip().endswith(QUOTES) for line in text.split("\n"))


def _unquoted(text: str) -> str | None:
    """Return the text inside quotation marks; None if they are not around all of it."""
    text = text.strip()
    inner = text[len(QUOTES) : -len(QUOTES)]
    if len(text) < 2 * len(QUOTES) or not text.startswith(QUOTES) or not text.endswith(QUOTES):
        return None
    return None if _is_closed(inner) else inner.strip("\n")
