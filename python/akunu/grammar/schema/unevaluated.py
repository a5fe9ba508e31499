"""`unevaluatedProperties` and `unevaluatedItems`, where it is plain what is evaluated."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from akunu.grammar.schema.patterns import checked_pattern
from akunu.grammar.schema.reading import Node, Schema, SchemaPlace, read, referred
from akunu.grammar.schema.writer_parts import Inexpressible

_CONDITIONAL = frozenset(
    ("anyOf", "oneOf", "if", "dependentSchemas", "$dynamicRef", "$recursiveRef", "not", "contains")
)


def write_unevaluated(schema_of: Callable[[SchemaPlace], Schema], node: Node) -> Iterator[Schema]:
    """The assertions of both keywords of a node; Inexpressible where it depends on the text.

    `schema_of`: what writes a place.
    """
    for keyword in ("unevaluatedProperties", "unevaluatedItems"):
        if keyword not in node or node[keyword].schema is True:
            continue
        objects = keyword == "unevaluatedProperties"
        names: dict[str, None] = {}
        patterns: dict[str, None] = {}
        items = [0]
        try:
            everything = _evaluated(node, objects, names, patterns, items, 0)
        except _Depends as depends:
            raise Inexpressible(
                node.place, f"the result of {depends} depends on the text", keyword
            ) from None
        if everything:
            continue
        rest = schema_of(node[keyword])
        if objects:
            schema: dict[str, Schema] = {"properties": dict.fromkeys(names, True)}
            if patterns:
                schema["patternProperties"] = dict.fromkeys(patterns, True)
            yield {**schema, "additionalProperties": rest}
        elif items[0]:
            yield {"prefixItems": [True] * items[0], "items": rest}
        else:
            yield {"items": rest}


class _Depends(Exception):  # noqa: N818, becomes Inexpressible at once
    pass


def _evaluated(
    node: Node,
    objects: bool,
    names: dict[str, None],
    patterns: dict[str, None],
    items: list[int],
    depth: int,
) -> bool:
    """Collects what a node evaluates; True: everything."""
    if found := _CONDITIONAL & set(node):
        raise _Depends(min(found))
    if depth > 40:
        raise _Depends("a reference to itself")
    if objects:
        names |= dict.fromkeys(node.get("properties", ()))
        patterns |= {
            checked_pattern(node.place, each, "patternProperties", each): None
            for each in node.get("patternProperties", ())
        }
        if "additionalProperties" in node or (depth and "unevaluatedProperties" in node):
            return True
    else:
        items[0] = max(items[0], len(node.get("prefixItems", ())))
        if "items" in node or (depth and "unevaluatedItems" in node):
            return True
    inner = [read(place) for place in node.get("allOf", ())]
    if "$ref" in node:
        inner.append(read(referred(node.place, node["$ref"])))
    found_all = [
        _evaluated(one, objects, names, patterns, items, depth + 1)
        for one in inner
        if isinstance(one, Node)
    ]
    return any(found_all)
