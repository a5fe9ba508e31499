"""Numbers of schemas hold exactly: what generators write for int64, uint64, float and double."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from grammar_support import accepts
from jsonschema import Draft202012Validator
from tool_support import WAYS

from akunu.grammar import from_schema
from akunu.grammar.errors import SchemaError
from akunu.tools.grammar import required_calls
from lines import each_line

INT64 = {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}
UINT64 = {"type": "integer", "minimum": 0, "maximum": 2**64 - 1}
FLOAT = {"type": "number", "minimum": -3.4028234663852886e38, "maximum": 3.4028234663852886e38}
DOUBLE = {"type": "number", "minimum": -1.7976931348623157e308, "maximum": 1.7976931348623157e308}
RECORD = {
    "type": "object",
    "properties": {
        "id": INT64,
        "name": {"type": "string"},
        "size": {"anyOf": [UINT64, {"type": "null"}]},
        "parts": {"type": "array", "items": INT64, "minItems": 1, "maxItems": 2},
    },
    "required": ["id"],
    "additionalProperties": False,
}
TREE = {
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "id": INT64,
                "below": {"type": "array", "items": {"$ref": "#/$defs/node"}},
            },
            "required": ["id"],
        }
    },
    "$ref": "#/$defs/node",
}
LARGE = 2**63
LARGEST = [str(int(3.4028234663852886e38) + by) for by in (-1, 0, 1)]


@each_line(
    "schema, texts",
    [
        (INT64, [str(n) for n in (-LARGE, -LARGE - 1, LARGE - 1, LARGE, 0, -7)]),
        (UINT64, [str(n) for n in (2 * LARGE - 1, 2 * LARGE, -1, 0, 7)]),
        (FLOAT, ["1.5", "-0.25", "9" * 39, *(s + n for n in LARGEST for s in ("", "-"))]),
        ({"type": "number", "minimum": -0.0, "maximum": 0.1234567890123456}, ["0", "0.2", "-1"]),
        (DOUBLE, ["1.5", "0", str(int(1.7976931348623157e308)), "2" + "0" * 308, "1" + "0" * 400]),
        (
            {"type": "integer", "exclusiveMinimum": 2**53, "exclusiveMaximum": 2**53 + 3},
            [str(2**53 + i) for i in range(-2, 6)],
        ),
        ({"type": "integer", "minimum": 1e19}, [str(10**19 + i) for i in (-1, 0, 1)]),
        ({"type": ["integer", "null"], "maximum": 2**64}, ["null", str(2**64 + 1), "-5", '"a"']),
        ({"maximum": 2**64}, ['"a"', "{}", "[1]", str(2**64 + 1), "1.5", "true"]),
        (
            {"enum": [2**53 + 1, 1, "a", [2**53 + 1], {"a": 2**64}]},
            ["9007199254740993", "9007199254740992", "1", '"a"', "[9007199254740993]", "[1]"],
        ),
        ({"const": 2**64 - 1}, [str(2**64 - 1), "18446744073709552000"]),
        ({"type": "integer", "multipleOf": 1_000_000}, ["0", "2000000", "-1000000", "200000"]),
        ({"type": "integer", "multipleOf": 2_500_000}, ["2500000", "12500000", "15000001"]),
        (
            RECORD,
            [
                '{"id": 9223372036854775807}',
                '{"id": 9223372036854775808}',
                '{"name": "a"}',
                '{"id": 1, "size": null, "parts": [1]}',
                '{"id": 1, "size": 18446744073709551616}',
                '{"id": 1, "parts": []}',
                '{"id": 1, "parts": [1, 2, 3]}',
                '{"id": 1, "more": 1}',
            ],
        ),
        (
            TREE,
            [
                '{"id": 1, "below": [{"id": 2, "below": []}], "more": {"a": [1]}}',
                '{"id": 1, "below": [{"id": 9223372036854775808}]}',
                '{"more": 1}',
            ],
        ),
        (
            {"type": "object", "additionalProperties": INT64, "minProperties": 1},
            ['{"a": 9223372036854775807, "b": 1}', '{"a": 9223372036854775808}', "{}"],
        ),
        (
            {"type": "array", "prefixItems": [INT64, UINT64], "items": False, "minItems": 1},
            ["[1]", "[]", "[1, -1]", "[-1, 1]", "[1, 1, 1]"],
        ),
    ],
)
def test_what_generators_write_holds_exactly(schema: dict[str, Any], texts: list[str]) -> None:
    grammar = from_schema(schema)
    assert grammar.weakened == ()
    for text in texts:
        valid = Draft202012Validator(schema).is_valid(json.loads(text))
        assert accepts(grammar, text) == valid, text


@each_line(
    "schema, texts",
    [
        (
            {"enum": [LARGE + 1, 3, 1.5, "ab"], "exclusiveMinimum": 1.5, "minProperties": 1},
            ['"ab"'],
        ),
        ({"const": LARGE + 1, "additionalProperties": {}}, []),
        ({"enum": [LARGE + 1, True], "properties": {"a": INT64}, "items": INT64}, ["true"]),
        ({"enum": [2**60, 2**60 + 1, 2**60 + 4], "multipleOf": 2, "maximum": 2**60 + 3}, []),
        ({"enum": [LARGE + 1, "ab", "abcd", {"a": LARGE + 1}], "maxLength": 3}, ['"ab"', '"abcd"']),
    ],
)
def test_values_hold_exactly_beside_other_keywords(
    schema: dict[str, Any], texts: list[str]
) -> None:
    grammar = from_schema(schema)
    numbers = [str(n + by) for n in (LARGE, 2**60) for by in range(5)]
    objects = [f'{{"a": {number}}}' for number in numbers if "enum" in schema]
    for text in [*texts, *numbers, *objects, "3", "1.5"]:
        valid = Draft202012Validator(schema).is_valid(json.loads(text))
        assert accepts(grammar, text) == valid, text


def test_random_bounds_hold_exactly() -> None:
    drawn = random.Random(0)
    for _ in range(50):
        kind = drawn.choice(["integer", "number"])
        schema: dict[str, Any] = {"type": kind}
        for name in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
            if drawn.random() < 0.4:
                whole = drawn.randint(-(10 ** drawn.randint(1, 25)), 10 ** drawn.randint(16, 25))
                schema[name] = whole if kind == "integer" or drawn.random() < 0.5 else float(whole)
        bounds = [int(schema[name]) for name in schema if name != "type"]
        texts = {str(b + by) for b in (*bounds, 0) for by in (-10, -1, 0, 1, 10)}
        if kind == "number":
            texts |= {f"{text}.0" for text in texts if abs(int(text)) < 2**53}
        check = Draft202012Validator(schema).is_valid
        valid = {text for text in texts if check(json.loads(text))}
        try:
            grammar = from_schema(schema)
        except SchemaError:
            assert not valid, schema
            continue
        assert {text for text in texts if accepts(grammar, text)} == valid, schema


@each_line(
    "schema, texts",
    [
        ({"exclusiveMinimum": 7.431394376659524e-10}, ["0.0000000007431394376659524", "0.1"]),
        ({"exclusiveMinimum": -925050131524955.2}, ["-925050131524955.2", "-925050131524955.1"]),
        ({"minimum": 0, "exclusiveMinimum": 0, "maximum": 0.5}, ["0", "0.0", "0.1", "0.5", "0.6"]),
        ({"exclusiveMinimum": 0, "exclusiveMaximum": 0.5}, ["0", "0.5", "0.49", "-0.1"]),
        ({"maximum": 8.44377124939775e-10, "minimum": -0.5}, ["0.0", "-0.5", "0.000000001"]),
        (
            {"exclusiveMinimum": 0, "maximum": 0.75, "multipleOf": 0.25},
            ["0", "0.25", "0.5", "0.50", "0.75", "0.3", "1", "1.25", "0.125"],
        ),
        (
            {"exclusiveMinimum": 0, "maximum": 0.5, "multipleOf": 0.01},
            ["0", "0.0", "0.01", "0.1", "0.50", "0.005", "0.51", "0.375"],
        ),
        ({"maximum": 2**63, "multipleOf": 0.5}, ["9223372036854775808", "1.5", "0.25", "-3"]),
    ],
)
def test_small_bounds_hold_exactly(schema: dict[str, Any], texts: list[str]) -> None:
    schema = {"type": "number", **schema}
    grammar = from_schema(schema)
    for text in texts:
        valid = Draft202012Validator(schema).is_valid(json.loads(text))
        assert accepts(grammar, text) == valid, text


@each_line(
    "schema, pointer",
    [
        ({"properties": {"a": {"multipleOf": 99999989}}}, "/properties/a/multipleOf"),
        ({"multipleOf": 123456.789}, "/multipleOf"),
        ({"items": {"allOf": [{"multipleOf": 65537}, {"multipleOf": 65539}]}}, "/items"),
        ('{"properties": {"a": {"minimum": -1e400}}}', "/properties/a/minimum"),
        ({"properties": {"a": {"minimum": 10**400}}}, "/properties/a/minimum"),
        ({"properties": {"a": {"multipleOf": 10**400}}}, "/properties/a/multipleOf"),
        ({"patternProperties": {"^a": {"maximum": LARGE}}}, "/patternProperties/^a"),
        ({"not": {"exclusiveMaximum": -(10**400)}}, "/not/exclusiveMaximum"),
        (
            {"properties": {"a": INT64, "b": {"type": "string"}}, "maxProperties": 1},
            "/properties/a",
        ),
    ],
)
def test_what_cannot_be_held_is_refused_by_name(schema: Any, pointer: str) -> None:
    with pytest.raises(SchemaError) as refused:
        from_schema(schema)
    assert refused.value.pointer == pointer


def test_values_beyond_every_double_hold_exactly() -> None:
    grammar = from_schema({"enum": [10**400, {"a": [-(10**400)]}]})
    assert accepts(grammar, "1" + "0" * 400)
    assert accepts(grammar, '{"a":[-1' + "0" * 400 + "]}")
    assert not accepts(grammar, "1" + "0" * 399)


def test_a_factor_that_no_automaton_holds_is_left_out_where_that_is_allowed() -> None:
    schema = {"properties": {"a": {"type": "integer", "multipleOf": 99999989}}}
    grammar = from_schema(schema, weaken=True)
    assert [one.pointer for one in grammar.weakened] == ["/properties/a/multipleOf"]
    assert accepts(grammar, '{"a": 3}')


def test_arguments_of_tools_hold_exactly() -> None:
    grammar = required_calls(WAYS["hermes-1"], {"f": {"properties": {"id": INT64}}}, {}, most=1)
    call = '<tool_call>\n{"name": "f", "arguments": {"id": %d}}\n</tool_call>'
    assert accepts(grammar, call % (LARGE - 1))
    assert not accepts(grammar, call % LARGE)


def test_bounds_hold_beside_short_texts() -> None:
    grammar = from_schema({"type": "object", "additionalProperties": INT64}, brief=True)
    assert accepts(grammar, '{"a": -5}')
