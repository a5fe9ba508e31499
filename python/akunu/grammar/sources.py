"""Grammars of what people write: schemas, regular expressions, choices, rules."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from akunu.common.checks import flag, refusal
from akunu.errors import ArgumentError
from akunu.grammar.checking import schema_mistakes
from akunu.grammar.grammar import Grammar
from akunu.grammar.separate_process import compiled


def from_schema(
    source: Any, *, weaken: bool = False, compact: bool = False, brief: bool = False
) -> Grammar:
    """Return the grammar of a JSON schema; it may end after one JSON value.

    `source`: a schema as dict, bool or JSON text, a pydantic model, a dataclass, a TypedDict or
    another annotated type. What no grammar can say (most of `not`, `uniqueItems`, some of `oneOf`)
    raises SchemaError with the JSON pointer and the reason; with `weaken` it is left out and listed
    in `weakened`. `compact`: no whitespace between the parts of the text. `brief`: where the schema
    sets no bound, texts have at most 48 characters, numbers nine digits and three after the point,
    lists and open objects three parts more than they need, and objects no properties but those that
    it names; small models need such bounds to come to an end.

    >>> from_schema({"type": "array", "uniqueItems": True}, weaken=True).weakened[0].pointer
    '/uniqueItems'
    """
    flag("weaken", weaken)
    flag("compact", compact)
    flag("brief", brief)
    options = {"weaken": weaken, "compact": compact, "brief": brief}
    return compiled("schema.compile:compile_schema", source, **options)


def from_json() -> Grammar:
    """Return the grammar of any JSON object."""
    return from_schema({"type": "object"})


def from_regex(pattern: str | re.Pattern[str]) -> Grammar:
    """Return the grammar of the texts that a regular expression matches as a whole.

    The syntax is that of Rust's crate `regex`, much like Python's. Lookarounds and backreferences
    raise GrammarError with their position. `pattern`: a text, or the result of `re.compile`, whose
    flags MULTILINE and ASCII raise ArgumentError.

    >>> from_regex("[0-9]+").llguidance
    '{"grammars": [{"lark_grammar": "start: /[0-9]+/"}]}'
    """
    return compiled("regex:compile_regex", pattern)


def from_choice(texts: Sequence[str]) -> Grammar:
    """Return the grammar of exactly these texts; one may begin with another.

    >>> from_choice(["yes", "no"]) == from_choice(["yes", "no", "yes"])
    True
    """
    return compiled("choice:compile_choice", texts)


def from_rules(text: str) -> Grammar:
    """Return the grammar of rules: llama.cpp's GBNF (`root ::= ...`) or Lark (`start: ...`).

    Raises GrammarError with line and column where the rules make no sense.

    >>> from_rules('root ::= "yes" | "no"') != from_rules('start: "yes"')
    True
    """
    return compiled("rules:compile_rules", text)


def mistakes(grammar: Grammar, text: str) -> tuple[str, ...]:
    """Return what a text does against the grammar's schema, which only a weakened one allows.

    Each is a JSON pointer into the text and what is wrong there; none for a text that fits. Raises
    ArgumentError for a grammar that was not made from a schema, and AkunuError where the package
    jsonschema cannot look at the schema.

    >>> grammar = from_schema({"type": "array", "uniqueItems": True}, weaken=True)
    >>> mistakes(grammar, "[1, 1]")
    ('at its root: [1, 1] has non-unique elements',)
    """
    if not isinstance(grammar, Grammar):
        raise refusal("grammar", grammar, "a Grammar that from_schema made", "")
    if not isinstance(text, str):
        raise refusal("text", text, "a str", "")
    if not grammar.schema:
        raise ArgumentError("grammar was not made from a schema: there is no schema to check")
    return schema_mistakes(grammar.schema, text)
