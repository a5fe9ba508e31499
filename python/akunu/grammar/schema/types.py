"""JSON schemas of annotated Python types: dataclasses, TypedDicts, enums, unions, lists, ..."""

from __future__ import annotations

import dataclasses
import decimal
import enum
import inspect
import types
import typing
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from akunu.errors import ArgumentError

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    decimal.Decimal: {"type": "number"},
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

    Fields without a default are required; others than those that are named are not allowed. What
    the package pydantic knows, where it is installed, is as it says: dates, times, UUIDs, ...

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
    if constrained(annotation):
        return _of_pydantic(annotation, definitions)
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
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return {"enum": [one.value for one in annotation]}
    if dataclasses.is_dataclass(annotation) or typing.is_typeddict(annotation):
        return _record(annotation, definitions, names)
    return _of_pydantic(annotation, definitions)


def constrained(annotation: Any) -> bool:
    """Whether an annotation has something of pydantic's to say next to its type, such as a
    limit."""
    if typing.get_origin(annotation) is not typing.Annotated:
        return False
    modules = [type(one).__module__.partition(".")[0] for one in annotation.__metadata__]
    return "pydantic" in modules or "annotated_types" in modules


def adapter_of(annotation: Any) -> TypeAdapter[Any]:
    """Return what pydantic makes of a type; ArgumentError where it is missing, or knows none.

    >>> import datetime
    >>> adapter_of(datetime.date).validate_python("2024-02-29")
    datetime.date(2024, 2, 29)
    """
    shown = getattr(annotation, "__qualname__", repr(annotation))
    try:
        from pydantic import TypeAdapter
        from pydantic.errors import PydanticUserError
    except ImportError:
        raise ArgumentError(
            f"no JSON schema is known for {shown}; the package pydantic may know one: "
            "pip install pydantic"
        ) from None
    try:
        return TypeAdapter(annotation)
    except PydanticUserError as error:
        raise _unknown(shown, error) from None


def _unknown(shown: str, error: Exception) -> ArgumentError:
    return ArgumentError(f"no JSON schema is known for {shown}: {str(error).splitlines()[0]}")


def _of_pydantic(annotation: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema that pydantic has for a type; its definitions join the others."""
    from_pydantic = adapter_of(annotation)
    name = getattr(annotation, "__name__", "type")
    while any(each.startswith(f"{name}.") for each in definitions):
        name += "_"
    from pydantic.errors import PydanticUserError

    try:
        schema = from_pydantic.json_schema(ref_template=f"#/$defs/{name}.{{model}}")
    except PydanticUserError as error:
        raise _unknown(name, error) from None
    for key, each in schema.pop("$defs", {}).items():
        definitions[f"{name}.{key}"] = closed(each)
    found: dict[str, Any] = closed(schema)
    return found


def closed(schema: Any) -> Any:
    """Return a schema of pydantic whose objects have no more members than a model has fields.

    Its own allows any others, which it would ignore, and a small model does not come to an end.
    """
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = ("default", "const", "enum", "examples")
    found = {key: each if key in kept else closed(each) for key, each in schema.items()}
    if schema.get("type") == "object" and isinstance(schema.get("properties"), dict):
        found.setdefault("additionalProperties", False)
    return found


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
