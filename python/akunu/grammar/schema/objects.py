"""Objects of annotated types, made of JSON that fits the schema of the type."""

from __future__ import annotations

import dataclasses
import enum
import json
import types
import typing
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from akunu.grammar.schema.types import adapter_of, constrained

_JSON = (str, int, bool, type(None), dict, list, object, Any)  # `json` makes these
_LISTS = (list, set, frozenset, tuple)


def read_object(kind: Any, text: str) -> Any:
    """Return the object of an annotated type that a JSON text describes.

    Raises ValueError or TypeError where the type refuses it.

    >>> read_object(list[Decimal], "[1, 0.10]")
    [Decimal('1'), Decimal('0.10')]
    """
    return object_of(kind, json.loads(text, parse_float=Decimal))  # a Decimal loses no digit


def object_of(kind: Any, value: Any) -> Any:
    """Return the object of an annotated type that JSON describes.

    >>> object_of(tuple[int, ...], [1, 2])
    (1, 2)
    """
    if constrained(kind):
        return adapter_of(kind).validate_python(_plain(value))
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return object_of(arguments[0], value)
    if origin in (typing.Union, types.UnionType):
        fitting = [each for each in arguments if _fits(each, value)]
        return object_of(fitting[0], value) if fitting else _plain(value)
    if dataclasses.is_dataclass(kind) and isinstance(value, Mapping):
        hints = typing.get_type_hints(kind, include_extras=True)
        known = {
            name: object_of(hints[name], each) for name, each in value.items() if name in hints
        }
        return typing.cast(Any, kind)(**known)
    if hasattr(kind, "model_validate"):
        return kind.model_validate(_plain(value))
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return kind(_plain(value))
    if kind is Decimal:
        return Decimal(value)
    if kind is float:  # JSON has one kind of number
        return float(value)
    if origin in _LISTS and isinstance(value, list):
        if origin is tuple and arguments[-1:] != (Ellipsis,):
            return tuple(map(object_of, arguments, value))
        return origin(object_of(arguments[0], each) for each in value)
    if origin is dict and isinstance(value, Mapping):
        return {key: object_of(arguments[1], each) for key, each in value.items()}
    plain = _plain(value)
    if kind is tuple:
        return tuple(plain)
    if isinstance(kind, type) and kind not in _JSON and not typing.is_typeddict(kind):
        return adapter_of(kind).validate_python(plain)
    return plain


def _plain(value: Any) -> Any:
    """Return what JSON has, with floats as `json` makes them."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return value


def _fits(kind: Any, value: Any) -> bool:
    """Whether a value may be what one of several types describes."""
    if kind is Any:
        return True
    if kind is type(None):
        return value is None
    if typing.get_origin(kind) is typing.Annotated:
        return _makes(kind, value) if constrained(kind) else _fits(kind.__origin__, value)
    if dataclasses.is_dataclass(kind) and isinstance(value, Mapping):
        names = {each.name for each in dataclasses.fields(kind)}
        return set(value) <= names
    origin = typing.get_origin(kind) or kind
    if isinstance(value, list):
        return origin in _LISTS
    if isinstance(value, Mapping):
        return origin is dict or not isinstance(origin, type) or hasattr(kind, "model_validate")
    if not isinstance(origin, type):
        return True
    if issubclass(origin, enum.Enum):
        return _plain(value) in [each.value for each in origin]
    if isinstance(value, origin):
        return True
    if origin in (float, Decimal):
        return isinstance(value, (int, Decimal))
    return origin not in (*_JSON, *_LISTS) and _makes(kind, value)


def _makes(kind: Any, value: Any) -> bool:
    try:
        object_of(kind, value)
    except (ValueError, TypeError):
        return False
    return True
