"""The schema of everything that another one refuses, where single assertions can say it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise
from typing import Any

from akunu.grammar.schema.excluded_texts import every_text_but, words_of
from akunu.grammar.schema.reading import TYPES, Node, Schema, SchemaPlace, read, referred
from akunu.grammar.schema.writer_parts import (
    Inexpressible,
    SchemaWriter,
    all_of,
    any_of,
    most_items,
    without,
)


def negation(writer: SchemaWriter, place: SchemaPlace) -> Schema:
    """The negation of that place's schema; Inexpressible if no grammar can express it."""
    node = read(place)
    if isinstance(node, bool):
        return not node
    if "$ref" in node and len(node) == 1:
        return writer.reference(referred(node.place, node["$ref"]), negated=True)
    return any_of(*(schema for keyword in node for schema in _negated(writer, node, keyword)))


def negation_within(writer: SchemaWriter, place: SchemaPlace, types: list[str]) -> Schema:
    """The same for values of these types alone: a type that they all have needs no opposite."""
    node = read(place)
    while not isinstance(node, bool) and "$ref" in node and len(node) == 1:
        place = referred(node.place, node["$ref"])
        node = read(place)
    if isinstance(node, bool) or not set(types) <= {*node.get("type", ())}:
        return negation(writer, place)
    keywords = [keyword for keyword in node if keyword != "type"]
    return any_of(*(schema for keyword in keywords for schema in _negated(writer, node, keyword)))


def _negated(writer: SchemaWriter, node: Node, keyword: str) -> Iterator[Schema]:
    """What one assertion refuses: schemas, each of which is enough."""
    value, place = node[keyword], node.place
    if keyword == "$ref":
        yield writer.reference(referred(place, value), negated=True)
    elif keyword == "type":
        yield _other_types(place, value)
    elif keyword in ("enum", "const"):
        yield all_of(*(_other_value(one) for one in _grouped(value)))
    elif keyword in _TURNED:
        other, change = _TURNED[keyword]
        limit = change(value)
        yield False if limit is None else {"type": _KIND[keyword], other: limit}
    elif keyword == "required":
        for name in value:
            yield {"type": "object", **without(name)}
    elif keyword == "properties":
        for name, inner in value.items():
            refused = negation(writer, inner)
            if refused is not False:
                yield {"type": "object", "required": [name], "properties": {name: refused}}
    elif keyword == "prefixItems":
        for i, inner in enumerate(value):
            yield _item_at(i, negation(writer, inner))
    elif keyword == "items":
        yield from _items(writer, node)
    elif keyword == "contains" and "minContains" not in node and "maxContains" not in node:
        yield {"type": "array", "items": negation(writer, value)}
    elif keyword == "additionalProperties":
        yield from _additional(node)
    elif keyword == "allOf":
        for inner in value:
            yield negation(writer, inner)
    elif keyword == "anyOf":
        yield all_of(*(negation(writer, inner) for inner in value))
    elif keyword == "oneOf":
        yield from _one_of(writer, node)
    elif keyword == "pattern" and (words := words_of(value)) is not None:
        yield {"type": "string", "pattern": every_text_but(words)}
    elif keyword == "not":
        yield writer.schema(value)
    elif keyword == "propertyNames":
        yield from _names(value)
    elif keyword == "dependentRequired" and isinstance(value, dict):
        for name, needed in value.items():
            for one in needed:
                yield {"type": "object", "required": [name], **without(one)}
    elif keyword == "dependentSchemas":
        for name, inner in value.items():
            yield all_of({"type": "object", "required": [name]}, negation(writer, inner))
    elif keyword == "if":
        yield from _if(writer, node)
    elif keyword in ("then", "else", "minContains") or (keyword == "uniqueItems" and not value):
        return  # nothing alone
    else:
        raise Inexpressible(place, f"no grammar can express the opposite of {keyword}", keyword)


_KIND = {
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), "number"),
    **dict.fromkeys(("minLength", "maxLength"), "string"),
    **dict.fromkeys(("minItems", "maxItems"), "array"),
    **dict.fromkeys(("minProperties", "maxProperties"), "object"),
}


def _below(value: int) -> int | None:
    return value - 1 if value > 0 else None


_TURNED: dict[str, tuple[str, Any]] = {
    "minimum": ("exclusiveMaximum", lambda limit: limit),
    "maximum": ("exclusiveMinimum", lambda limit: limit),
    "exclusiveMinimum": ("maximum", lambda limit: limit),
    "exclusiveMaximum": ("minimum", lambda limit: limit),
    "minLength": ("maxLength", _below),
    "maxLength": ("minLength", lambda limit: limit + 1),
    "minItems": ("maxItems", _below),
    "maxItems": ("minItems", lambda limit: limit + 1),
    "minProperties": ("maxProperties", _below),
    "maxProperties": ("minProperties", lambda limit: limit + 1),
}


def _other_types(place: SchemaPlace, types: list[str]) -> Schema:
    if "integer" in types:
        raise Inexpressible(place, "no grammar can express numbers that are not integers", "type")
    rest = [name for name in TYPES if name not in types]
    return {"type": rest} if rest else False


def _grouped(values: list[Any]) -> list[Any]:
    """Single values, but all texts together and all numbers together."""
    texts = [value for value in values if isinstance(value, str)]
    numbers = [
        value for value in values if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    others = [value for value in values if value not in texts and not _is_number(value)]
    groups: list[Any] = [[value] for value in others]
    return groups + ([texts] if texts else []) + ([numbers] if numbers else [])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _other_value(values: list[Any]) -> Schema:
    """Anything but these: texts, or numbers, or a single value of another type."""
    value = values[0]
    if value is None:
        return {"type": [name for name in TYPES if name != "null"]}
    if isinstance(value, bool):
        rest = [name for name in TYPES if name != "boolean"]
        return {"anyOf": [{"type": rest}, {"const": not value}]}
    if isinstance(value, str):
        rest = [name for name in TYPES if name != "string"]
        other: list[Schema] = [
            {"type": rest},
            {"type": "string", "pattern": every_text_but(values)},
        ]
        return {"anyOf": other}
    if isinstance(value, int | float):
        rest = [name for name in TYPES if name != "number"]
        ordered = sorted(set(values))
        gaps: list[Schema] = [{"type": "number", "exclusiveMaximum": ordered[0]}]
        for left, right in pairwise(ordered):
            gaps.append({"type": "number", "exclusiveMinimum": left, "exclusiveMaximum": right})
        gaps.append({"type": "number", "exclusiveMinimum": ordered[-1]})
        return {"anyOf": [{"type": rest}, *gaps]}
    if isinstance(value, list):
        rest = [name for name in TYPES if name != "array"]
        return any_of(
            {"type": rest},
            *([{"type": "array", "maxItems": len(value) - 1}] if value else []),
            {"type": "array", "minItems": len(value) + 1},
            *(_item_at(i, _other_value([one])) for i, one in enumerate(value)),
        )
    rest = [name for name in TYPES if name != "object"]
    return any_of(
        {"type": rest},
        *({"type": "object", **without(name)} for name in value),
        {
            "type": "object",
            "required": list(value),
            "properties": dict.fromkeys(value, True),
            "minProperties": len(value) + 1,
        },
        *(
            {"type": "object", "required": [name], "properties": {name: _other_value([one])}}
            for name, one in value.items()
        ),
    )


def _item_at(i: int, schema: Schema) -> Schema:
    if schema is False:
        return False
    return {"type": "array", "minItems": i + 1, "prefixItems": [True] * i + [schema]}


def _items(writer: SchemaWriter, node: Node) -> Iterator[Schema]:
    first = len(node.get("prefixItems", ()))
    refused = negation(writer, node["items"])
    if refused is False:
        return
    if refused is True:
        yield {"type": "array", "minItems": first + 1}
        return
    most = most_items(node)
    if most is None or most > 8:  # more items than `maxItems` are refused by that already
        reason = "no grammar can require an item at any position of a list"
        raise Inexpressible(node.place, reason, "items")
    for i in range(first, most):
        yield _item_at(i, refused)


def _additional(node: Node) -> Iterator[Schema]:
    """An object with a property too many. One without a required one is refused elsewhere."""
    inner = read(node["additionalProperties"])
    if inner is True:
        return
    names = list(node.get("properties", ()))
    required = [name for name in node.get("required", ()) if name in names]
    optional = [name for name in names if name not in required]
    if inner is not False or "patternProperties" in node or len(optional) > 5:
        raise Inexpressible(
            node.place, "no grammar can require a property of any name", "additionalProperties"
        )
    for length in range(len(optional) + 1):
        for chosen in combinations(optional, length):
            there = [*required, *chosen]
            yield {
                "type": "object",
                "required": there,
                "properties": {name: name in there for name in names},
                "minProperties": len(there) + 1,
            }


def _names(place: SchemaPlace) -> Iterator[Schema]:
    """An object with a name that the inner schema refuses, where those names are few."""
    node = read(place)
    if node is True:
        return
    if node is False:
        yield {"type": "object", "minProperties": 1}
        return
    if set(node) == {"not"}:
        inner = read(node["not"])
        if not isinstance(inner, bool) and len(inner) == 1 and {*inner} <= {"enum", "const"}:
            ((_, values),) = inner.items()
            for name in values:
                if isinstance(name, str):
                    yield {"type": "object", "required": [name]}
            return
    raise Inexpressible(place, "no grammar can require a property of any name")


def _one_of(writer: SchemaWriter, node: Node) -> Iterator[Schema]:
    """None of the alternatives, or two of them."""
    options = node["oneOf"]
    if len(options) > 8:
        raise Inexpressible(node.place, f"{len(options)} alternatives are too many", "oneOf")
    yield all_of(*(negation(writer, option) for option in options))
    for left, right in combinations(options, 2):
        yield all_of(writer.schema(left), writer.schema(right))


def _if(writer: SchemaWriter, node: Node) -> Iterator[Schema]:
    if "then" in node:
        yield all_of(writer.schema(node["if"]), negation(writer, node["then"]))
    if "else" in node:
        yield all_of(negation(writer, node["if"]), negation(writer, node["else"]))
