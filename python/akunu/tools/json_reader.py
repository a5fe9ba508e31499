"""Reads one JSON value as its text arrives, and gives its text away piece by piece."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from akunu.tools.text_reader import TextReader, Waiting

MAX_DEPTH: Final = 100  # of arrays and objects; what is deeper is not a call

_WORD: Final = re.compile(r"[-+.0-9A-Za-z]*")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_PLAIN: Final = re.compile(r'[^"\\\x00-\x1f]*')
_HEX: Final = frozenset("0123456789abcdefABCDEF")

Emit = Callable[[str], Any]


def read_value(reader: TextReader, emit: Emit | None = None) -> Waiting[bool]:
    """Read a value that begins at the reader's place; return whether there is a valid one.

    `emit` gets its text as soon as it arrives, so it also gets the first part of a text that turns
    out to be invalid.
    """
    value = _Value(reader, emit)
    return (yield from value.read())


class _Value:
    def __init__(self, reader: TextReader, emit: Emit | None) -> None:
        self._reader = reader
        self._emit = emit
        self._given = reader.at  # up to here

    def _give(self) -> None:
        reader = self._reader
        if self._emit is not None and reader.at > self._given:
            self._emit(reader.text[self._given : reader.at])
        self._given = reader.at

    def _peek(self) -> Waiting[str]:
        reader = self._reader
        if reader.at >= len(reader.text):
            self._give()
            return (yield from reader.peek())
        return reader.text[reader.at]

    def read(self) -> Waiting[bool]:
        reader = self._reader
        closers: list[str] = []  # of the arrays and objects around this place
        wants = "value"
        while True:
            character = yield from self._peek()
            if character and character in " \t\r\n":
                reader.at += 1
                continue
            done = False
            if wants in ("key", "key or end") and character == '"':
                if not (yield from self._string()):
                    return False
                wants = "colon"
            elif wants == "colon" and character == ":":
                reader.at += 1
                wants = "value"
            elif wants == "comma or end" and character == ",":
                reader.at += 1
                wants = "key" if closers[-1] == "}" else "value"
            elif wants.endswith("or end") and closers and character == closers[-1]:
                reader.at += 1
                closers.pop()
                done = True
            elif wants.startswith("value") and character and character in "{[":
                reader.at += 1
                closers.append("}" if character == "{" else "]")
                if len(closers) > MAX_DEPTH:
                    return False
                wants = "key or end" if character == "{" else "value or end"
            elif wants.startswith("value") and character:
                read = self._string() if character == '"' else self._word()
                if not (yield from read):
                    return False
                done = True
            else:
                return False
            if done:
                if not closers:
                    self._give()
                    return True
                wants = "comma or end"

    def _string(self) -> Waiting[bool]:
        reader = self._reader
        reader.at += 1
        while True:
            plain = _PLAIN.match(reader.text, reader.at)
            assert plain is not None
            reader.at = plain.end()
            character = yield from self._peek()
            if character == '"':
                reader.at += 1
                return True
            if character == "\\":
                reader.at += 1
                escaped = yield from self._peek()
                if not escaped or escaped not in '"\\/bfnrtu':
                    return False
                reader.at += 1
                if escaped == "u":
                    for _ in range(4):
                        if (yield from self._peek()) not in _HEX:
                            return False
                        reader.at += 1
            elif not character or character < " ":
                return False

    def _word(self) -> Waiting[bool]:
        """Read a number, true, false or null."""
        reader = self._reader
        begin = reader.at
        while True:
            match = _WORD.match(reader.text, reader.at)
            assert match is not None
            reader.at = match.end()
            if reader.at < len(reader.text):
                break
            self._give()
            if not (yield from reader.more()):
                break
        word = reader.text[begin : reader.at]
        return word in ("true", "false", "null") or _NUMBER.fullmatch(word) is not None
