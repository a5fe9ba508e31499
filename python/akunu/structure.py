"""What a caller may ask of a text's form: a schema, JSON, an expression, one of several, rules."""

from __future__ import annotations

import dataclasses
import enum
import json
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict

from akunu.errors import ArgumentError

if TYPE_CHECKING:
    from akunu.grammar import FreeText, Grammar


class StructureArguments(TypedDict, total=False):
    """The keyword arguments that say what form a text has, of which one may be given."""

    schema: Any
    json: bool
    regex: str | None
    choice: Sequence[str] | None
    grammar: str | Grammar | None
    weaken_schema: bool


STRUCTURE_DEFAULTS: Mapping[str, Any] = {
    "schema": None,
    "json": False,
    "regex": None,
    "choice": None,
    "grammar": None,
    "weaken_schema": False,
}


@dataclasses.dataclass(frozen=True, slots=True)
class Structure:
    """The form of a text: what it may be, and how an object is made of it."""

    grammar: Grammar
    reader: Callable[[str], Any] | None = None
    """Makes the object of `Completion.parsed`; None where the text is all there is."""


def structure_of(arguments: Mapping[str, Any]) -> Structure | None:
    """Return what some of StructureArguments ask for, None where nothing is.

    Raises ArgumentError where there are several, and for what makes no sense; of a schema it is a
    SchemaError that says where.
    """
    arguments = dict(arguments)
    weaken = arguments.pop("weaken_schema", None) or False
    if weaken is not False and weaken is not True:
        raise ArgumentError(f"weaken_schema is {weaken!r}; it must be True or False")
    given = {
        name: value
        for name, value in arguments.items()
        if value is not None and not (name == "json" and value is False)
    }
    if len(given) > 1:
        raise ArgumentError(f"{' and '.join(given)} are given; a text has one form: choose one")
    if weaken and "schema" not in given:
        raise ArgumentError("weaken_schema is True, but there is no schema")
    if not given:
        return None
    from akunu import grammar

    ((name, value),) = given.items()
    if name == "schema":
        held = grammar.from_schema(_closed_schema(value), weaken=weaken)
        return Structure(held, reader_of(value))
    if name == "json":
        if value is not True:
            raise ArgumentError(f"json is {value!r}; it must be True or False")
        return Structure(grammar.from_json(), json.loads)
    if name == "choice":
        return Structure(grammar.from_choice(value))
    if name == "regex":
        return Structure(grammar.from_regex(_text(name, value)))
    if isinstance(value, grammar.Grammar):
        return Structure(value)
    return Structure(grammar.from_rules(_text(name, value)))


def ruled(
    structure: Structure | None, prepared: Grammar | None, thoughts: FreeText | None
) -> Grammar | None:
    """Return what rules a text of this form.

    It begins behind the free text of `prepared`, or behind the thoughts.
    """
    if structure is None:
        return prepared
    if structure.grammar.after is not None:
        return structure.grammar
    if prepared is None:
        return dataclasses.replace(structure.grammar, after=thoughts)
    if prepared.llguidance:
        raise ArgumentError("a text with a form cannot be held to tools as well")
    return dataclasses.replace(structure.grammar, after=prepared.after)


def _closed_schema(source: Any) -> Any:
    """Return a schema whose objects have no more members than a pydantic model has fields.

    Its own allows any others, which it would ignore, and a small model does not come to an end.
    """
    if not hasattr(source, "model_json_schema"):
        return source
    return _closed(source.model_json_schema())


def _closed(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = ("default", "const", "enum", "examples")
    closed = {key: each if key in kept else _closed(each) for key, each in schema.items()}
    if schema.get("type") == "object" and isinstance(schema.get("properties"), dict):
        closed.setdefault("additionalProperties", False)
    return closed


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise ArgumentError(f"{name} must be a text, not {type(value).__name__}")
    return value


def reader_of(schema: Any) -> Callable[[str], Any]:
    """Return what makes an object of a text that fits a schema.

    Of a pydantic model or another type it is one of that type, otherwise what JSON has.
    """
    if hasattr(schema, "model_validate_json"):
        read: Callable[[str], Any] = schema.model_validate_json
        return read
    if isinstance(schema, (str, bool, Mapping)):
        return json.loads
    return partial(_read, schema)


def _read(kind: Any, text: str) -> Any:
    return _object_of(kind, json.loads(text))


def _object_of(kind: Any, value: Any) -> Any:
    """Return the object of an annotated type that JSON describes.

    >>> _object_of(list[int], [1, 2])
    [1, 2]
    """
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return _object_of(arguments[0], value)
    if origin in (typing.Union, types.UnionType):
        fitting = [each for each in arguments if _fits(each, value)]
        return _object_of(fitting[0], value) if fitting else value
    if dataclasses.is_dataclass(kind) and isinstance(value, Mapping):
        hints = typing.get_type_hints(kind, include_extras=True)
        known = {
            name: _object_of(hints[name], each) for name, each in value.items() if name in hints
        }
        return typing.cast(Any, kind)(**known)
    if hasattr(kind, "model_validate"):
        return kind.model_validate(value)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return kind(value)
    if kind is float and type(value) is int:  # JSON has one kind of number
        return float(value)
    if origin in (list, set, frozenset, tuple) and isinstance(value, list):
        if origin is tuple and arguments[-1:] != (Ellipsis,):
            return tuple(map(_object_of, arguments, value))
        return origin(_object_of(arguments[0], each) for each in value)
    if origin is dict and isinstance(value, Mapping):
        return {key: _object_of(arguments[1], each) for key, each in value.items()}
    return value


def _fits(kind: Any, value: Any) -> bool:
    """Whether a value may be what one of several types describes."""
    if kind is type(None):
        return value is None
    if dataclasses.is_dataclass(kind) and isinstance(value, Mapping):
        names = {each.name for each in dataclasses.fields(kind)}
        return set(value) <= names
    origin = typing.get_origin(kind) or kind
    if isinstance(value, list):
        return origin in (list, set, frozenset, tuple)
    if isinstance(value, Mapping):
        return origin is dict or not isinstance(origin, type) or hasattr(kind, "model_validate")
    if isinstance(origin, type) and issubclass(origin, enum.Enum):
        return value in [each.value for each in origin]
    return (
        not isinstance(origin, type)
        or isinstance(value, origin)
        or (origin is float and isinstance(value, int))
    )
