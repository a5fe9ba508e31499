"""Rewrites a JSON schema so that llguidance can enforce it; it accepts the same texts.

llguidance has no `not`, no `if`, no dependencies, and `oneOf` only where it sees that its schemas
exclude each other. Much of that can be written without loss with `anyOf`, `allOf` and negated
assertions (`negation`). Any other assertion is refused or, if the caller allows it, left out and
listed: without an assertion, a schema accepts more texts, never fewer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, permutations
from typing import Any

from akunu.grammar.errors import SchemaError
from akunu.grammar.grammar import Weakened
from akunu.grammar.schema.exact_numbers import MOST_MULTIPLE, too_large_factor
from akunu.grammar.schema.formats import KNOWN, PATTERNS, UNSAYABLE
from akunu.grammar.schema.negation import negation
from akunu.grammar.schema.one_of import exclude_each_other
from akunu.grammar.schema.patterns import checked_pattern, patterns_of
from akunu.grammar.schema.property_names import restrict_names
from akunu.grammar.schema.reading import TYPES, Node, Schema, SchemaPlace, read, referred
from akunu.grammar.schema.unevaluated import write_unevaluated
from akunu.grammar.schema.writer_parts import (
    Inexpressible,
    OneOf,
    all_of,
    any_of,
    most_items,
    without,
)

_IN_PLACE = ("$ref", "allOf", "anyOf", "oneOf", "enum", "const")
_OBJECT = ("properties", "patternProperties", "additionalProperties")
_ALTERNATIVES = 64
"""Alternatives that one assertion may become; beyond, the grammar would be slow."""


class Writer:
    """Writes a schema's places; holds what they refer to."""

    def __init__(self, *, weaken: bool, excluded: Callable[[Schema, dict[str, Schema]], bool]):
        """Begin; `excluded` says whether nothing fits a schema, given definitions."""
        self.weaken = weaken
        self.weakened: list[Weakened] = []
        self.definitions: dict[str, Schema] = {}
        self.written: list[tuple[SchemaPlace, Schema]] = []
        """Every place and what was written for it, for finding what llguidance refuses."""
        self.dropped: set[str] = set()
        """Pointers that llguidance refused and the caller allows to be left out."""
        self.unproven: list[SchemaError] = []
        """Each `oneOf` left to llguidance, which may see more of its surroundings."""
        self._excluded = excluded
        self._names: dict[tuple[int, int, bool], str] = {}
        self._one_ofs: list[OneOf] = []

    def write(self, place: SchemaPlace) -> Schema:
        """The whole schema, its definitions included."""
        schema = self.schema(place)
        while self._one_ofs:
            exclude_each_other(self, self._one_ofs.pop(), self._excluded)
        return self.whole(schema)

    def whole(self, schema: Schema) -> Schema:
        """`schema` with every definition next to it."""
        if not self.definitions:
            return schema
        if not isinstance(schema, dict):
            return schema
        return {"$defs": self.definitions, **schema}

    def schema(self, place: SchemaPlace) -> Schema:
        """What is written for that place."""
        if place.pointer in self.dropped:
            return True
        node = read(place)
        if isinstance(node, bool):
            return node
        schema = self._node(node)
        self.written.append((place, schema))
        return schema

    def reference(self, place: SchemaPlace, *, negated: bool = False) -> Schema:
        """A reference to the definition of that place, which is written once."""
        key = (id(place.schema), place.draft, negated)
        if isinstance(place.schema, bool):
            return place.schema is not negated
        if key not in self._names:
            name = self._names[key] = f"{'n' if negated else 'd'}{len(self._names)}"
            if negated:
                try:
                    self.definitions[name] = negation(self, place)
                except Inexpressible:
                    del self._names[key]
                    raise
            else:
                self.definitions[name] = self.schema(place)
        return {"$ref": f"#/$defs/{self._names[key]}"}

    def _node(self, node: Node) -> Schema:
        simple = self._simple(node)
        main: dict[str, Schema] = {}
        added: list[Schema] = simple.pop("allOf", [])
        anchor = "properties" if "properties" in node else next(iter(node))
        for keyword in node:
            if keyword == anchor or (not main and keyword not in _IN_PLACE and anchor in _IN_PLACE):
                main |= simple
                simple = {}
            if keyword in _IN_PLACE:
                self._in_place(node, keyword, main, added)
        main |= simple
        for keyword, write in _ADDED.items():
            if keyword in node:
                self._perhaps(node.place, keyword, added, write, self, node)
        if not added:
            return main or True
        return {"allOf": [main, *added]} if main else {"allOf": added}

    def _perhaps(
        self,
        place: SchemaPlace,
        keyword: str,
        added: list[Schema],
        write: Callable[..., Any],
        *arguments: Any,
    ) -> None:
        """Adds what `write` returns; what it cannot say is refused or noted as left out."""
        try:
            added.extend(schema for schema in write(*arguments) if schema is not True)
        except Inexpressible as inexpressible:
            self.leave_out(inexpressible.error)

    def leave_out(self, error: SchemaError) -> None:
        """Notes an assertion as left out; raises where the caller does not allow it."""
        if not self.weaken:
            raise error
        weakened = Weakened(error.pointer, error.reason)
        if weakened not in self.weakened:
            self.weakened.append(weakened)

    def _in_place(
        self, node: Node, keyword: str, main: dict[str, Schema], added: list[Schema]
    ) -> None:
        value = node[keyword]
        if keyword == "$ref":
            target = self.reference(referred(node.place, value))
            if isinstance(target, dict):
                main |= target
            elif target is False:
                added.append(False)
        elif keyword == "enum":
            main["enum"] = value
            if not value:
                added.append(False)
                del main["enum"]
        elif keyword == "const":
            main["const"] = value[0]
        elif keyword == "oneOf":
            written = [self.schema(option) for option in value]
            holder = main
            if "anyOf" in node:
                holder = {}
                added.append(holder)
            holder["anyOf"] = written
            self._one_ofs.append(OneOf(node.place, value, written, self._simple(node), holder))
        else:
            main[keyword] = [self.schema(option) for option in value]

    def _simple(self, node: Node) -> dict[str, Schema]:
        """The assertions that llguidance has itself, but for those that combine schemas."""
        simple: dict[str, Schema] = {}
        left_out = False
        for keyword in (*_COPIED, *_OBJECT):
            if keyword not in node or (keyword == "additionalProperties" and left_out):
                continue
            try:
                simple[keyword] = _copied(self, node, keyword)
            except Inexpressible as inexpressible:
                self.leave_out(inexpressible.error)
                # What the left out patterns match would be additional.
                left_out = left_out or keyword == "patternProperties"
        if isinstance(simple.get("type"), list) and len(simple["type"]) == 1:
            simple["type"] = simple["type"][0]
        if "type" in simple and not simple["type"]:
            simple = {"enum": [], "type": []}
        if "pattern" in simple and (more := patterns_of(node.place, node["pattern"])[1:]):
            simple["allOf"] = [{"pattern": each} for each in more]
        self._format(node, simple)
        if "propertyNames" in node:
            try:
                restrict_names(node, simple)
            except Inexpressible as inexpressible:
                self.leave_out(inexpressible.error)
        return {keyword: simple[keyword] for keyword in _ordered(node, simple)}

    def _format(self, node: Node, simple: dict[str, Schema]) -> None:
        name = node.get("format")
        if name in KNOWN:
            simple["format"] = name
        elif name in PATTERNS:
            if "pattern" in simple:
                simple["allOf"] = [*simple.get("allOf", ()), {"pattern": PATTERNS[name]}]
            else:
                simple["pattern"] = PATTERNS[name]
        elif name in UNSAYABLE and "string" in node.get("type", ["string"]):
            self.leave_out(node.place.refuse(f"no grammar for the format {name}", "format"))
        # Any other name asserts nothing: the standard has it ignored where it is not known.


def _ordered(node: Node, simple: dict[str, Schema]) -> Iterator[str]:
    yield from (keyword for keyword in node if keyword in simple)
    yield from (keyword for keyword in simple if keyword not in node)


_COPIED = (
    *("type", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "pattern", "minItems", "maxItems", "prefixItems", "items"),
    *("required", "minProperties", "maxProperties"),
)


def _copied(writer: Writer, node: Node, keyword: str) -> Schema:
    value = node[keyword]
    if keyword == "pattern":
        return patterns_of(node.place, value, "pattern")[0]
    if keyword == "multipleOf" and too_large_factor(
        value, is_integer="number" not in node.get("type", TYPES)
    ):
        reason = f"no grammar counts in steps of {value}; {MOST_MULTIPLE} is the most"
        raise Inexpressible(node.place, reason, keyword)
    if keyword == "prefixItems":
        return [writer.schema(place) for place in value]
    if keyword in ("items", "additionalProperties"):
        return writer.schema(value)
    if keyword == "properties":
        return {name: writer.schema(place) for name, place in value.items()}
    if keyword == "patternProperties":
        return {
            checked_pattern(node.place, pattern, keyword, pattern): writer.schema(place)
            for pattern, place in value.items()
        }
    return value


def _not(writer: Writer, node: Node) -> Iterator[Schema]:
    yield negation(writer, node["not"])


def _if(writer: Writer, node: Node) -> Iterator[Schema]:
    if "then" not in node and "else" not in node:
        return
    condition = writer.schema(node["if"])
    then = writer.schema(node["then"]) if "then" in node else True
    otherwise = writer.schema(node["else"]) if "else" in node else True
    try:
        unless = negation(writer, node["if"])
    except Inexpressible as inexpressible:
        writer.leave_out(inexpressible.error)
        unless = True
    yield any_of(all_of(condition, then), all_of(unless, otherwise))


def _dependent_required(writer: Writer, node: Node) -> Iterator[Schema]:
    needed = node["dependentRequired"]
    if not isinstance(needed, dict):
        raise node.place.refuse("an object is expected", "dependentRequired")
    for name, names in needed.items():
        if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
            raise node.place.refuse("a list of names is expected", "dependentRequired", name)
        if names:
            yield any_of(without(name), {"required": list(dict.fromkeys([name, *names]))})


def _dependent_schemas(writer: Writer, node: Node) -> Iterator[Schema]:
    for name, place in node["dependentSchemas"].items():
        schema = writer.schema(place)
        if schema is False:
            yield without(name)
        elif schema is not True:
            yield any_of(without(name), all_of({"required": [name]}, schema))


def _contains(writer: Writer, node: Node) -> Iterator[Schema]:
    place, least = node.place, node.get("minContains", 1)
    if "maxContains" in node:
        raise Inexpressible(place, "no grammar can count items of a kind", "maxContains")
    if least == 0:
        return
    item = writer.schema(node["contains"])
    if item is True:
        yield {"minItems": least}
        return
    most = most_items(node)
    if most is None or most > 8:
        reason = "no grammar can require an item at any position of a list"
        raise Inexpressible(place, reason, "contains")
    choices = list(combinations(range(most), least))
    if len(choices) > _ALTERNATIVES:
        raise Inexpressible(place, "too many places where the items could be", "contains")
    yield any_of(
        *({"type": [t for t in _OTHER_THAN_ARRAY]} for _ in range(1)),
        *(
            {
                "type": "array",
                "prefixItems": [item if i in chosen else True for i in range(chosen[-1] + 1)],
                "minItems": chosen[-1] + 1,
            }
            for chosen in choices
        ),
    )


_OTHER_THAN_ARRAY = ("null", "boolean", "number", "string", "object")


def _unique_items(writer: Writer, node: Node) -> Iterator[Schema]:
    if node["uniqueItems"] is not True:
        return
    most = most_items(node)
    if "array" not in node.get("type", ["array"]) or (most is not None and most <= 1):
        return
    values = _values(node)
    if values is None or len(values) > 4:
        raise Inexpressible(
            node.place, "no grammar can compare items with earlier ones", "uniqueItems"
        )
    least, most = node.get("minItems", 0), min(len(values), len(values) if most is None else most)
    lists = [
        list(chosen) for length in range(least, most + 1) for chosen in permutations(values, length)
    ]
    if not lists:
        yield {"type": list(_OTHER_THAN_ARRAY)}
        return
    yield any_of({"type": list(_OTHER_THAN_ARRAY)}, {"enum": lists})


def _values(node: Node) -> list[Any] | None:
    """What an item may be, where these are few texts, numbers or the like."""
    if "prefixItems" in node or "items" not in node:
        return None
    item = read(node["items"])
    if isinstance(item, bool):
        return None
    if item.get("type") == ["boolean"] and len(item) == 1:
        return [False, True]
    if set(item) - {"type", "enum", "const"}:
        return None
    values = item.get("enum", item.get("const"))
    if values is None or any(isinstance(value, list | dict | float) for value in values):
        return None
    if len({(type(value), value) for value in values}) < len(values):
        return None
    return list(values)


def _unevaluated(writer: Writer, node: Node) -> Iterator[Schema]:
    return write_unevaluated(writer.schema, node)


def _dynamic(writer: Writer, node: Node) -> Iterator[Schema]:
    keyword = "$dynamicRef" if "$dynamicRef" in node else "$recursiveRef"
    raise Inexpressible(node.place, "a reference whose target depends on the path to it", keyword)
    yield


_ADDED: dict[str, Callable[[Writer, Node], Iterator[Schema]]] = {
    "not": _not,
    "if": _if,
    "dependentRequired": _dependent_required,
    "dependentSchemas": _dependent_schemas,
    "contains": _contains,
    "uniqueItems": _unique_items,
    "unevaluatedProperties": _unevaluated,
    "unevaluatedItems": _unevaluated,
    "$dynamicRef": _dynamic,
    "$recursiveRef": _dynamic,
}
