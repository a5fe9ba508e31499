"""Factors of `multipleOf` that meet in one number: llguidance multiplies them in 32 bits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

from akunu.grammar.number_ranges import decimal_of
from akunu.grammar.schema.reading import Schema

_LARGEST = 2**32 - 1
_MOST_WAYS = 256


class _ClashError(Exception):
    def __init__(self, part: dict[str, Any]) -> None:
        super().__init__()
        self.part = part


def clashing_factors(schema: Schema) -> Schema | None:
    """Return a part of a schema in which factors meet whose multiple llguidance cannot count in."""
    if not isinstance(schema, dict):
        return None
    try:
        _Meeting(schema).multiples({key: each for key, each in schema.items() if key != "$defs"})
    except _ClashError as clash:
        return clash.part
    return None


class _Meeting:
    def __init__(self, schema: dict[str, Any]) -> None:
        self._definitions = schema.get("$defs", {})
        self._known: dict[str, set[int]] = {}
        exponents = [int(each.as_tuple().exponent) for each in _factors(schema)]
        self._unit = Decimal(10) ** min([0, *exponents])

    def multiples(self, part: Schema) -> set[int]:
        """Return what the numbers of a part may have to be multiples of, in units."""
        if not isinstance(part, dict):
            return {1}
        found = {int(decimal_of(part["multipleOf"]) / self._unit)} if "multipleOf" in part else {1}
        for each in part.get("allOf", ()):
            found = self._met(found, self.multiples(each), part)
        for key in ("anyOf", "oneOf"):
            if key in part:
                found = self._met(found, self._any(part[key]), part)
        if "$ref" in part:
            found = self._met(found, self._definition(part["$ref"]), part)
        inside: list[Schema] = [part.get("items"), part.get("additionalProperties")]
        inside += part.get("prefixItems", ())
        for key in ("properties", "patternProperties"):
            inside += part.get(key, {}).values()
        return found | self._any(inside)

    def _definition(self, reference: str) -> set[int]:
        name = reference.removeprefix("#/$defs/")
        if name not in self._known:
            self._known[name] = {1}  # while it is looked at
            self._known[name] = self.multiples(self._definitions.get(name))
        return self._known[name]

    def _any(self, parts: Iterable[Schema]) -> set[int]:
        return set().union({1}, *map(self.multiples, parts))

    @staticmethod
    def _met(ways: set[int], others: set[int], part: dict[str, Any]) -> set[int]:
        found = {math.lcm(one, other) for one in ways for other in others}
        if len(found) > _MOST_WAYS:
            found = {math.lcm(*found)}
        if max(found) > max(_LARGEST, *ways, *others):
            raise _ClashError(part)
        return found


def _factors(schema: Schema) -> Iterator[Decimal]:
    left = [schema]
    while left:
        part = left.pop()
        if isinstance(part, list):
            left += part
        elif isinstance(part, dict):
            if isinstance(part.get("multipleOf"), int | float):
                yield decimal_of(part["multipleOf"])
            left += [each for key, each in part.items() if key not in ("enum", "const")]
