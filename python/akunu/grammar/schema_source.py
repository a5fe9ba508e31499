"""What a schema may be given as: JSON, or Python types that describe one."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, is_typeddict

from akunu.errors import ArgumentError
from akunu.grammar.errors import SchemaError


def schema_of(source: Any) -> Any:
    """The JSON schema that `source` is or describes, as JSON has it.

    Pydantic models describe themselves; of dataclasses, TypedDicts and other annotated types,
    `schema_of_type` says what they are.
    """
    if isinstance(source, str):
        try:
            found = json.loads(source, parse_constant=_refused)
        except ValueError as error:
            raise SchemaError("", f"the text is no JSON: {error}") from error
        if not isinstance(found, dict | bool):
            raise SchemaError("", f"an object, true or false is expected, not {source.strip():.80}")
        return found
    if isinstance(source, Mapping | bool):
        try:
            return json.loads(json.dumps(source, allow_nan=False, default=_as_dict))
        except (TypeError, ValueError) as error:
            raise SchemaError("", f"it is no JSON: {error}") from error
    if hasattr(source, "model_json_schema"):
        return json.loads(json.dumps(source.model_json_schema()))
    if isinstance(source, type) or hasattr(source, "__origin__") or hasattr(source, "__args__"):
        from akunu.grammar.schema_types import schema_of_type

        return schema_of_type(source)
    if dataclasses.is_dataclass(source) or is_typeddict(source):
        raise ArgumentError("a dataclass is expected, not one of its objects")
    raise ArgumentError(
        f"schema must be a dict, a JSON text, a pydantic model or a type, not {source!r:.80}"
    )


def _as_dict(value: object) -> dict[Any, Any]:
    """What `json` has no words for: a mapping that is no dict, such as a MappingProxyType."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def _refused(name: str) -> None:
    raise ValueError(f"it has the number {name}")
