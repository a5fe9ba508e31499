"""What no text fits, and what could go on in too many ways, is refused before it is generated."""

from __future__ import annotations

from typing import Any

import pytest
from grammar_support import accepts

from akunu.grammar import from_choice, from_regex, from_rules, from_schema
from akunu.grammar.errors import GrammarError, SchemaError
from lines import each_line

ENDLESS: dict[str, Any] = {
    "type": "object",
    "properties": {"again": {"$ref": "#/$defs/endless"}},
    "required": ["again"],
}
WITHOUT_END = "another one like itself"


def numbered(n: int) -> dict[str, Any]:
    names = {f"p{i}": {"type": "integer"} for i in range(n)}
    return {"type": "object", "properties": names, "additionalProperties": False}


@each_line(
    ("schema", "pointer", "reason"),
    [
        ({"$ref": "#"}, "/$ref", WITHOUT_END),
        (
            {
                "$ref": "#/$defs/a",
                "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
            },
            "/$ref/$ref",
            WITHOUT_END,
        ),
        (
            {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
            "/properties/a/$ref",
            WITHOUT_END,
        ),
        ({"type": "array", "items": {"$ref": "#"}, "minItems": 1}, "/items/$ref", WITHOUT_END),
        (
            {"type": "array", "prefixItems": [{"type": "null"}, {"$ref": "#"}], "minItems": 2},
            "/prefixItems/1/$ref",
            WITHOUT_END,
        ),
        (
            {
                "allOf": [
                    {"properties": {"a": {"$ref": "#"}}, "type": "object"},
                    {"required": ["a"]},
                ]
            },
            "/allOf/0/properties/a/$ref",
            WITHOUT_END,
        ),
        ({"anyOf": [{"$ref": "#"}, False]}, "/anyOf/0/$ref", WITHOUT_END),
        (False, "", "nothing fits it"),
        ({"enum": []}, "", "nothing fits it"),
        ({"not": {}}, "", "nothing fits it"),
        ({"type": "string", "pattern": r"[^\s\S]"}, "", "nothing fits it"),
        ({"type": "integer", "minimum": 3, "maximum": 2}, "", "nothing fits it"),
        ({"type": "integer", "minimum": 0.2, "maximum": 0.3}, "", "nothing fits it"),
        ({"type": "string", "minLength": 3, "maxLength": 2}, "", "nothing fits it"),
        ({"type": "array", "minItems": 3, "maxItems": 2}, "", "nothing fits it"),
        ({"const": 3, "type": "string"}, "", "nothing fits it"),
        ({"type": "object", "properties": {"a": False}, "required": ["a"]}, "", "nothing fits it"),
    ],
)
def test_a_schema_that_no_text_fits_is_refused(schema: Any, pointer: str, reason: str) -> None:
    with pytest.raises(SchemaError) as refused:
        from_schema(schema)
    assert reason in refused.value.reason
    assert refused.value.pointer == pointer


@each_line(
    ("schema", "fits", "not_allowed"),
    [
        ({"type": "array", "items": {"$ref": "#"}}, "[[], [[]]]", "[1]"),
        (
            {
                "type": "object",
                "properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
                "required": ["next"],
            },
            '{"next": {"next": null}}',
            '{"next": {}}',
        ),
        # The endless part is optional, or one of two: it is left out.
        (
            {"type": "object", "properties": {"a": {"$ref": "#/$defs/endless"}, "b": {}}},
            '{"b": 1}',
            '{"a"',
        ),
        ({"anyOf": [{"$ref": "#/$defs/endless"}, {"type": "null"}]}, "null", "{"),
        ({"type": "array", "items": {"$ref": "#/$defs/endless"}}, "[]", "[{"),
        # Only objects without an end are endless.
        ({"properties": {"a": {"$ref": "#"}}, "required": ["a"]}, '{"a": {"a": 1}}', "{}"),
    ],
)
def test_what_can_end_in_another_way_is_compiled_without_its_endless_parts(
    schema: Any, fits: str, not_allowed: str
) -> None:
    from llguidance import LLMatcher, LLTokenizer

    grammar = from_schema({**schema, "$defs": {"endless": ENDLESS}})
    assert accepts(grammar, fits)
    tokenizer = LLTokenizer("byte")
    tokens = tokenizer.tokenize_str(not_allowed)
    matcher = LLMatcher(tokenizer, grammar.llguidance, log_level=0)
    assert matcher.try_consume_tokens(tokens) < len(tokens)


@each_line("pattern", [r"[^\s\S]", r"a[^\s\S]b", r"(x|y)[^\s\S]+", r"[a&&b]"])
def test_an_expression_that_matches_nothing_is_refused(pattern: str) -> None:
    with pytest.raises(GrammarError, match="no text fits it"):
        from_regex(pattern)
    assert accepts(from_regex(f"z|{pattern}"), "z")


@each_line(
    ("rules", "line", "column", "reason"),
    [
        ('start: "a" start', 1, 1, "no text ever ends the rule start"),
        ("start: start", 1, 1, "no text ever ends the rule start"),
        ('start: "a" | x\nx: "b" x', 2, 1, "no text ever ends the rule x"),
        ('start: x? "a"\n\n?x[capture]: ("b" x)+', 3, 1, "no text ever ends the rule x"),
        ('start: x y\nx: "b" y -> z\ny: ["a"] x', 1, 1, "no text ever ends the rule start"),
        ('start: "a" X\nX: /[^\\s\\S]/', 2, 1, "no text fits X"),
        ("start: A\nA: B & /a+/\n// nothing is both\nB: /b+/", 2, 1, "no text fits A"),
        ('start: "a" /[^\\s\\S]/ | "b"', 1, 12, r"no text fits /[^\s\S]/"),
        ('start: "b" | x\nx: A "a"\nA: /b/ & /c/', 3, 1, "no text fits A"),
    ],
)
def test_lark_that_no_text_ends_is_refused_with_its_place(
    rules: str, line: int, column: int, reason: str
) -> None:
    with pytest.raises(GrammarError) as refused:
        from_rules(rules)
    assert refused.value.reason == reason
    assert (refused.value.line, refused.value.column) == (line, column)


@each_line(
    ("rules", "text"),
    [
        ('start: "a" start | "b"', "aab"),
        ('start: "a" [start] "c"', "aacc"),
        ('start: "a" start? "c"', "aacc"),
        ('start: "a"~2..3 x{1,2}\nx: "[" start* "]" // one { and one "\n', "aa[]"),
        ('start: x\nx: "é"i | %json {"type": "null"}\n  | "a".."c" x', "abnull"),
        ("start: X\nX: /a+/ & ~/aa/ // not two\n%ignore /[ \\t]+/", "aaa"),
        ('start: "a" | A // an alternative that is never there\nA: /b/ & /c/', "a"),
        ('%llguidance {"no_forcing": true}\nstart: "a" | <[1-3]> start', "a"),
        ('!start: x\n?x: _y\n_y: "(" start ")" | ""', "(())"),
    ],
)
def test_lark_that_can_end_is_compiled(rules: str, text: str) -> None:
    assert accepts(from_rules(rules), text)


def test_objects_with_hundreds_of_optional_properties_are_followed() -> None:
    assert accepts(from_schema(numbered(600)), '{"p0": 1, "p599": 2}')
    assert accepts(from_schema({"type": "array", "items": numbered(600)}), '[{"p598": 1}, {}]')


def test_rules_with_thousands_of_alternatives_are_followed() -> None:
    words = " | ".join(f'"w{i}" more' for i in range(2500))
    assert accepts(from_rules(f'root ::= {words}\nmore ::= "x" more | "y"'), "w2499xxy")


def test_more_than_can_be_followed_is_refused_with_its_place() -> None:
    with pytest.raises(SchemaError, match="the limit is 10000") as wide:
        from_schema({"type": "object", "properties": {"deep": numbered(2600)}})
    assert wide.value.pointer == "/properties/deep"
    words = [f'"w{i}" more' for i in range(10_001)]
    with pytest.raises(GrammarError, match="root has 10001 alternatives; 10000 can be followed"):
        from_rules(f'root ::= {" | ".join(words)}\nmore ::= "x" more | "y"')
    with pytest.raises(GrammarError, match=r"line 2.*words has 10001 alternatives"):
        from_rules(f'start: "a" words\nwords: {" | ".join(words)}\nmore: "x" more | "y"')
    assert accepts(from_choice([f"w{i}" for i in range(10_001)]), "w10000")
