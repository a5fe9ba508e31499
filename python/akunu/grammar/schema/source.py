"""What a schema may be passed as: JSON, or Python types that describe one."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, Final, is_typeddict

from akunu.errors import ArgumentError
from akunu.grammar.errors import SchemaError
from akunu.grammar.schema.types import schema_of_type

# Keywords whose values are not schemas, and those that have a schema for each name.
_VALUES: Final = ("const", "enum", "default", "examples", "example")
_MAPS: Final = (
    "properties",
    "patternProperties",
    "dependentSchemas",
    "dependencies",
    "$defs",
    "definitions",
)


def without_nulls(schema: Any) -> Any:
    """Return a schema without keywords that are null: clients write one for a field they leave out.

    >>> without_nulls({"type": "object", "required": None, "properties": {"a": {"const": None}}})
    {'type': 'object', 'properties': {'a': {'const': None}}}
    """
    if isinstance(schema, list):
        return [without_nulls(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {}
    for keyword, value in schema.items():
        if keyword in _VALUES and (value is not None or keyword in ("const", "default")):
            found[keyword] = value
        elif keyword in _MAPS and isinstance(value, dict):
            parts = {name: without_nulls(part) for name, part in value.items()}
            found[keyword] = {name: part for name, part in parts.items() if part is not None}
        elif value is not None:
            found[keyword] = without_nulls(value)
    return found


def schema_of(source: Any) -> Any:
    """The JSON schema that `source` is or describes, as JSON data, without keywords that are null.

    Pydantic models describe themselves; `schema_of_type` describes dataclasses, TypedDicts and
    other annotated types.
    """
    if isinstance(source, str):
        try:
            found = json.loads(source, parse_constant=_refused)
        except ValueError as error:
            raise SchemaError("", f"the text is not JSON: {error}") from error
        if not isinstance(found, dict | bool):
            raise SchemaError("", f"an object, true or false is expected, not {source.strip():.80}")
        return without_nulls(found)
    if isinstance(source, Mapping | bool):
        try:
            found = json.loads(json.dumps(source, allow_nan=False, default=_as_dict))
        except (TypeError, ValueError) as error:
            raise SchemaError("", f"it is not JSON: {error}") from error
        return without_nulls(found)
    if hasattr(source, "model_json_schema"):
        return json.loads(json.dumps(source.model_json_schema()))
    if isinstance(source, type) or hasattr(source, "__origin__") or hasattr(source, "__args__"):
        return schema_of_type(source)
    if dataclasses.is_dataclass(source) or is_typeddict(source):
        raise ArgumentError("a dataclass is expected, not one of its objects")
    raise ArgumentError(
        f"schema must be a dict, a JSON text, a pydantic model or a type, not {source!r:.80}"
    )


def _as_dict(value: object) -> dict[Any, Any]:
    """What `json` has no words for: a mapping that is not a dict, such as a MappingProxyType."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def _refused(name: str) -> None:
    raise ValueError(f"it has the number {name}")
