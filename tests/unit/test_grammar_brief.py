"""Bounds where a schema has none: what is left fits the schema, and comes to an end."""

from __future__ import annotations

import gzip
import json
from typing import Any

from grammar_support import accepts, shared

from akunu.grammar import from_schema
from akunu.grammar.errors import SchemaError
from lines import each_line

PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "title": {"type": "string", "maxLength": 200},
        "age": {"type": "integer"},
        "height": {"type": "number", "minimum": 0},
        "tags": {"type": "array", "items": {"type": "string"}},
        "more": {},
    },
    "required": ["name"],
}


@each_line(
    ("value", "fits"),
    [
        ({"name": "x" * 48}, True),
        ({"name": "x" * 49}, False),
        ({"name": "", "title": "x" * 200}, True),
        ({"name": "", "age": 10**9}, True),
        ({"name": "", "age": -(10**9) - 1}, False),
        ({"name": "", "height": 1.125}, True),
        ({"name": "", "height": 1.1251}, False),
        ({"name": "", "height": -1}, False),
        ({"name": "", "tags": ["a"] * 3}, True),
        ({"name": "", "tags": ["a"] * 4}, False),
        ({"name": "", "more": {"any": 1.5, "name": None}}, True),
        ({"name": "", "more": [[1]]}, False),
        ({"name": "", "other": 1}, False),
    ],
)
def test_bounds_are_set_where_there_are_none(value: Any, fits: bool) -> None:
    text = json.dumps(value)
    assert accepts(from_schema(PERSON, brief=True), text) is fits
    assert accepts(from_schema(PERSON), text) is (value.get("height", 0) >= 0)


@each_line(
    ("schema", "value"),
    [
        ({"type": "string", "minLength": 100}, "x" * 100),
        ({"type": "string", "pattern": "^x{60}y*$"}, "x" * 60),
        ({"type": "string", "format": "date"}, "2026-11-26"),
        ({"enum": ["x" * 99, 10**12, 0.00001]}, "x" * 99),
        ({"type": "integer", "minimum": 10**12}, 10**12),
        ({"type": "integer", "exclusiveMaximum": -(10**12)}, -(10**12) - 1),
        ({"type": "number", "minimum": 0.0001, "maximum": 0.0002}, 0.00011),
        ({"type": "array", "minItems": 7}, [1] * 10),
        ({"type": "array", "prefixItems": [{"type": "null"}] * 5}, [None] * 5 + [1] * 3),
        ({"type": "object", "minProperties": 5}, dict.fromkeys("abcde")),
        ({"type": "object", "required": ["a", "b", "c", "d", "e"]}, dict.fromkeys("abcde")),
        ({"type": "object", "properties": {"a": {}}, "required": ["b"]}, {"b": 1}),
        ({"allOf": [{"type": "string"}, {"minLength": 99}]}, "x" * 99),
        ({"type": "string", "anyOf": [{"minLength": 99}, {"format": "date"}]}, "x" * 99),
        (
            {"properties": {"a": {"$ref": "#/$defs/t", "minLength": 99}}, "type": "object"}
            | {"$defs": {"t": {"type": "string"}}},
            {"a": "x" * 99},
        ),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, 10**9),
        ({}, [1]),
    ],
)
def test_a_bound_of_the_schemas_own_stays_possible(schema: Any, value: Any) -> None:
    assert accepts(from_schema(schema, brief=True), json.dumps(value))


def test_what_one_of_several_alternatives_excludes_stays_excluded() -> None:
    grammar = from_schema({"oneOf": [{"type": "string"}, {"minLength": 49}]}, brief=True)
    assert accepts(grammar, '"short"')
    assert not accepts(grammar, json.dumps("x" * 60))  # fits both


def test_every_schema_from_the_wild_that_compiles_does_so_with_bounds() -> None:
    file = shared("AKUNU_TEST_MASKBENCH", "maskbench") / "schemas.jsonl.gz"
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        schemas = [json.loads(line)["schema"] for line in lines][::29]
    compiled = 0
    for schema in schemas:
        try:
            from_schema(schema)
        except SchemaError:
            continue
        from_schema(schema, brief=True)
        compiled += 1
    assert compiled >= 15
