"""Arguments that are not written as JSON: parameters between tags, Python, Gemma's own."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from akunu.tools.json_reader import MAX_DEPTH
from akunu.tools.notation import Literal, NotationField, elements
from akunu.tools.text_reader import Markers, TextReader, Waiting, read_literal

_LONGEST_KEY: Final = 200
_CONSTANTS: Final = {"True": "true", "False": "false", "None": "null"}  # as Python spells them
_NOT_PYTHON: Final = (ValueError, SyntaxError, RecursionError, MemoryError, TypeError)
_BARE: Final = re.compile(r"[^\s,:{}\[\]]*")

Emit = Callable[[str], Any]


def as_json(value: Any) -> str:
    """Return a value as it stands in arguments."""
    return json.dumps(value, ensure_ascii=False)


def json_types(schema: object) -> frozenset[str]:
    """Return the JSON types that a schema allows; none: it does not say."""
    if not isinstance(schema, Mapping):
        return frozenset()
    # A default that is null is a value that may be passed, whatever the type says.
    nothing = {"null"} if "default" in schema and schema["default"] is None else set()
    named = schema.get("type")
    if isinstance(named, str):
        return frozenset([named, *nothing])
    if isinstance(named, (list, tuple)):
        return frozenset([*map(str, named), *nothing])
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), (list, tuple)):
            found = [json_types(each) for each in schema[key]]
            return frozenset().union(*found) if all(found) else frozenset()
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if isinstance(values, (list, tuple)):
        return frozenset(_type_of(value) for value in values)
    return frozenset()


def _type_of(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    if value is None:
        return "null"
    if isinstance(value, (int, float)):
        return "integer" if float(value).is_integer() else "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def first_word(text: str) -> str:
    """Return a text of a pattern up to the first whitespace in it, which may be any."""
    return next(iter(text.split()), "")


def value_as_json(text: str, types: frozenset[str]) -> str:
    """Return the JSON of a value between tags: a string as it is, or anything else as JSON."""
    if types == {"string"}:
        return as_json(text)
    stripped = _CONSTANTS.get(text.strip(), text.strip())
    try:
        found = _type_of(json.loads(stripped, parse_constant=_no_constant))
    except (ValueError, RecursionError):
        # Some templates write what is nested as Python does, and so do their models.
        if stripped[:1] not in ("{", "[") or not types & {"object", "array"}:
            return as_json(text)
        try:
            value = _python_value(ast.parse(stripped, mode="eval").body)
        except _NOT_PYTHON:
            return as_json(text)
        found, stripped = _type_of(value), as_json(value)
    fits = found in types or (found == "integer" and "number" in types)
    if types and not fits and "string" in types:
        return as_json(text)
    return stripped


class ParameterReader:
    """Reads `{parameters}` and writes them as one JSON object."""

    def __init__(self, pattern: str, schema: Mapping[str, Any], after: str) -> None:
        """`after`: what follows the last parameter."""
        self._parts = elements(pattern)
        properties = schema.get("properties")
        self._properties = properties if isinstance(properties, Mapping) else {}
        first = self._parts[0]
        assert isinstance(first, Literal)
        self._begin = first_word(first.text)
        self._after = first_word(after)

    def read(self, reader: TextReader, emit: Emit) -> Waiting[bool]:
        """Read all of them; return whether they are well-formed."""
        emit("{")
        keys: set[str] = set()
        while True:
            begin = reader.at
            yield from reader.skip_space()
            is_over = bool(self._after) and (yield from self._here(reader, self._after))
            if is_over or not (yield from self._here(reader, self._begin)):
                if not is_over and self._is_cut(reader):  # there may have been more parameters
                    return False
                reader.at = begin
                break
            if not (yield from self._parameter(reader, emit, keys)):
                return False
        emit("}")
        return True

    @staticmethod
    def _here(reader: TextReader, text: str) -> Waiting[bool]:
        for place, character in enumerate(text):
            while reader.at + place >= len(reader.text):
                if not (yield from reader.more()):
                    return False
            if reader.text[reader.at + place] != character:
                return False
        return True

    def _is_cut(self, reader: TextReader) -> bool:
        """Whether the text is cut here, or within what may follow a parameter."""
        rest = reader.rest
        return reader.is_cut and any(
            each.startswith(rest) and each != rest for each in (self._begin, self._after)
        )

    def _parameter(self, reader: TextReader, emit: Emit, keys: set[str]) -> Waiting[bool]:
        key = ""
        kind: str | None = None
        for place, part in enumerate(self._parts):
            following = self._parts[place + 1] if place + 1 < len(self._parts) else None
            follows = following.text if isinstance(following, Literal) else ""
            if isinstance(part, Literal):
                # The whitespace at its ends belongs to the value, or stands between parameters.
                if not (yield from read_literal(reader, part.text.strip())):
                    return False
            elif isinstance(part, NotationField) and part.name == "key" and not key:
                key = (yield from self._up_to(reader, first_word(follows))) or ""
                if not key or key in keys:
                    return False
            elif isinstance(part, NotationField) and part.name == "key":
                if not (yield from self._here(reader, key)):
                    return False
                reader.at += len(key)
            elif isinstance(part, NotationField) and part.name == "type":
                kind = yield from self._up_to(reader, first_word(follows))
                if kind is None:
                    return False
            elif isinstance(part, NotationField):
                emit((", " if keys else "") + as_json(key) + ": ")
                keys.add(key)
                before = self._parts[place - 1]
                opens = isinstance(before, Literal) and before.text[-1:].isspace()
                types = self._types(key, kind)
                closing = first_word(follows) + self._closing_key(place, key)
                newlines = (opens, follows[:1].isspace())
                if not (yield from self._value(reader, emit, types, closing, newlines)):
                    return False
        return True

    def _closing_key(self, place: int, key: str) -> str:
        """Return the key that the closing tag repeats, if it does, and the text after the key."""
        rest = self._parts[place + 2 : place + 4]
        if len(rest) == 2 and rest[0] == NotationField("key") and isinstance(rest[1], Literal):
            return key + first_word(rest[1].text)
        return ""

    def _types(self, key: str, kind: str | None) -> frozenset[str]:
        if kind in ("true", "string"):
            return frozenset(["string"])
        types = json_types(self._properties.get(key))
        return types if kind is None else types - {"string"}

    @staticmethod
    def _up_to(reader: TextReader, text: str) -> Waiting[str | None]:
        begin = reader.at
        while True:
            at = reader.text.find(text, begin)
            if at >= 0:
                reader.at = at
                return reader.text[begin:at]
            if len(reader.text) - begin > _LONGEST_KEY or not (yield from reader.more()):
                return None

    def _value(
        self,
        reader: TextReader,
        emit: Emit,
        types: frozenset[str],
        closing: str,
        newlines: tuple[bool, bool],
    ) -> Waiting[bool]:
        """Read up to the closing tag that a parameter, or the end of the call, follows."""
        if newlines[0] and (yield from reader.peek()) == "\n":
            reader.at += 1
        streams = types == {"string"}
        if streams:
            emit('"')
        begin = reader.at
        markers = Markers([closing])
        search = begin
        while True:
            place, found = markers.find(reader.text, search, is_over=reader.is_over)
            if found is not None:
                reader.at = place + len(closing)
                if not (yield from self._is_closed(reader)):
                    search = place + 1
                    continue
            end = place
            if newlines[1] and end > begin and reader.text[end - 1] == "\n":
                end -= 1
            if streams and end > begin:
                emit(as_json(reader.text[begin:end])[1:-1])
                begin = end
            if found is not None:
                emit('"' if streams else value_as_json(reader.text[begin:end], types))
                reader.at = place
                return True
            search = max(search, place)
            if not (yield from reader.more()):
                return False

    def _is_closed(self, reader: TextReader) -> Waiting[bool]:
        yield from reader.skip_space()
        if not (yield from reader.peek()):
            return True
        for text in (self._begin, self._after):
            if (yield from self._here(reader, text)):
                return True
        return self._is_cut(reader)


def read_python(reader: TextReader, emit: Emit) -> Waiting[bool]:
    """Read `(key=value, ...)`; return whether the text has this form. `emit` gets it as JSON.

    If the text is cut, `emit` gets the arguments before the last comma.
    """
    begin = comma = reader.at
    depth = 0
    quote = ""
    while True:
        character = yield from reader.peek()
        if not character and comma > begin:
            emit(_as_arguments(f"{reader.text[begin:comma]})")[:-1])
        if not character or (reader.at == begin and character != "("):
            return False
        reader.at += 1
        if quote:
            if character == "\\":
                yield from reader.peek()
                reader.at += 1
            elif character == quote:
                quote = ""
        elif character in "'\"":
            quote = character
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
            if not depth:
                break
        elif character == "," and depth == 1:
            comma = reader.at - 1
    found = _as_arguments(reader.text[begin : reader.at])
    if found:
        emit(found)
    return bool(found)


def _as_arguments(text: str) -> str:
    """Return `(key=value, ...)` as JSON, "" for anything else."""
    try:
        tree = ast.parse(f"f{text}", mode="eval").body
        assert isinstance(tree, ast.Call)
        if tree.args or any(each.arg is None for each in tree.keywords):
            return ""
        found = {each.arg: _python_value(each.value) for each in tree.keywords}
        return as_json(found) if len(found) == len(tree.keywords) else ""
    except _NOT_PYTHON:
        return ""


def _python_value(node: ast.expr) -> Any:
    if isinstance(node, ast.Name):
        constants = {"true": True, "false": False, "null": None}
        return constants[node.id] if node.id in constants else _refuse()
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_python_value(each) for each in node.elts]
    if isinstance(node, ast.Dict):
        keys = [_python_value(each) if each is not None else _refuse() for each in node.keys]
        values = [_python_value(each) for each in node.values]
        return dict(zip(map(str, keys), values, strict=True))
    value = ast.literal_eval(node)
    if not isinstance(value, (str, int, float, bool, type(None))):
        return _refuse()
    json.dumps(value, allow_nan=False)
    return value


def _refuse() -> Any:
    raise ValueError("not a value of JSON")


def read_words(reader: TextReader, quote: str, emit: Emit, depth: int = 0) -> Waiting[bool]:
    """Read a value whose keys are bare words; return whether there is one. `emit` gets its "
    "JSON."""
    yield from reader.skip_space()
    if depth > MAX_DEPTH:
        return False
    first = yield from reader.peek()
    if depth == 0 and first != "{":
        return False
    if first and first in "{[":
        closing = "}" if first == "{" else "]"
        return (yield from _read_words_inside(reader, quote, emit, depth, closing))
    if (yield from ParameterReader._here(reader, quote)):
        reader.at += len(quote)
        text = yield from _up_to_quote(reader, quote)
        if text is not None:
            emit(as_json(text))
        return text is not None
    word = yield from _bare(reader)
    word = _CONSTANTS.get(word, word)
    try:
        json.loads(word, parse_constant=_no_constant)
    except ValueError:
        return False
    if reader.is_cut and reader.at == len(reader.text):
        return False  # a number may have had more digits
    emit(word)
    return True


def _read_words_inside(
    reader: TextReader, quote: str, emit: Emit, depth: int, closing: str
) -> Waiting[bool]:
    reader.at += 1
    emit("{" if closing == "}" else "[")
    is_first = True
    while True:
        yield from reader.skip_space()
        if is_first and (yield from reader.peek()) == closing:
            break
        key = "" if is_first else ", "
        is_first = False
        if closing == "}":
            if (yield from ParameterReader._here(reader, quote)):
                reader.at += len(quote)
                name = yield from _up_to_quote(reader, quote)
            else:
                name = yield from _bare(reader)
            yield from reader.skip_space()
            if not name or (yield from reader.peek()) != ":":
                return False
            reader.at += 1
            key += f"{as_json(name)}: "
        emit(key)
        if not (yield from read_words(reader, quote, emit, depth + 1)):
            return False
        yield from reader.skip_space()
        if (yield from reader.peek()) != ",":
            break
        reader.at += 1
    if (yield from reader.peek()) != closing:
        return False
    reader.at += 1
    emit(closing)
    return True


def _bare(reader: TextReader) -> Waiting[str]:
    begin = reader.at
    while True:
        match = _BARE.match(reader.text, reader.at)
        assert match is not None
        reader.at = match.end()
        if reader.at < len(reader.text) or not (yield from reader.more()):
            return reader.text[begin : reader.at]


def _up_to_quote(reader: TextReader, quote: str) -> Waiting[str | None]:
    begin = reader.at
    while True:
        at = reader.text.find(quote, begin)
        if at >= 0:
            reader.at = at + len(quote)
            return reader.text[begin:at]
        if not (yield from reader.more()):
            return None
