"""Fields that say what form a text has, by the names of OpenAI, llama.cpp and vLLM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from akunu.server.fields.table import Field, checked, honoured, to
from akunu.server.http.errors import invalid, unsupported
from akunu.server.http.json_words import as_json


def response_format(name: str, value: Any) -> Mapping[str, Any]:
    """Read OpenAI's `response_format`; llama.cpp's has the schema of an object next to its type."""
    given = checked(name, value, dict)
    kind = given.get("type")
    if kind == "text":
        return {}
    if kind == "json_object":
        return {"schema": given["schema"]} if given.get("schema") else {"json": True}
    if kind != "json_schema":
        raise unsupported(
            name,
            f"{name} is of type {as_json(kind)}; it must be text, json_object or json_schema",
        )
    described = given.get("json_schema", given)
    if not isinstance(described, dict) or not isinstance(described.get("schema"), (dict, bool)):
        raise invalid(
            name,
            f"Invalid schema for {name}: it has no object 'schema'",
            "invalid_json_schema",
        )
    found = {"schema": described["schema"]}
    if described.get("strict") is False:  # as much of it as a grammar can hold
        found["weaken_schema"] = True
    return found


def _json(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, (dict, str, bool)):
        raise invalid(name, f"{name} is {as_json(value)}; it must be a JSON schema")
    return {"schema": value}


def _structured_outputs(name: str, value: Any) -> Mapping[str, Any]:
    known = {"json": "schema", "regex": "regex", "choice": "choice", "grammar": "grammar"}
    found: dict[str, Any] = {}
    for each, given in checked(name, value, dict).items():
        if given is None:
            continue
        if each == "json_object" and given is True:
            found["json"] = True
        elif each in known:
            found[known[each]] = given
        else:
            raise unsupported(name, f"{name} has {as_json(each)}; it may have {', '.join(known)}")
    return found


STRUCTURE_FIELDS: Final[tuple[Field, ...]] = (
    honoured("json_schema", {"type": ["object", "string", "boolean", "null"]}, _json),
    honoured("grammar", "string", to("grammar")),
    honoured("structured_outputs", "object", _structured_outputs),
    honoured("guided_json", {"type": ["object", "string", "null"]}, _json),
    honoured("guided_regex", "string", to("regex")),
    honoured("guided_choice", "array", to("choice")),
    honoured("guided_grammar", "string", to("grammar")),
)
