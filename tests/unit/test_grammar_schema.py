"""JSON schemas as grammars: what is compiled, refused and weakened."""

from __future__ import annotations

import dataclasses
import enum
import itertools
import json
import re
from typing import Annotated, Any, Literal, TypedDict

import pytest
from grammar_support import accepts
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator, Draft202012Validator

import akunu
from akunu.grammar import Grammar, from_json, from_schema, mistakes
from akunu.grammar.errors import SchemaError
from lines import each_line

VALUES: list[Any] = [
    *(None, True, False, 0, 1, 5, -3, 2.5, 7, "", "a", "b", "ab", "abc", "é\n"),
    *([], [1], [1, 2], [1, 1], ["a"], ["a", "b"], [[1]], [None, "a", 3]),
    *({}, {"a": 1}, {"b": "x"}, {"a": 1, "b": "x"}, {"a": "x", "b": 1}, {"a": 1, "c": 2}),
    *({"a": {"a": 5}}, {"a": 5, "b": 5, "c": 5}, {"c": None}, {"b": 1, "c": 2}, {"a": None}),
]


def agrees(schema: Any, validator: Any = Draft202012Validator) -> None:
    """The grammar accepts each value, in any order of its properties, as the validator does."""
    if not any(validator(schema).is_valid(value) for value in VALUES):
        with pytest.raises(SchemaError, match="nothing fits"):
            from_schema(schema)
        return
    grammar = from_schema(schema)
    assert grammar.weakened == ()
    for value in VALUES:
        orders = [value]
        if isinstance(value, dict):
            orders = [dict(items) for items in itertools.permutations(value.items())]
        found = any(accepts(grammar, json.dumps(order, ensure_ascii=False)) for order in orders)
        assert found == validator(schema).is_valid(value), value


@each_line(
    "schema",
    [
        {"not": {"type": "string"}},
        {"not": {"type": ["number", "object"]}},
        {"not": {"const": "ab"}},
        {"not": {"enum": ["a", "ab", "", 1, None, True]}},
        {"not": {"enum": [0, 2.5, 5]}},
        {"not": {"const": [1, 2]}},
        {"not": {"const": {"a": 1, "b": "x"}}},
        {"not": {"const": {}}},
        {"not": {"required": ["a", "b"]}},
        {"not": {"properties": {"a": {"type": "string"}}}},
        {"not": {"minimum": 1, "maximum": 5}},
        {"not": {"exclusiveMinimum": 1}},
        {"not": {"minLength": 1}},
        {"not": {"maxLength": 1, "type": "string"}},
        {"not": {"minItems": 1, "maxItems": 1}},
        {"not": {"anyOf": [{"type": "object"}, {"required": ["a"]}, {"type": "array"}]}},
        {"not": {"allOf": [{"required": ["a"]}, {"required": ["b"]}]}},
        {"not": {"not": {"type": "array", "minItems": 1}}},
        {"not": {"prefixItems": [{"type": "string"}]}},
        {"not": {"contains": {"type": "number"}}},
        {"not": {"items": {"type": "string"}, "maxItems": 2}},
        {"not": {"required": ["a"], "properties": {"a": True}, "additionalProperties": False}},
        {"not": {"properties": {"a": {}, "b": {}}, "additionalProperties": False}},
        {"not": {"propertyNames": {"not": {"const": "a"}}}},
        {"not": {"if": {"type": "object"}, "then": {"required": ["a"]}}},
        {"not": {"oneOf": [{"type": "string"}, {"minLength": 2}, {"required": ["a"]}]}},
        {"not": {"pattern": "^(a|ab)$"}},
        {"pattern": "^(?!ab|\\.)[ab]*", "allOf": [{"maxLength": 2}]},
        {"not": {}},
        {"if": {"properties": {"a": {"const": 1}}}, "then": {"required": ["b"]}},
        {"if": {"type": "string"}, "then": {"minLength": 1}, "else": {"type": "array"}},
        {"if": {"required": ["a"]}, "else": {"type": "number"}},
        {"dependentRequired": {"a": ["b"], "c": ["a"]}},
        {"dependentSchemas": {"a": {"properties": {"b": {"type": "string"}}}, "c": False}},
        {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"oneOf": [{"type": "number"}, {"minimum": 2}, {"type": "string"}]},
        {"oneOf": [{"type": "integer", "maximum": 1}, {"type": "integer", "minimum": 1}]},
        {"oneOf": [{"minLength": 1}, {"maxLength": 1}, {"required": ["a"]}]},
        {"contains": {"type": "string"}, "maxItems": 3},
        {"contains": {"const": 1}, "minContains": 2, "maxItems": 2},
        {"contains": True},
        {"uniqueItems": True, "items": {"enum": [1, 2, "a"]}},
        {"uniqueItems": True, "maxItems": 1},
        {"propertyNames": {"enum": ["a", "b"]}},
        {"propertyNames": {"pattern": "^[ab]$"}},
        {"propertyNames": {"minLength": 2}},
        {"propertyNames": {"not": {"const": "a"}}, "properties": {"b": {"type": "string"}}},
        {"propertyNames": False},
        {"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False},
        {"prefixItems": [{"type": "number"}], "unevaluatedItems": {"type": "string"}},
        {"enum": []},
        {"const": None},
        True,
        False,
    ],
    ids=lambda schema: json.dumps(schema)[:70],
)
def test_a_rewritten_schema_accepts_what_jsonschema_finds_valid(schema: Any) -> None:
    agrees(schema)


def test_older_drafts_mean_what_they_meant() -> None:
    agrees({"dependencies": {"a": ["b"], "b": {"required": ["a"]}}}, Draft7Validator)
    agrees(
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "definitions": {"text": {"type": "string"}},
            "properties": {"b": {"$ref": "#/definitions/text", "maxLength": 0}},
            "items": [{"type": "number"}],
            "additionalItems": {"type": "string"},
        },
        Draft7Validator,
    )
    fourth = from_schema({"type": "integer", "minimum": 2, "exclusiveMinimum": True})
    assert [n for n in range(5) if accepts(fourth, str(n))] == [3, 4]


def test_references_lead_through_ids_anchors_and_recursion() -> None:
    grammar = from_schema(
        {
            "$id": "https://example.com/tree",
            "$ref": "#node",
            "$defs": {
                "node": {
                    "$anchor": "node",
                    "type": "object",
                    "properties": {"left": {"$ref": "/tree"}, "leaf": {"$ref": "leaf"}},
                    "additionalProperties": False,
                },
                "leaf": {"$id": "leaf", "$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}},
            },
        }
    )
    assert accepts(grammar, '{"left": {"left": {}, "leaf": 3}, "leaf": 4}')
    assert not accepts(grammar, '{"left": {"left": 3}}')


def test_the_opposite_of_a_recursive_schema_is_recursive() -> None:
    tree = {"properties": {"a": {"$ref": "#/$defs/tree"}}, "required": ["a"], "type": "object"}
    grammar = from_schema({"not": {"$ref": "#/$defs/tree"}, "$defs": {"tree": tree}})
    assert accepts(grammar, '{"a": {"a": {"a": 1}}}')  # no tree ends, so that none is finite


@each_line(
    ("schema", "pointer", "reason"),
    [
        ({"type": "array", "uniqueItems": True}, "/uniqueItems", "earlier ones"),
        (
            {"properties": {"a/b": {"not": {"multipleOf": 2}}}},
            "/properties/a~1b/not/multipleOf",
            "opposite",
        ),
        ({"items": {"pattern": "^((?=x)y)*"}}, "/items/pattern", "lookaround .* at character 3"),
        ({"items": {"pattern": "a\\b"}}, "/items/pattern", "word boundary at character 2"),
        ({"items": {"pattern": "a" * 50_001}}, "/items/pattern", "50001 characters .at most"),
        ({"items": {"pattern": "(a)\\1"}}, "/items/pattern", "backreference at character 4"),
        ({"items": {"pattern": "a("}}, "/items/pattern", "unclosed group at character 2"),
        ({"items": {"type": "text"}}, "/items/type", '"text" is not a type'),
        ({"$ref": "#/nowhere"}, "/$ref", "is not in this schema"),
        ({"$ref": "https://example.com/other"}, "/$ref", "not fetched"),
        (
            {"anyOf": [{"contains": {"type": "null"}}]},
            "/anyOf/0/contains",
            "at any position",
        ),
        ({"oneOf": [{"pattern": "a"}, {"pattern": "b"}]}, "/oneOf", "alternatives 0 and 1"),
        ({"required": "a"}, "/required", "a list of names"),
        ({"minLength": -1}, "/minLength", "0 or more"),
        ({"properties": {"a": 3}}, "/properties/a", "an object or a boolean"),
        ({"items": {"enum": ["a", "\ud800"]}}, "/items/enum/1", "lone surrogate"),
        ({"const": float("nan")}, "", "not JSON"),
        ({"items": {"format": "regex", "type": "string"}}, "/items/format", "format regex"),
        (
            {"a": 1, "type": "object", "required": ["x"], "properties": {"x": False}},
            "",
            "nothing fits",
        ),
    ],
    ids=lambda value: json.dumps(value)[:50],
)
def test_what_no_grammar_says_is_refused_with_its_place(
    schema: Any, pointer: str, reason: str
) -> None:
    with pytest.raises(SchemaError, match=reason) as caught:
        from_schema(schema)
    assert caught.value.pointer == pointer
    assert isinstance(caught.value, akunu.ArgumentError)
    assert (pointer or "at its root") in str(caught.value)


def test_a_weakened_grammar_lists_what_it_leaves_out_and_its_texts_are_looked_at() -> None:
    schema = {
        "type": "array",
        "items": {"type": "integer", "not": {"multipleOf": 2}},
        "uniqueItems": True,
    }
    grammar = from_schema(schema, weaken=True)
    assert {one.pointer for one in grammar.weakened} == {"/uniqueItems", "/items/not/multipleOf"}
    assert accepts(grammar, "[2, 2]")
    assert not accepts(grammar, '["a"]')
    assert mistakes(grammar, "[1, 3]") == ()
    assert len(mistakes(grammar, "[2, 2]")) == 3
    assert "not JSON" in mistakes(grammar, "[1,")[0]


def test_weakening_leaves_an_assertion_out_only_where_that_accepts_more() -> None:
    grammar = from_schema({"not": {"uniqueItems": True, "type": "array"}}, weaken=True)
    assert accepts(grammar, "[1, 1]")
    condition = {"if": {"pattern": "a"}, "then": {"maxLength": 3}, "else": {"maxLength": 5}}
    grammar = from_schema({"type": "string", **condition}, weaken=True)
    assert accepts(grammar, '"abc"')
    assert accepts(grammar, '"bbbbb"')
    assert not accepts(grammar, '"bbbbbb"')


@each_line(
    "pattern, fits, others",
    [
        (r"^[^[]*$", ["", "a]"], ["["]),
        (r"^[[:alpha:]]$", ["a]", ":]"], ["b", "a"]),
        # Behind what may be empty a text may still be at its beginning.
        (r"^b*(?!^)a?$", ["b", "bba"], ["", "a"]),
        (r"^(?:a?b?)*(?!^|c).?$", ["a", "abba", "abx"], ["", "c", "x"]),
        # What pydantic writes for a Decimal, alone and with digits that are counted.
        (r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$", ["1.5", "-007", ".5", "3."], ["", ".", "-", "1.2.3"]),
        (
            r"^(?!^[-+.]*$)[+-]?0*\d*\.?\d{0,2}0*$",
            ["1.25", "10", "1.2500", "+.5"],
            ["1.255", "+", "a"],
        ),
    ],
)
def test_patterns_are_those_of_ecmascript(pattern: str, fits: list[str], others: list[str]) -> None:
    grammar = from_schema({"type": "string", "pattern": pattern})
    names = from_schema({"type": "object", "patternProperties": {pattern: {"const": 1}}})
    for text in fits:
        assert accepts(grammar, json.dumps(text)), text
        assert not accepts(names, json.dumps({text: 2})), text
    for text in others:
        assert not accepts(grammar, json.dumps(text)), text
        assert accepts(names, json.dumps({text: 2})), text


def test_patterns_are_left_out_with_what_depends_on_them() -> None:
    schema = {"patternProperties": {r"\bx": {"type": "null"}}, "additionalProperties": False}
    grammar = from_schema({"type": "object", **schema}, weaken=True)
    assert [one.pointer for one in grammar.weakened] == [r"/patternProperties/\bx"]
    assert accepts(grammar, '{"x": null}')
    assert accepts(from_schema({"type": "string", "pattern": r"\bx"}, weaken=True), '"y"')


def test_whitespace_is_a_space_or_a_line_with_its_indentation() -> None:
    grammar = from_schema({"type": "array"})
    assert accepts(grammar, json.dumps([1, [2]]))
    assert accepts(grammar, json.dumps([1, [2]], indent=4))
    assert not accepts(grammar, "[1,  2]")
    compact = from_schema({"type": "array"}, compact=True)
    assert accepts(compact, "[1,[2]]")
    assert not accepts(compact, "[1, [2]]")


def test_json_is_any_object() -> None:
    assert accepts(from_json(), '{"a": [1, {"b": null}]}')
    assert not accepts(from_json(), "[]")


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Leaf:
    colour: Colour
    size: Annotated[int, {"minimum": 1}] = 1


@dataclasses.dataclass
class Tree:
    """A tree."""

    kind: Literal["tree"]
    leaves: list[Leaf]
    children: list[Tree] | None = None
    notes: dict[str, float] = dataclasses.field(default_factory=dict)
    place: tuple[int, int] = (0, 0)


class Movie(TypedDict, total=False):
    title: str
    year: int


def test_dataclasses_and_typed_dicts_are_schemas() -> None:
    grammar = from_schema(Tree)
    full = (
        '{"kind": "tree", "leaves": [{"colour": "red"}], "children": [{"kind": "tree", '
        '"leaves": []}], "notes": {"a": 1.5}, "place": [1, 2]}'
    )
    assert accepts(grammar, full)
    assert accepts(grammar, '{"kind": "tree", "leaves": [{"colour": "blue", "size": 2}]}')
    assert not accepts(grammar, '{"kind": "tree", "leaves": [{"colour": "blue", "size": 0}]}')
    assert not accepts(grammar, '{"kind": "tree"}')
    assert accepts(from_schema(Movie), '{"year": 1999}')
    assert accepts(from_schema(list[int]), "[1]")
    with pytest.raises(akunu.ArgumentError, match="no JSON schema is known"):
        from_schema(re.Match)
    with pytest.raises(akunu.ArgumentError, match="schema must be"):
        from_schema(3)


def test_pydantic_models_are_schemas() -> None:
    pydantic = pytest.importorskip("pydantic", reason="pydantic is not installed")

    class User(pydantic.BaseModel):  # type: ignore[name-defined, misc]
        name: str = pydantic.Field(min_length=1)
        age: int | None = None

    grammar = from_schema(User)
    assert accepts(grammar, '{"name": "Ada", "age": null}')
    assert not accepts(grammar, '{"name": ""}')


def test_a_schema_may_be_a_text() -> None:
    assert accepts(from_schema('{"type": "null"}'), "null")
    for text, reason in (
        ("{", "not JSON"),
        ('{"const": NaN}', "not JSON: it has the number NaN"),
        ("[]", "an object, true or false is expected, not \\[\\]"),
        ("null", "is expected, not null"),
    ):
        with pytest.raises(SchemaError, match=reason):
            from_schema(text)


def test_a_schema_of_thousands_of_levels_is_refused() -> None:
    schema: dict[str, Any] = {}
    for _ in range(3000):
        schema = {"properties": {"a": schema}}
    with pytest.raises(SchemaError, match="too deep"):
        from_schema(schema)


_words = st.text(alphabet="ab\n", max_size=3)


@given(st.lists(_words, max_size=4), _words)
def test_the_opposite_of_words_is_every_other_word(words: list[str], word: str) -> None:
    schema = {"type": "string", "not": {"enum": words}}
    grammar = from_schema(schema)
    assert accepts(grammar, json.dumps(word, ensure_ascii=False)) == (word not in words)
    assert isinstance(grammar, Grammar)
