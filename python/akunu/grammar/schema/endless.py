"""Parts of a schema that no text ever fits, because each would have to contain another of itself.

llguidance follows a reference wherever it leads. A list whose first item must be such a list begins
and never ends. The definitions that can end are a fixed point: at first there are none; then those
are added that need only definitions found before, until no more are found. The remaining ones are
written as `false`, which llguidance knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from akunu.grammar.schema.reading import Schema

_TYPES = frozenset(("null", "boolean", "integer", "number", "string", "array", "object"))


def endless(schema: Schema) -> list[str]:
    """Names of the definitions in `$defs` that no text fits; "" is the schema itself."""
    if not isinstance(schema, dict):
        return []
    definitions: dict[str, Schema] = {**schema.get("$defs", {}), "": {**schema}}
    ending: set[str] = set()
    while True:
        found = {name for name, each in definitions.items() if _ends(each, definitions, ending)}
        if found == ending:
            return [name for name in definitions if name not in ending]
        ending = found


def without_endless(schema: Schema, names: list[str]) -> Schema:
    """The schema with `false` in place of each reference to one of these definitions."""
    if isinstance(schema, list):
        return [without_endless(each, names) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if _name(schema.get("$ref")) in names:
        return False
    return {
        key: each if key in ("enum", "const") else without_endless(each, names)
        for key, each in schema.items()
        if key != "$defs" or each
    }


def containing_itself(schema: Schema, names: list[str]) -> str | None:
    """Return the first of these definitions that leads to itself again; None if none does."""
    definitions = schema.get("$defs", {}) if isinstance(schema, dict) else {}
    leads_to = {
        name: [one for one in _references(definitions[name]) if one in names]
        for name in names
        if name in definitions
    }
    for name, following in leads_to.items():
        open_names, seen = list(following), set(following)
        while open_names:
            found = [one for one in leads_to.get(open_names.pop(), ()) if one not in seen]
            open_names += found
            seen.update(found)
        if name in seen:
            return name
    return None


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if "$ref" in schema:
            yield _name(schema["$ref"])
        for key, each in schema.items():
            if key not in ("$defs", "enum", "const"):
                yield from _references(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from _references(each)


def _name(reference: Any) -> str:
    return reference.removeprefix("#/$defs/") if isinstance(reference, str) else "no reference"


def _ends(
    schema: Schema,
    definitions: dict[str, Schema],
    ending: set[str],
    within: frozenset[str] = frozenset(),
) -> bool:
    """Whether a text may fit, where of the definitions those of `ending` have one.

    `within`: definitions that are looked into already.
    """
    if not isinstance(schema, dict):
        return schema is not False
    if "$ref" in schema and len(schema) == 1:
        return _name(schema["$ref"]) in ending

    def all_end(schemas: Iterable[Schema]) -> bool:
        return all(_ends(each, definitions, ending, within) for each in schemas)

    own = list(_together(schema))
    names = {_name(part["$ref"]) for part in own if "$ref" in part}
    if not names <= ending or any(False in part.get("allOf", ()) for part in own):
        return False
    for part in own:
        for key in ("anyOf", "oneOf"):
            if key in part and not any(
                _ends(each, definitions, ending, within) for each in part[key]
            ):
                return False
    if any("enum" in part or "const" in part for part in own):
        return True
    parts = own + [part for name in names - within for part in _together(definitions[name])]
    within |= names
    types = set(_TYPES)
    for part in parts:
        if "type" in part:
            types &= _types(part["type"])
    required = {name for part in parts for name in part.get("required", ())}
    properties = [part.get("properties", {}) for part in parts]
    if not all_end(each[name] for each in properties for name in required & set(each)):
        types.discard("object")
    least = max((part.get("minItems", 0) for part in parts), default=0)
    if not all_end(item for part in parts for item in _items(part, least)):
        types.discard("array")
    return bool(types)


def _together(schema: Schema) -> Iterator[dict[str, Schema]]:
    """A schema and its `allOf`: what a text must fit at once."""
    if isinstance(schema, dict):
        yield schema
        for part in schema.get("allOf", ()):
            yield from _together(part)


def _types(types: str | list[str]) -> set[str]:
    found = {types} if isinstance(types, str) else set(types)
    return found | {"integer"} if "number" in found else found


def _items(schema: dict[str, Schema], least: int) -> Iterator[Schema]:
    """What the items are that a list must have."""
    first = schema.get("prefixItems", [])
    yield from first[:least]
    if least > len(first) and "items" in schema:
        yield schema["items"]
