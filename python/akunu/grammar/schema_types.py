"""JSON schemas of annotated Python types: dataclasses, TypedDicts, enums, unions, lists, ..."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import types
import typing
from contextlib import suppress
from typing import Any

from akunu.errors import ArgumentError

_PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    None: {"type": "null"},
    Any: {},
    object: {},
    dict: {"type": "object"},
    list: {"type": "array"},
    tuple: {"type": "array"},
}
_LISTS = {"list", "Sequence", "Iterable", "Collection", "MutableSequence"}
_MAPS = {"dict", "Mapping", "MutableMapping"}
_SETS = {"set", "frozenset", "Set", "AbstractSet", "MutableSet"}


def schema_of_type(annotation: Any) -> dict[str, Any]:
    """The JSON schema of what an annotation allows.

    Fields without a default are required; others than those that are named are not allowed.

    >>> import dataclasses
    >>> @dataclasses.dataclass
    ... class Point:
    ...     x: int
    ...     y: float = 0.0
    >>> schema_of_type(Point)["$defs"]["Point"]["required"]
    ['x']
    """
    definitions: dict[str, Any] = {}
    schema = _schema(annotation, definitions, {})
    return {"$defs": definitions, **schema} if definitions else schema


def _schema(annotation: Any, definitions: dict[str, Any], names: dict[Any, str]) -> dict[str, Any]:
    with suppress(TypeError):  # Annotated with a dict cannot be looked up
        if annotation in _PLAIN:
            return dict(_PLAIN[annotation])
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        schema = _schema(arguments[0], definitions, names)
        texts = [one for one in arguments[1:] if isinstance(one, str)]
        extra = [one for one in arguments[1:] if isinstance(one, dict)]
        for one in extra:
            schema = {**schema, **one}
        return {**schema, "description": texts[0]} if texts else schema
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [_schema(one, definitions, names) for one in arguments]}
    if str(origin).rpartition(".")[2] in ("Required", "NotRequired", "ReadOnly"):
        return _schema(arguments[0], definitions, names)
    kind = getattr(origin or annotation, "__name__", "")
    if kind in _LISTS | _SETS and arguments:
        unique = {"uniqueItems": True} if kind in _SETS else {}
        return {"type": "array", "items": _schema(arguments[0], definitions, names), **unique}
    if kind in _MAPS and arguments:
        if arguments[0] is not str:
            raise ArgumentError(f"the keys of a JSON object are texts, not {arguments[0]!r}")
        return {"type": "object", "additionalProperties": _schema(arguments[1], definitions, names)}
    if origin is tuple:
        return _tuple(arguments, definitions, names)
    if hasattr(annotation, "model_json_schema"):
        return dict(annotation.model_json_schema())
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return {"enum": [one.value for one in annotation]}
    if dataclasses.is_dataclass(annotation) or typing.is_typeddict(annotation):
        return _record(annotation, definitions, names)
    raise ArgumentError(f"no JSON schema is known for {annotation!r}")


def _tuple(
    arguments: tuple[Any, ...], definitions: dict[str, Any], names: dict[Any, str]
) -> dict[str, Any]:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return {"type": "array", "items": _schema(arguments[0], definitions, names)}
    places = [_schema(one, definitions, names) for one in arguments]
    size = {"minItems": len(places), "maxItems": len(places)}
    return {"type": "array", **({"prefixItems": places} if places else {}), **size}


def _record(annotation: Any, definitions: dict[str, Any], names: dict[Any, str]) -> dict[str, Any]:
    """A reference to the object that a dataclass or a TypedDict is, which may hold itself."""
    if annotation in names:
        return {"$ref": f"#/$defs/{names[annotation]}"}
    name = annotation.__name__
    while name in definitions:
        name += "_"
    names[annotation] = name
    definitions[name] = {}
    try:
        hints = typing.get_type_hints(annotation, include_extras=True)
    except NameError as error:
        raise ArgumentError(
            f"an annotation of {annotation.__name__} is unknown: {error}"
        ) from error
    if dataclasses.is_dataclass(annotation):
        fields = [one for one in dataclasses.fields(annotation) if one.init]
        required = [
            one.name
            for one in fields
            if one.default is dataclasses.MISSING and one.default_factory is dataclasses.MISSING
        ]
        hints = {one.name: hints[one.name] for one in fields}
    else:
        required = [one for one in hints if one in annotation.__required_keys__]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {key: _schema(hint, definitions, names) for key, hint in hints.items()},
        "required": required,
        "additionalProperties": False,
    }
    text = inspect.cleandoc(annotation.__doc__ or "")
    if text and not text.startswith(f"{annotation.__name__}("):
        schema["description"] = text
    definitions[name] = schema
    return {"$ref": f"#/$defs/{name}"}
