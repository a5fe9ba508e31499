"""Reads calls of tools out of a reply, in any notation that `akunu.tools.notation` can say."""

from __future__ import annotations

import json
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from akunu.common.clock_and_ids import random_hex
from akunu.text.deltas import (
    Delta,
    ToolCallArguments,
    ToolCallCut,
    ToolCallDropped,
    ToolCallEnd,
    ToolCallStart,
)
from akunu.tools.json_reader import read_value
from akunu.tools.notation import Element, Literal, Notation, NotationField, Optional, elements
from akunu.tools.text_reader import MARKING, TextReader, Waiting, read_literal
from akunu.tools.values import ParameterReader, first_word, read_python, read_words

_ID_CHARACTERS: Final = string.ascii_letters + string.digits
_LONGEST_ID: Final = 200

NewId = Callable[[str, str, int], str]
"""Takes a notation's `id_form`, a name and an index; returns an id."""


def new_id(form: str, name: str, index: int) -> str:
    """Return an id for a call that the model wrote none for."""
    if form == "9":
        return "".join(_ID_CHARACTERS[int(random_hex(4), 16) % 62] for _ in range(9))
    if form:
        return form.format(name=name, index=index)
    return f"call_{random_hex(12)}"


class NotationParser:
    """Reads calls of certain tools; a `CallParser` of `akunu.text.reply_splitter`."""

    def __init__(
        self,
        ways: Sequence[Notation],
        tools: Mapping[str, Mapping[str, Any]],
        *,
        most: int | None = None,
        new_id: NewId = new_id,
    ) -> None:
        """`tools`: by its name, the JSON schema of a tool's arguments. `most`: read no more calls.

        A name that is not among them makes a text no call.
        """
        self._ways = ways
        self._tools = tools
        self._new_id = new_id
        self._most = most
        self._ids: set[str] = set()
        self.n_calls = 0
        anywhere = [way for way in ways if not way.at_start]
        self.openings = tuple(opening for way in anywhere for opening in way.openings)
        self.markers = tuple(text for way in ways for text in way.literals)

    @property
    def is_complete(self) -> bool:
        """Whether the reply has all calls that it may have."""
        return self._most is not None and self.n_calls >= self._most

    def read(self, reader: TextReader, out: list[Delta], *, at_start: bool) -> Waiting[bool]:
        """See `CallParser.read`."""
        begin = reader.at
        is_cut = False
        for way in self._ways:
            if way.at_start == at_start:
                reader.at = begin
                reader.lacked_text = False
                if (yield from self._section(way, reader, out)):
                    return True
                is_marked = not at_start or begins_with_marker(way, reader.text[begin:])
                is_cut |= reader.is_cut and reader.lacked_text and is_marked
        if is_cut:  # it would have been a call
            reader.at = len(reader.text)
            return True
        reader.at = begin
        return False

    def _section(self, way: Notation, reader: TextReader, out: list[Delta]) -> Waiting[bool]:
        before = self.n_calls
        if not (yield from read_elements(reader, elements(way.before))):
            return False
        is_cut = False
        while self._most is None or self.n_calls < self._most:
            begin = reader.at
            reader.lacked_text = False
            if self.n_calls > before and way.between.strip():
                yield from reader.skip_space()
                if not (yield from read_literal(reader, way.between)):
                    is_cut = reader.is_cut and reader.lacked_text
                    reader.at = begin
                    break
            yield from reader.skip_space()
            call = _Call(way, reader, out, self)
            if not (yield from call.read()):
                is_cut = reader.is_cut and reader.lacked_text
                reader.at = begin
                break
            self._ids.add(call.id)
            self.n_calls += 1
        if self.n_calls == before:
            return False
        begin = reader.at
        reader.lacked_text = False
        if not (yield from read_elements(reader, elements(way.after), space_first=True)):
            reader.at = begin
        is_cut |= reader.is_cut and reader.lacked_text
        if is_cut:  # within what stands around calls: no text
            reader.at = len(reader.text)
        return True

    def known(self, name: str) -> bool:
        """Whether there is a tool of that name."""
        return name in self._tools

    def begins_name(self, text: str) -> bool:
        """Whether a tool's name begins like that."""
        return any(name.startswith(text) for name in self._tools)

    def goes_on(self, text: str) -> bool:
        """Whether a tool's name begins like that, and is longer."""
        return any(name.startswith(text) and name != text for name in self._tools)

    def schema(self, name: str) -> Mapping[str, Any]:
        """Return the schema of a tool's arguments."""
        return self._tools[name]

    def id_for(self, wanted: str, way: Notation, name: str) -> str:
        """Return the id that the model gave, or a new one where there is none, or not a new one."""
        if wanted and wanted not in self._ids and len(wanted) <= _LONGEST_ID:
            return wanted
        found = self._new_id(way.id_form, name, self.n_calls)
        index = self.n_calls
        while found in self._ids and "{index}" in way.id_form:
            index += 1
            found = self._new_id(way.id_form, name, index)
        return found


class _Call:
    """One call that is being read."""

    def __init__(
        self, way: Notation, reader: TextReader, out: list[Delta], parser: NotationParser
    ) -> None:
        self._way = way
        self._reader = reader
        self._out = out
        self._parser = parser
        self._index = parser.n_calls
        self._is_begun = False
        self._arguments: list[str] = []
        self.name = ""
        self.id = ""

    def read(self) -> Waiting[bool]:
        reader = self._reader
        is_whole = yield from self._read()
        if is_whole and self._is_sound():
            self._out.append(ToolCallEnd(self._index))
            return True
        if self.name and not is_whole and reader.is_cut and reader.lacked_text:
            self._begin()
            self._out.append(ToolCallCut(self._index))
            reader.at = len(reader.text)
            return True
        if self._is_begun:
            self._out.append(ToolCallDropped(self._index))
        return False

    def _begin(self) -> None:
        if not self._is_begun:
            self.id = self._parser.id_for(self.id, self._way, self.name)
            self._out.append(ToolCallStart(self._index, self.id, self.name))
            self._is_begun = True

    def _give(self, text: str) -> None:
        self._begin()
        self._arguments.append(text)
        self._out.append(ToolCallArguments(self._index, text))

    def _is_sound(self) -> bool:
        """Whether the arguments are an object whose strings are Unicode."""
        text = "".join(self._arguments)
        try:
            parsed = json.loads(text)
            if "\\u" in text:
                json.dumps(parsed, ensure_ascii=False).encode()
        except (ValueError, RecursionError):
            return False
        return isinstance(parsed, dict)

    def _read(self) -> Waiting[bool]:
        reader = self._reader
        parts = elements(self._way.call)
        for place, part in enumerate(parts):
            follows = parts[place + 1] if place + 1 < len(parts) else None
            if isinstance(part, NotationField):
                if not (yield from self._field(part.name, parts[place + 1 :])):
                    return False
            elif isinstance(part, Optional):
                yield from read_optional(reader, part.text)
            elif not (yield from read_literal(reader, part.text, word_follows=follows is not None)):
                # Where a token ends the text, that token was the rest of the notation.
                over = reader.is_over and not reader.rest.strip()
                return over and bool(self._arguments)
        return bool(self._arguments)

    def _field(self, field: str, after: Sequence[Element]) -> Waiting[bool]:
        reader = self._reader
        if field == "name":
            return (yield from self._name())
        if field == "id":
            self.id = yield from read_until(reader, first_literal(after))
            return bool(self.id)
        if field == "index":
            begin = reader.at
            while (yield from reader.peek()).isdecimal():
                reader.at += 1
            if self._way.id_form:
                index = reader.text[begin : reader.at]
                self.id = self._way.id_form.format(name=self.name, index=index)
            return reader.at > begin
        if field == "any":
            yield from read_until(reader, first_literal(after))
            return True
        if field == "arguments":
            yield from reader.skip_space()
            return (yield from reader.peek()) == "{" and (yield from read_value(reader, self._give))
        if field == "call":
            return (yield from self._object())
        if field == "keyed":
            return (yield from self._keyed())
        if field == "parameters":
            schema = self._parser.schema(self.name)
            self._begin()
            parameters = ParameterReader(self._way.parameter, schema, first_literal(after))
            return (yield from parameters.read(reader, self._give))
        if field == "words":
            return (yield from read_words(reader, self._way.quote, self._give))
        return (yield from self._name()) and (yield from read_python(reader, self._give))

    def _name(self) -> Waiting[bool]:
        """Read the longest name of a tool."""
        reader = self._reader
        begin = end = reader.at
        while character := (yield from reader.peek()):
            text = reader.text[begin : reader.at] + character
            if not self._parser.begins_name(text):
                break
            reader.at += 1
            if self._parser.known(text):
                self.name, end = text, reader.at
        if not character and reader.is_cut and self._parser.goes_on(reader.text[begin:]):
            self.name, end = "", begin
        reader.at = end
        return end > begin

    def _string(self) -> Waiting[str | None]:
        reader = self._reader
        begin = reader.at
        if (yield from reader.peek()) != '"' or not (yield from read_value(reader)):
            return None
        found: str = json.loads(reader.text[begin : reader.at])
        return found

    def _keyed(self) -> Waiting[bool]:
        reader = self._reader
        if not (yield from read_literal(reader, "{")):
            return False
        yield from reader.skip_space()
        name = yield from self._string()
        if name is None or not self._parser.known(name):
            return False
        self.name = name
        if not (yield from read_literal(reader, " : ", word_follows=True)):
            return False
        if (yield from reader.peek()) != "{" or not (yield from read_value(reader, self._give)):
            return False
        return (yield from read_literal(reader, " }"))

    def _object(self) -> Waiting[bool]:
        """Read `{call}`, its keys in any order."""
        reader = self._reader
        arguments: str | None = None  # that came before the name
        if not (yield from read_literal(reader, "{")):
            return False
        while True:
            yield from reader.skip_space()
            key = yield from self._string()
            if key is None or not (yield from read_literal(reader, " : ")):
                return False
            yield from reader.skip_space()
            begin = reader.at
            first = yield from reader.peek()
            if key in self._way.arguments_keys and arguments is None and not self._arguments:
                streams = first == "{" and bool(self.name)
                if not (yield from read_value(reader, self._give if streams else None)):
                    return False
                if not streams:
                    arguments = _as_object(reader.text[begin : reader.at])
                    if arguments is None:
                        return False
            elif not (yield from read_value(reader)):
                return False
            else:
                value = json.loads(reader.text[begin : reader.at])
                if key == self._way.name_key and not self.name:
                    if not isinstance(value, str) or not self._parser.known(value):
                        return False
                    self.name = value
                elif key in ("id", "call_id") and not self._is_begun and isinstance(value, str):
                    self.id = value
                elif self._way.at_start and key not in ("id", "type", "call_id"):
                    return False  # an answer in JSON
            if arguments is not None and self.name and not self._arguments:
                self._give(arguments)
            yield from reader.skip_space()
            if not (yield from read_literal(reader, ",")):
                break
        if not (yield from read_literal(reader, "}")) or not self.name:
            return False
        if not self._arguments:
            if self._way.at_start:
                return False
            self._give("{}")
        return True


def _as_object(text: str) -> str | None:
    """Return the text of an object that some models write as a string or as null, else None."""
    value = json.loads(text)
    if isinstance(value, dict):
        return text
    if value is None:
        return "{}"
    if isinstance(value, str):
        try:
            return value if isinstance(json.loads(value), dict) else None
        except ValueError:
            return None
    return None


def begins_with_marker(way: Notation, text: str) -> bool:
    """Whether a text, or its part so far, begins with a marker that no answer begins with."""
    openings = [opening for opening in way.openings if len(opening) > 1 and MARKING & set(opening)]
    first = first_word(text)
    return len(first) > 1 and any(
        first.startswith(each) or each.startswith(first) for each in openings
    )


def read_optional(reader: TextReader, text: str) -> Waiting[None]:
    """Read a text that may be there."""
    begin = reader.at
    if not (yield from read_literal(reader, text)):
        reader.at = begin


def read_elements(
    reader: TextReader, parts: Sequence[Element], *, space_first: bool = False
) -> Waiting[bool]:
    """Read literals."""
    if parts and space_first:
        yield from reader.skip_space()
    for part in parts:
        if isinstance(part, Optional):
            yield from read_optional(reader, part.text)
        elif isinstance(part, Literal) and not (yield from read_literal(reader, part.text)):
            return False
    return True


def first_literal(parts: Sequence[Element]) -> str:
    """Return the text that follows a field."""
    found = next((part.text for part in parts if isinstance(part, Literal)), "")
    return found


def read_until(reader: TextReader, text: str) -> Waiting[str]:
    """Read up to a text of a pattern, and stay before it; "" where it does not come soon."""
    begin = reader.at
    text = first_word(text)
    while True:
        at = reader.text.find(text, begin)
        if at >= 0:
            reader.at = at
            return reader.text[begin:at] if at - begin <= _LONGEST_ID else ""
        if len(reader.text) - begin > _LONGEST_ID + len(text):
            return ""
        if not (yield from reader.more()):
            return ""
