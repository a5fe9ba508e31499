"""One node of a JSON schema as its dialect means it: references found, older spellings made new.

A schema is read into `Node`s: the assertions of one object, under the names that draft 2020-12 has
for them, with every schema inside still unread. What the dialects differ in ends here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from akunu.grammar.errors import SchemaError

if TYPE_CHECKING:
    from referencing import Registry
    from referencing._core import Resolver

Schema = Any
"""A schema as JSON has it: an object or a boolean."""

TYPES = ("null", "boolean", "number", "string", "array", "object")

_DRAFTS = {
    "http://json-schema.org/draft-03/schema": 3,
    "http://json-schema.org/draft-04/schema": 4,
    "http://json-schema.org/draft-06/schema": 6,
    "http://json-schema.org/draft-07/schema": 7,
    "https://json-schema.org/draft/2019-09/schema": 2019,
    "https://json-schema.org/draft/2020-12/schema": 2020,
}
_COUNTS = (
    *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
    *("minContains", "maxContains"),
)
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_LISTS = ("allOf", "anyOf", "oneOf")
_SINGLE = ("not", "if", "then", "else", "contains", "propertyNames", "additionalProperties")
_MAPS = ("properties", "patternProperties", "dependentSchemas")


@dataclass(frozen=True, slots=True)
class SchemaPlace:
    """A schema inside the whole one, and what its references are relative to."""

    schema: Schema
    pointer: str
    """JSON pointer from the root, through references: "" is the root."""
    resolver: Resolver[Schema] = field(repr=False)
    draft: int

    def inside(self, *keys: str | int) -> SchemaPlace:
        """The schema under these keys."""
        schema, pointer = self.schema, self.pointer
        for key in keys:
            schema = schema[key]
            pointer += "/" + str(key).replace("~", "~0").replace("/", "~1")
        return SchemaPlace(schema, pointer, self.resolver, self.draft)

    def refuse(self, reason: str, *keys: str | int) -> SchemaError:
        """The error that names this place, or a keyword of it."""
        pointer = self.pointer
        for key in keys:
            pointer += "/" + str(key).replace("~", "~0").replace("/", "~1")
        return SchemaError(pointer, reason)


class Node(dict[str, Any]):
    """Assertions of one schema by keyword; `place` is where it stands."""

    place: SchemaPlace


def root_place(schema: Schema) -> SchemaPlace:
    """The whole schema: its dialect is that of `$schema`, draft 2020-12 where it names none."""
    from jsonschema_specifications import REGISTRY
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012, specification_with

    draft, specification = 2020, DRAFT202012
    if isinstance(schema, dict) and isinstance(schema.get("$schema"), str):
        uri = schema["$schema"].rstrip("#")
        if uri.startswith("https://json-schema.org/draft-0"):  # often seen for those of http
            uri = uri.replace("https", "http", 1)
        draft = _DRAFTS.get(uri, 2020)
        if uri in _DRAFTS:
            specification = specification_with(uri)
    if draft == 3:
        raise SchemaError("/$schema", "draft 3 is not supported; use draft 4 or newer")
    resource = specification.create_resource(schema)
    uri = resource.id() or ""
    registry: Registry[Schema] = REGISTRY.with_resource(uri, resource)  # next to the drafts' own
    with suppress(
        Unresolvable, ValueError, TypeError, AttributeError
    ):  # found again when it is read
        registry = registry.crawl()
    return SchemaPlace(schema, "", registry.resolver(uri), draft)


def read(place: SchemaPlace) -> Node | bool:
    """The schema at that place; True or False if it allows anything or nothing."""
    schema = place.schema
    if isinstance(schema, bool):
        return schema
    if not isinstance(schema, dict):
        raise place.refuse(f"a schema is an object or a boolean, not {_as_json(schema)}")
    place = _entered(place)
    node = Node()
    node.place = place
    if place.draft <= 7 and "$ref" in schema:
        node["$ref"] = schema["$ref"]
        return node
    for keyword, value in schema.items():
        if reader := _READERS.get(keyword):
            for name, read_value in reader(place, keyword, value):
                node[name] = read_value
    if not node:
        return True
    return node


def referred(place: SchemaPlace, reference: Any) -> SchemaPlace:
    """The schema that `$ref` of that place names."""
    from referencing.exceptions import Unresolvable

    if not isinstance(reference, str):
        raise place.refuse("$ref must be a text", "$ref")
    try:
        found = place.resolver.lookup(reference)
    except (Unresolvable, ValueError, TypeError, AttributeError) as error:
        inside = (
            "" if reference.startswith("#") else "; references to other documents are not fetched"
        )
        raise place.refuse(f"{reference} is not in this schema{inside}", "$ref") from error
    return SchemaPlace(found.contents, place.pointer + "/$ref", found.resolver, place.draft)


def _entered(place: SchemaPlace) -> SchemaPlace:
    """Its own base for references where the schema has an `$id`."""
    name = "id" if place.draft == 4 else "$id"
    if place.pointer == "" or not isinstance(place.schema.get(name), str):
        return place
    if place.draft <= 7 and "$ref" in place.schema:
        return place
    from referencing.jsonschema import DRAFT4, DRAFT7, DRAFT202012

    specification = {4: DRAFT4, 6: DRAFT7, 7: DRAFT7}.get(place.draft, DRAFT202012)
    resource = specification.create_resource(place.schema)
    return SchemaPlace(
        place.schema, place.pointer, place.resolver.in_subresource(resource), place.draft
    )


_Read = Iterator[tuple[str, Any]]


def _as_is(place: SchemaPlace, keyword: str, value: Any) -> _Read:
    yield keyword, value


def _nothing(place: SchemaPlace, keyword: str, value: Any) -> _Read:
    return
    yield


def _type(place: SchemaPlace, keyword: str, value: Any) -> _Read:
    names = value if isinstance(value, list) else [value]
    for name in names:
        if name not in (*TYPES, "integer"):
            raise place.refuse(
                f"{_as_json(name)} is not a type; types are {', '.join(TYPES)} and integer", keyword
            )
    if "number" in names:  # which has the integers
        names = [name for name in names if name != "integer"]
    yield keyword, list(dict.fromkeys(names))


def _count(place: SchemaPlace, keyword: str, value: Any) -> _Read:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        raise place.refuse(f"a whole number is expected, not {_as_json(value)}", keyword)
    if value < 0:
        raise place.refuse(f"the number must be 0 or more, not {value}", keyword)
    yield keyword, int(value)


def fits_double(value: float) -> bool:
    """Whether a number is one that a double can hold, if rounded: an int of JSON may be larger."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _number(place: SchemaPlace, keyword: str, value: Any) -> _Read:
    if isinstance(value, bool) and keyword.startswith("exclusive"):  # as draft 4 had it
        limit = "minimum" if keyword == "exclusiveMinimum" else "maximum"
        if value and limit in place.schema:
            yield keyword, place.schema[limit]
        return
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise place.refuse(f"a number is expected, not {_as_json(value)}", keyword)
    if not fits_double(value):
        raise place.refuse("the number must fit a double", keyword)
    if keyword == "multipleOf" and value <= 0:
        raise place.refuse(f"the number must be above 0, not {value}", keyword)
    yield keyword, value


def _text(place: SchemaPlace, keyword: str, value: Any) -> _Read:
    if not isinstance(value, str):
        raise place.refuse(f"a text is expected, not {_as_json(value)}", keyword)
    yield keyword, value


def _schemas(place: SchemaPlace, keyword: str, value: Any) -> _Read:
    if not isinstance(value, list) or not value:
        raise place.refuse("a list of at least one schema is expected", keyword)
    yield keyword, [place.inside(keyword, i) for i in range(len(value))]


def _schema(place: SchemaPlace, keyword: str, value: Any) -> _Read:
    yield keyword, place.inside(keyword)


def _schema_map(place: SchemaPlace, keyword: str, value: Any) -> _Read:
    if not isinstance(value, dict):
        raise place.refuse(f"an object of schemas is expected, not {_as_json(value)}", keyword)
    yield keyword, {name: place.inside(keyword, name) for name in value}


def _names(place: SchemaPlace, keyword: str, value: Any) -> _Read:
    if isinstance(value, bool):  # draft 3, and seen in the wild where nothing reads it
        raise place.refuse("a list of names is expected", keyword)
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise place.refuse("a list of names is expected", keyword)
    yield keyword, list(dict.fromkeys(value))


def _enum(place: SchemaPlace, keyword: str, value: Any) -> _Read:
    if not isinstance(value, list):
        raise place.refuse(f"a list of values is expected, not {_as_json(value)}", keyword)
    yield keyword, value


def _const(place: SchemaPlace, keyword: str, value: Any) -> _Read:
    yield "const", [value]


def _items(place: SchemaPlace, keyword: str, value: Any) -> _Read:
    if isinstance(value, list):  # until 2019-09: one schema for each place
        if value:
            yield "prefixItems", [place.inside(keyword, i) for i in range(len(value))]
        if "additionalItems" in place.schema:
            yield "items", place.inside("additionalItems")
    else:
        yield "items", place.inside(keyword)


def _dependencies(place: SchemaPlace, keyword: str, value: Any) -> _Read:
    if not isinstance(value, dict):
        raise place.refuse(f"an object is expected, not {_as_json(value)}", keyword)
    names: dict[str, list[str]] = {}
    schemas: dict[str, SchemaPlace] = {}
    for name, needed in value.items():
        if isinstance(needed, list | str):
            names[name] = [needed] if isinstance(needed, str) else needed
        else:
            schemas[name] = place.inside(keyword, name)
    if names:
        yield "dependentRequired", names
    if schemas:
        yield "dependentSchemas", schemas


_READERS = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    "required": _names,
    "pattern": _text,
    "format": _text,
    "uniqueItems": _as_is,
    "$ref": _text,
    "$dynamicRef": _text,
    "$recursiveRef": _text,
    "items": _items,
    "prefixItems": _schemas,
    "dependencies": _dependencies,
    "dependentRequired": _as_is,
    "unevaluatedProperties": _schema,
    "unevaluatedItems": _schema,
    **dict.fromkeys(_COUNTS, _count),
    **dict.fromkeys(_NUMBERS, _number),
    **dict.fromkeys(_LISTS, _schemas),
    **dict.fromkeys(_SINGLE, _schema),
    **dict.fromkeys(_MAPS, _schema_map),
}


def _as_json(value: Any) -> str:
    import json

    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= 60 else text[:57] + "..."
