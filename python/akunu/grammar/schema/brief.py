"""Bounds for what a schema leaves open: what is left fits the schema, and comes to an end.

Small models often end no text, number or list by themselves. This looks at a schema in llguidance's
words, where nothing is said by what does not fit, so that a part with another bound only allows
less. What stands next to others (in `allOf`, or with `anyOf` and `$ref`) is left as it is: two
bounds could exclude each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from akunu.grammar.schema.reading import Schema

LONGEST_TEXT = 48
"""Characters of a text without `maxLength`, more than `minLength` asks for."""
MOST_ITEMS = 3
"""Items of a list without `maxItems`, more than `minItems` asks for; names of an object, too."""
LARGEST_NUMBER = 10**9
"""How far from zero, or from the bound on the other side, a number without bounds may be."""
SMALLEST_STEP = 0.001
"""A number that need not be whole has at most three digits after its point."""

_OF_TYPE = {
    "object": (
        *("properties", "patternProperties", "additionalProperties", "required"),
        *("minProperties", "maxProperties"),
    ),
    "array": ("items", "prefixItems", "minItems", "maxItems"),
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
_ANYTHING = "anything"


def brief(schema: Schema, refused: Callable[[Schema], bool]) -> Schema:
    """The schema with bounds; `refused` says whether llguidance can hold no text to one."""
    if not isinstance(schema, dict):
        return _Brief(set(), refused).whole(schema, {})
    definitions = schema.get("$defs", {})
    main = {key: value for key, value in schema.items() if key != "$defs"}
    return _Brief(_beside_others(main, definitions), refused).whole(main, definitions)


def _beside_others(main: Schema, definitions: dict[str, Schema]) -> set[str]:
    """Definitions whose `$ref` has other keywords next to it, and the definitions they refer to."""
    found: set[str] = set()
    open_names = [
        _name(part)
        for schema in (main, *definitions.values())
        for part, is_combined in _parts(schema)
        if is_combined and "$ref" in part
    ]
    while open_names:
        name = open_names.pop()
        if name not in found:
            found.add(name)
            inside = _parts(definitions.get(name, True))
            open_names += [_name(part) for part, _ in inside if "$ref" in part]
    return found


def _name(reference: dict[str, Schema]) -> str:
    name: str = reference["$ref"]
    return name.removeprefix("#/$defs/")


def _is_combined(schema: dict[str, Schema]) -> bool:
    """Whether a schema says something next to one that it refers to, or several at once."""
    refers = "$ref" in schema or "anyOf" in schema
    return "allOf" in schema or "oneOf" in schema or (refers and len(schema) > 1)


def _parts(
    schema: Schema, *, is_combined: bool = False
) -> Iterator[tuple[dict[str, Schema], bool]]:
    """A schema and all inside it but the definitions, each with whether it stands next to
    others."""
    if not isinstance(schema, dict):
        return
    is_combined = is_combined or _is_combined(schema)
    yield schema, is_combined
    for key, value in schema.items():
        if key in ("properties", "patternProperties"):
            for each in value.values():
                yield from _parts(each, is_combined=is_combined)
        elif key in ("allOf", "anyOf", "oneOf", "prefixItems"):
            for each in value:
                yield from _parts(each, is_combined=is_combined)
        elif key in ("items", "additionalProperties"):
            yield from _parts(value, is_combined=is_combined)


class _Brief:
    def __init__(self, combined: set[str], refused: Callable[[Schema], bool]) -> None:
        self._combined = combined
        self._refused = refused
        self._needs_anything = False

    def whole(self, schema: Schema, definitions: dict[str, Schema]) -> Schema:
        bounded = self.schema(schema)
        kept = {
            name: one if name in self._combined else self.schema(one)
            for name, one in definitions.items()
        }
        if self._needs_anything:
            kept[_ANYTHING] = self._anything()
        if not kept or not isinstance(bounded, dict):
            return bounded
        return {"$defs": kept, **bounded}

    def schema(self, schema: Schema) -> Schema:
        if schema is True or schema == {}:
            self._needs_anything = True
            return {"$ref": f"#/$defs/{_ANYTHING}"}
        if not isinstance(schema, dict) or "enum" in schema or "const" in schema:
            return schema
        if _is_combined(schema) or "$ref" in schema:
            return schema
        if "anyOf" in schema:
            return {"anyOf": [self.schema(one) for one in schema["anyOf"]]}
        return self._plain(schema)

    def _plain(self, schema: dict[str, Schema]) -> Schema:
        types = schema.get("type")
        if types is None:  # of what it says something about
            types = [type for type, keys in _OF_TYPE.items() if any(key in schema for key in keys)]
        elif isinstance(types, str):
            types = [types]
        bounded = {**schema, "type": types[0] if len(types) == 1 else types}
        if "string" in types:
            self._text(bounded)
        if "number" in types or "integer" in types:
            self._number(bounded, is_whole="number" not in types)
        if "array" in types:
            self._list(bounded)
        if "object" in types:
            self._object(bounded)
        return bounded

    def _text(self, schema: dict[str, Schema]) -> None:
        if "maxLength" in schema:
            return
        said = {key: schema[key] for key in _OF_TYPE["string"] if key in schema}
        most = schema.get("minLength", 0) + LONGEST_TEXT
        bounded = {"type": "string", **said, "maxLength": most}
        if said.keys() & {"pattern", "format"} and self._refused(bounded):
            return  # its texts are all longer, or hard to count
        schema["maxLength"] = most

    def _number(self, schema: dict[str, Schema], *, is_whole: bool) -> None:
        least = schema.get("minimum", schema.get("exclusiveMinimum"))
        most = schema.get("maximum", schema.get("exclusiveMaximum"))
        if least is None:
            schema["minimum"] = min(-LARGEST_NUMBER, (most or 0) - LARGEST_NUMBER)
        if most is None:
            schema["maximum"] = max(LARGEST_NUMBER, (least or 0) + LARGEST_NUMBER)
        is_wide = least is None or most is None or most - least >= 1
        if not is_whole and is_wide and "multipleOf" not in schema:
            schema["multipleOf"] = SMALLEST_STEP

    def _list(self, schema: dict[str, Schema]) -> None:
        first = schema.get("prefixItems", [])
        if "maxItems" not in schema:
            schema["maxItems"] = max(schema.get("minItems", 0), len(first)) + MOST_ITEMS
        if first:
            schema["prefixItems"] = [self.schema(one) for one in first]
        if schema["maxItems"] > len(first):
            schema["items"] = self.schema(schema.get("items", True))

    def _object(self, schema: dict[str, Schema]) -> None:
        names = schema.get("properties", {})
        patterns = schema.get("patternProperties", {})
        required = schema.get("required", [])
        is_counted = "minProperties" in schema or "maxProperties" in schema
        others: Any = schema.get("additionalProperties", True)
        if names:
            schema["properties"] = {name: self.schema(one) for name, one in names.items()}
        if patterns:
            schema["patternProperties"] = {key: self.schema(one) for key, one in patterns.items()}
        is_named = bool(names or patterns) and set(required) <= set(names)
        if is_named and others is True and not is_counted:
            others = False
        schema["additionalProperties"] = self.schema(others)
        is_open = others is not False or patterns
        if is_open and "maxProperties" not in schema and set(names) <= set(required):
            most = max(schema.get("minProperties", 0), len(required)) + MOST_ITEMS
            any_value = {"type": "object", "maxProperties": most, "required": required}
            any_value["patternProperties"] = dict.fromkeys(patterns, True)
            any_value["additionalProperties"] = others is not False
            if not self._refused(any_value):  # not everything can be counted
                schema["maxProperties"] = most

    def _anything(self) -> Schema:
        """A value of which nothing is said: a single one, or a list or an object of such."""
        single: dict[str, Schema] = {"type": ["null", "boolean", "number", "string"]}
        single = self._plain(single)
        return {
            "anyOf": [
                single,
                {"type": "array", "items": single, "maxItems": MOST_ITEMS},
                {"type": "object", "additionalProperties": single, "maxProperties": MOST_ITEMS},
            ]
        }
