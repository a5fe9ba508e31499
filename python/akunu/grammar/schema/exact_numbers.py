"""Schemas with numbers that llguidance does not hold exactly, written as rules of Lark.

Only what leads to such a number becomes rules: objects, lists, alternatives, references. All else
stays JSON schema inside them (`%json`), with the same whitespace, so that llguidance reads the
whole with one lexer.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from akunu.grammar.number_ranges import (
    EXACT,
    between,
    bounds_of,
    decimal_of,
    is_too_long,
    multiples,
    multiples_of_fraction,
)
from akunu.grammar.schema.reading import TYPES, Schema

MOST_MULTIPLE = 400_000
"""States of an automaton for multiples: more take longer than a whole grammar may."""
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_NUMBERS = frozenset(("type", "multipleOf", *_BOUNDS))
_OBJECT = frozenset(
    ("type", "properties", "required", "additionalProperties", "minProperties", "maxProperties")
)
_ARRAY = frozenset(("type", "prefixItems", "items", "minItems", "maxItems"))
# As llguidance has the names of further properties.
_KEY = (
    r'/"([^"\\\x00-\x1F\x7F]|\\["\\bfnrt]|\\u([0-9a-ce-fA-CE-F][0-9a-fA-F]{3}'
    r'|[dD][0-7][0-9a-fA-F]{2}|[dD][89aAbB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))*"/'
)


class _NotCoveredError(Exception):
    """These rules do not cover a part of a schema: llguidance takes the whole, if not exactly."""


def exact(schema: Schema, whitespace: str | None, options: dict[str, Any]) -> str | None:
    """Return rules of Lark for a schema; None where llguidance is exact, or rules do not cover it.

    `whitespace`: what may stand between its parts; `options`: those of `x-guidance`.
    """
    if not isinstance(schema, dict):
        return None
    rules = _Rules(schema.get("$defs", {}), options)
    root = {key: each for key, each in schema.items() if key != "$defs"}
    if not rules.is_inexact(root):
        return None
    try:
        start = rules.rule(root)
    except _NotCoveredError:
        return None
    ignored = f'%llguidance {{"ignore_once": true}}\n%ignore /{whitespace}/\n' if whitespace else ""
    return f"{ignored}start: {start}\n" + "".join(
        f"{name}: {body}\n" for name, body in rules.bodies.items()
    )


def is_inexact_number(schema: dict[str, Any]) -> bool:
    """Whether llguidance rounds a bound, a value or a factor of this schema's own."""
    bounds = [schema[key] for key in _BOUNDS if key in schema]
    if any(map(_is_large, bounds)) or any(map(_has_many_digits, bounds)):
        return True
    if _is_open_wrongly(schema):
        return True
    if "const" in schema and _is_large(schema["const"]):
        return True
    if any(map(_is_large, schema.get("enum", ()))):
        return True
    factor = schema.get("multipleOf", 1)
    return factor > MOST_MULTIPLE and factor == int(factor) and _multiples(schema) is not None


def too_large_factor(value: float, *, is_integer: bool) -> bool:
    """Whether no automaton counts in steps of a number, and the last digits do not tell either."""
    if value != int(value):
        return int("".join(map(str, decimal_of(value).as_tuple().digits))) > MOST_MULTIPLE
    return value > MOST_MULTIPLE and multiples(int(value), is_integer=is_integer) is None


def _is_large(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_is_large, value))
    if isinstance(value, dict):
        return any(map(_is_large, value.values()))
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and EXACT < abs(value) < math.inf


def _is_open_wrongly(schema: dict[str, Any]) -> bool:
    """Whether llguidance allows an excluded bound: it does with two bounds or a short range."""
    lower = [schema[key] for key in ("minimum", "exclusiveMinimum") if key in schema]
    upper = [schema[key] for key in ("maximum", "exclusiveMaximum") if key in schema]
    if len(lower) > 1 or len(upper) > 1:
        return True
    is_open = "exclusiveMinimum" in schema or "exclusiveMaximum" in schema
    return is_open and bool(lower and upper) and int(abs(lower[0])) == int(abs(upper[0]))


def _has_many_digits(value: float) -> bool:
    """Whether a fraction has more digits than llguidance's reader of JSON keeps."""
    if isinstance(value, int) or not math.isfinite(value) or value == int(value):
        return False
    return len(decimal_of(value).as_tuple().digits) > 15 or abs(value) < 1e-6


def _multiples(schema: dict[str, Any]) -> str | None:
    return multiples(int(schema["multipleOf"]), is_integer="number" not in _types(schema))


def _types(schema: dict[str, Any]) -> list[str]:
    given = schema.get("type", TYPES)
    return [given] if isinstance(given, str) else list(given)


class _Rules:
    def __init__(self, definitions: dict[str, Schema], options: dict[str, Any]) -> None:
        self.bodies: dict[str, str] = {}
        self._definitions = definitions
        self._options = options
        self._names: dict[str, str] = {}  # of rules by what they say
        self._inexact: dict[str, bool] = {}  # of definitions

    def is_inexact(self, schema: Schema) -> bool:
        """Whether a number that llguidance does not hold exactly is in a schema, or referred to."""
        if not isinstance(schema, dict):
            return isinstance(schema, list) and any(map(self.is_inexact, schema))
        if is_inexact_number(schema):
            return True
        if "$ref" in schema:
            name = _name(schema["$ref"])
            if name not in self._inexact:
                self._inexact[name] = False  # while it is looked at
                self._inexact[name] = self.is_inexact(self._definitions.get(name))
            if self._inexact[name]:
                return True
        return any(
            self.is_inexact(each)
            if key not in ("properties", "patternProperties")
            else any(map(self.is_inexact, each.values()))
            for key, each in schema.items()
            if key not in ("enum", "const", "required", "type", "$defs")
        )

    def rule(self, schema: Schema) -> str:
        """Return the name of a rule for a schema."""
        if not self.is_inexact(schema):
            return self._json(schema)
        if set(schema) == {"$ref"}:
            return self._definition(_name(schema["$ref"]))
        if set(schema) == {"allOf"} and len(schema["allOf"]) == 1:
            return self.rule(schema["allOf"][0])
        if set(schema) == {"anyOf"}:
            return self._added("one", " | ".join(map(self.rule, schema["anyOf"])))
        if {"enum", "const"} & set(schema):
            return self._values(schema)
        ways = []
        others = [kind for kind in _types(schema) if kind not in ("number", "integer")]
        for kind, keys, write in (
            ("object", _OBJECT, self._object),
            ("array", _ARRAY, self._array),
        ):
            own = {key: each for key, each in schema.items() if key in keys and key != "type"}
            if kind in others and self.is_inexact(own):
                others.remove(kind)
                if kind == "object" and "patternProperties" in schema:
                    raise _NotCoveredError
                ways.append(write(own))
        if len(others) < len(_types(schema)) and set(_types(schema)) & {"number", "integer"}:
            ways.append(self._number(schema))
        if others:
            rest = {key: each for key, each in schema.items() if key not in _NUMBERS}
            for key in _OBJECT | _ARRAY:  # the rules above have these, where they matter
                if key in rest and self.is_inexact({key: rest[key]}):
                    del rest[key]
            if self.is_inexact(rest):
                raise _NotCoveredError
            ways.append(self._json({**rest, "type": others}))
        if not ways or not set(schema) <= _NUMBERS | _OBJECT | _ARRAY | _OF_OTHERS:
            raise _NotCoveredError
        return self._added("one", " | ".join(ways))

    def _definition(self, name: str) -> str:
        rule = f"d_{''.join(c if c.isalnum() and c.isascii() else '_' for c in name)}"
        if rule not in self.bodies:
            self.bodies[rule] = ""  # for those that refer to it
            self.bodies[rule] = self.rule(self._definitions[name])
        return rule

    def _added(self, name: str, body: str) -> str:
        if body not in self._names:
            self._names[body] = f"{name}_{len(self._names)}"
            self.bodies[self._names[body]] = body
        return self._names[body]

    def _json(self, schema: Schema) -> str:
        if not isinstance(schema, dict):
            schema = {} if schema else {"enum": []}
        needed: dict[str, Schema] = {}
        left = list(_references(schema))
        while left:
            name = left.pop()
            if name not in needed:
                needed[name] = self._definitions[name]
                left += _references(needed[name])
        definitions = {"$defs": needed} if needed else {}
        whole = {**definitions, **schema, "x-guidance": self._options}
        return self._added("json", f"%json {json.dumps(whole, ensure_ascii=False)}")

    def _values(self, schema: dict[str, Any]) -> str:
        values = schema.get("enum", [schema.get("const")])
        unneeded = {*_NUMBERS, "enum", "const"}
        for kind, keys in ((dict, _OF_OBJECTS), (list, _ARRAY)):
            if not any(isinstance(value, kind) for value in values):
                unneeded |= keys
        beside = {key: each for key, each in schema.items() if key not in unneeded}
        if not set(beside) <= _OBJECT | _ARRAY | _OF_OTHERS or self.is_inexact(beside):
            raise _NotCoveredError
        values = [value for value in values if _holds_number(schema, value)]
        if "const" in schema:
            values = [value for value in values if value == schema["const"]]
        kinds = set(_types(schema))
        ways = []
        for value in filter(_is_large, values):
            if isinstance(value, list | dict):
                if set(beside) & (_ARRAY if isinstance(value, list) else _OF_OBJECTS):
                    raise _NotCoveredError
                is_allowed = ("array" if isinstance(value, list) else "object") in kinds
                ways += [self.rule(_schema_of(value))] if is_allowed else []
            elif kinds & {"number", "integer"}:
                ways.append(self._terminal(f'"{int(value)}"'))
        others = [value for value in values if not _is_large(value)]
        if others:
            kept = {key: each for key, each in schema.items() if key == "type"}
            ways.append(self._json({**kept, **beside, "enum": others}))
        if not ways:
            raise _NotCoveredError
        return self._added("one", " | ".join(ways))

    def _terminal(self, body: str) -> str:
        return self._added("NUMBER", body)

    def _number(self, schema: dict[str, Any]) -> str:
        is_integer = "number" not in _types(schema)
        own = {key: each for key, each in schema.items() if key in _NUMBERS and key != "type"}
        if not is_inexact_number({**own, "type": _types(schema)}):
            kinds = [kind for kind in _types(schema) if kind in ("number", "integer")]
            return self._json({**own, "type": kinds})
        bounds = bounds_of(schema)
        if is_too_long(bounds):
            raise _NotCoveredError
        body = between(bounds, is_integer=is_integer)
        if body is None:
            raise _NotCoveredError
        if "multipleOf" in schema:
            factor = schema["multipleOf"]
            is_whole = factor == int(factor)
            found = _multiples(schema) if is_whole else multiples_of_fraction(decimal_of(factor))
            if found is None:
                raise _NotCoveredError
            body = f"({body}) & {found}"
        return self._terminal(body)

    def _object(self, schema: dict[str, Any]) -> str:
        properties = schema.get("properties", {})
        required = schema.get("required", [])
        more = schema.get("additionalProperties", True)
        items: list[tuple[str, bool]] = []
        for name in dict.fromkeys([*properties, *required]):
            value = properties.get(name, more)
            if value is False:
                if name in required:
                    raise _NotCoveredError
                continue
            quoted = json.dumps(json.dumps(name, ensure_ascii=False), ensure_ascii=False)
            items.append((f'{quoted} ":" {self.rule(value)}', name in required))
        behind, alone = self._rest_of_object(schema, more, items)
        for item, is_needed in reversed(items):
            if is_needed:
                alone = self._added("members", f"{item} {behind}")
                behind = self._added("members", f'"," {item} {behind}')
            else:
                alone = self._added("members", f"{item} {behind} | {alone}")
                behind = self._added("members", f'("," {item})? {behind}')
        return self._added("object", f'"{{" {alone} "}}"')

    def _rest_of_object(
        self, schema: dict[str, Any], more: Schema, items: list[tuple[str, bool]]
    ) -> tuple[str, str]:
        """Return the text after the properties that have names, and the text if there are none."""
        least, most = schema.get("minProperties", 0), schema.get("maxProperties")
        n_needed = sum(is_needed for _, is_needed in items)
        if (least > n_needed or most is not None) and n_needed < len(items):
            raise _NotCoveredError  # which are there would have to be counted
        least = max(0, least - len(items))
        most = None if most is None else most - len(items)
        if (most is not None and most < least) or (more is False and least):
            raise _NotCoveredError
        if more is False or most == 0:
            return '""', '""'
        rest = self._further(more, [*schema.get("properties", {}), *schema.get("required", ())])
        behind = f'("," {rest}){{{least},{"" if most is None else most}}}'
        one_less = f"{{{max(0, least - 1)},{'' if most is None else most - 1}}}"
        alone = f'{rest} ("," {rest}){one_less}'
        return self._added("more", behind), self._added("more", alone if least else f"({alone})?")

    def _further(self, more: Schema, taken: list[str]) -> str:
        key = _KEY
        if taken:
            names = [json.dumps(name, ensure_ascii=False) for name in dict.fromkeys(taken)]
            listed = " | ".join(json.dumps(name, ensure_ascii=False) for name in names)
            key = f"{_KEY} & ~({listed})"
        return self._added("member", f'{self._added("KEY", key)} ":" {self.rule(more)}')

    def _array(self, schema: dict[str, Any]) -> str:
        first: Sequence[Schema] = schema.get("prefixItems", ())
        more = schema.get("items", True)
        least, most = schema.get("minItems", 0), schema.get("maxItems")
        if most is not None:
            first = first[:most]
        if (most is not None and most < least) or any(each is False for each in first):
            raise _NotCoveredError
        behind = '""'
        if more is not False and (most is None or most > len(first)):
            fewest = max(0, least - len(first))
            highest = "" if most is None else str(most - len(first))
            item = self.rule(more)
            behind = self._added("items", f'("," {item}){{{fewest},{highest}}}')
            if not first:
                highest = "" if most is None else str(most - 1)
                some = f'{item} ("," {item}){{{max(0, fewest - 1)},{highest}}}'
                return self._added("list", f'"[" {some if fewest else f"({some})?"} "]"')
        elif least > len(first):
            raise _NotCoveredError
        for i in reversed(range(len(first))):
            item = self.rule(first[i])
            comma = '"," ' if i else ""
            whole = f"{comma}{item} {behind}"
            behind = self._added("items", whole if i < least else f"({whole})?")
        return self._added("list", f'"[" {behind} "]"')


_OF_OBJECTS = _OBJECT | {"patternProperties"}
_OF_OTHERS = frozenset(("minLength", "maxLength", "pattern", "format", "patternProperties"))


def _holds_number(schema: dict[str, Any], value: Any) -> bool:
    """Whether a value is not a number, or has the bounds and the factor of a schema."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return True
    number = decimal_of(value)
    factor = Fraction(decimal_of(schema.get("multipleOf", 0)))
    is_multiple = not factor or (Fraction(number) / factor).denominator == 1
    return is_multiple and bounds_of(schema).have(number)


def _schema_of(value: Any) -> Schema:
    """Return the schema of a value's parts."""
    if isinstance(value, list):
        parts = [{"const": each} for each in value]
        size = {"minItems": len(parts), "maxItems": len(parts)}
        return {"type": "array", "prefixItems": parts, **size}
    return {
        "type": "object",
        "properties": {key: {"const": each} for key, each in value.items()},
        "required": list(value),
        "additionalProperties": False,
    }


def _name(reference: str) -> str:
    return reference.removeprefix("#/$defs/")


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield _name(schema["$ref"])
        for key, each in schema.items():
            if key not in ("enum", "const"):
                yield from _references(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from _references(each)
