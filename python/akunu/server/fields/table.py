"""Fields of a request: each is declared once, and its table answers for all of them.

A field is honoured (it becomes options of akunu), refused by its name with 400, or accepted without
effect. Those without effect, and fields that no one knows, are named in a header of the answer.

>>> table = table_of([honoured("top_k", "integer", to("top_k")), without_effect("user", "string")])
>>> read(table, {"top_k": 3, "user": "me", "tpo_k": 4})
Read(options={'top_k': 3}, names={'top_k': 'top_k'}, ignored=['user', 'tpo_k'])
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, Literal
from urllib.parse import quote

from akunu.common.quoting import shorten
from akunu.server.http.errors import invalid, unsupported
from akunu.server.http.json_words import as_json

IGNORED_HEADER: Final = "x-akunu-ignored"
_MOST_NAMED: Final = 500  # more have no room in a header

Reader = Callable[[str, Any], Mapping[str, Any]]
"""Takes the field's name and its value; returns options, or raises ApiError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """What is known of one field."""

    name: str
    schema: Mapping[str, Any]
    """What it may be, as JSON schema: for the OpenAPI document."""
    effect: Literal["honoured", "refused", "ignored"]
    read: Reader
    note: str = ""
    """Why it is refused, or has no effect; for the documents."""


@dataclass(slots=True)
class Read:
    """What a request asks for."""

    options: dict[str, Any] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    """The field that each option came from."""
    ignored: list[str] = field(default_factory=list)


def table_of(fields: Iterable[Field]) -> Mapping[str, Field]:
    """Return fields by their names; each has one declaration."""
    table: dict[str, Field] = {}
    for each in fields:
        assert each.name not in table, each.name
        table[each.name] = each
    return table


def read(table: Mapping[str, Field], body: Mapping[str, Any]) -> Read:
    """Read a request; ApiError for refused fields.

    A field that is null is not given, as clients have it.
    """
    found = Read()
    for name, value in body.items():
        if value is None:
            continue
        known = table.get(name)
        if known is None:
            found.ignored.append(name)
            continue
        options = known.read(name, value)
        if known.effect == "ignored":
            found.ignored.append(name)
        for option, given in options.items():
            other = found.names.get(option)
            if other is not None and found.options[option] != given:
                raise invalid(
                    name, f"{other} and {name} mean the same and differ: send one of them"
                )
            found.options[option] = given
            found.names[option] = name
    return found


def unknown_keys(path: str, given: Mapping[str, Any], known: Collection[str]) -> list[str]:
    """Return the keys of an inner object that no one reads, with the path to them.

    >>> unknown_keys("messages", {"role": "user", "mood": "good", "name": None}, ("role",))
    ['messages.mood']
    """
    return [
        f"{path}.{key}" for key, value in given.items() if key not in known and value is not None
    ]


def ignored_header(names: Iterable[str]) -> dict[str, str]:
    """Return the header that names them; a name from outside cannot write another header."""
    listed = ", ".join(
        quote(shorten(name)[1:-1], safe="") or '""' for name in islice(names, _MOST_NAMED)
    )
    # A header must not end with a space: such an answer could not be sent.
    return {IGNORED_HEADER: listed[:1000].rstrip(", ")} if listed else {}


def honoured(name: str, schema: str | Mapping[str, Any], read: Reader, note: str = "") -> Field:
    """Return a field that has an effect; `schema` may be the name of a type."""
    return Field(name=name, schema=_schema(schema), effect="honoured", read=read, note=note)


def without_effect(name: str, schema: str | Mapping[str, Any] = "", note: str = "") -> Field:
    """Return a field that clients send and that changes nothing here."""
    return Field(name=name, schema=_schema(schema), effect="ignored", read=_nothing, note=note)


def refused(name: str, note: str, *harmless: Any, schema: str | Mapping[str, Any] = "") -> Field:
    """Return a field that is not supported; `harmless`: values that ask for nothing."""

    def read(name: str, value: Any) -> Mapping[str, Any]:
        if not any(value == each and type(value) is type(each) for each in harmless):
            raise unsupported(name, f"{name} is not supported: {note}")
        return {}

    return Field(name=name, schema=_schema(schema), effect="refused", read=read, note=note)


def to(option: str) -> Reader:
    """Hand a value on as an option, which looks at it itself."""
    return lambda name, value: {option: value}


def flag(option: str) -> Reader:
    """Hand on true or false."""

    def read(name: str, value: Any) -> Mapping[str, Any]:
        return {option: checked(name, value, bool)}

    return read


_TYPES: Final[Mapping[type, str]] = {
    bool: "true or false",
    str: "a text",
    int: "an integer",
    dict: "an object",
    list: "a list",
}


def checked(name: str, value: Any, kind: type) -> Any:
    """Return a value of this type; ApiError otherwise."""
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise invalid(name, f"{name} is {as_json(value)}; it must be {_TYPES[kind]}")
    return value


def _schema(schema: str | Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(schema, str):
        return {"type": [schema, "null"]} if schema else {}
    return schema


def _nothing(name: str, value: Any) -> Mapping[str, Any]:
    return {}
