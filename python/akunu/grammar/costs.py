"""What of a grammar is likeliest to have taken too much, for the error that says so."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from akunu.errors import ArgumentError
from akunu.grammar.errors import OverBudgetError, SchemaError
from akunu.grammar.schema.reading import fits_double

_COUNTS: Final = ("maxLength", "minLength", "maxItems", "minItems", "maxProperties")
_NAMES: Final = {"regex": "regex", "rules": "grammar", "choice": "choice"}


class SchemaBudgetError(OverBudgetError, SchemaError):
    """A JSON schema that takes more time or memory to compile than it may have."""


def over_budget(function: str, source: object, what: str) -> ArgumentError:
    """Return the error for a source that took too much; `what` says what that was."""
    module = function.partition(":")[0].partition(".")[0]
    if module == "schema":
        pointer = costliest(source)
        return SchemaBudgetError(
            pointer, f"compiling it takes {what}; this part is the likely cause"
        )
    name = _NAMES.get(module, module)
    return OverBudgetError(f"{name} takes {what} to compile: make it smaller, or nest it less")


def costliest(schema: Any) -> str:
    """Return the JSON pointer of the keyword that is the likeliest to cost most.

    >>> costliest({"properties": {"a": {"multipleOf": 7919}, "b": {"maxLength": 5}}})
    '/properties/a/multipleOf'
    """
    if isinstance(schema, str):
        try:
            schema = json.loads(schema)
        except ValueError:
            return ""
    return max(_weighed(schema, ""), default=(0.0, ""))[1]


def _weighed(value: Any, pointer: str) -> Iterator[tuple[float, str]]:
    open_parts = [(value, pointer)]
    while open_parts:
        value, pointer = open_parts.pop()
        if isinstance(value, list):
            open_parts += [(each, f"{pointer}/{i}") for i, each in enumerate(value)]
        elif isinstance(value, dict):
            for key, each in value.items():
                place = f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}"
                yield _weight(key, each), place
                open_parts.append((each, place))


def _weight(keyword: str, value: Any) -> float:
    """Return about how many states or rules a keyword makes."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and not fits_double(value):  # of values, which may be larger than a keyword's
        return 0.0
    if keyword == "multipleOf" and is_number:
        # Its digits without the point: multiples of 0.001 go by 1, of 1.001 by 1001.
        return float(value if value == int(value) else f"{value}".replace(".", "") or 0)
    if keyword in _COUNTS and is_number:
        return float(value) / 10
    if keyword == "pattern" and isinstance(value, str):
        weight = float(len(value))
        for found in re.findall(r"\{(\d{1,9}),?(\d{0,9})\}", value):
            weight *= max(1, *(int(each) for each in found if each))
        return weight
    if isinstance(value, list | dict):
        return float(len(value))
    return float(len(value)) / 10 if isinstance(value, str) else 0.0
