"""What a text may be: grammars, as the engine takes them.

>>> from akunu.grammar import from_lark
>>> from_lark('start: "yes" | "no"').llguidance
'{"grammars": [{"lark_grammar": "start: \\\\"yes\\\\" | \\\\"no\\\\""}]}'
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeText:
    """Text that no grammar rules, and where it ends.

    It ends behind the first of `until`, or after `most_tokens`: then `then` is written, whatever
    the model would have liked. Without either it goes on to the text's end.
    """

    until: tuple[str | tuple[int, ...], ...] = ()
    """Texts, or sequences of token ids: behind the first that appears, the grammar begins."""
    most_tokens: int | None = None
    """Tokens that the free text may have, those of `until` included; None: any number."""
    then: tuple[int, ...] = ()
    """Tokens that are written after `most_tokens`: mostly the ids of one of `until`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """What a text may be. Compiled from a schema, an expression or rules by this package."""

    llguidance: str = ""
    """llguidance's top-level grammar, a JSON object `{"grammars": [...]}`; "": none, so that the
    text stays free after `after` has ended."""
    after: FreeText | None = None
    """The free text before it; None: the grammar begins with the first token."""
    schema: str = ""
    """The JSON schema that it was made from, as JSON; "" where it was made from something else."""
    weakened: tuple[Weakened, ...] = ()
    """What of the schema it does not hold a text to: `mistakes` looks at the finished text."""


@dataclass(frozen=True, slots=True)
class Weakened:
    """An assertion of a schema that its grammar does not hold a text to."""

    pointer: str
    """JSON pointer of the assertion, from the schema's root."""
    reason: str


def from_schema(source: Any, *, weaken: bool = False, compact: bool = False) -> Grammar:
    """Return the grammar of a JSON schema; it may end after one JSON value.

    `source`: a schema as dict, bool or JSON text, a pydantic model, a dataclass, a TypedDict or
    another annotated type. What no grammar can say (most of `not`, `uniqueItems`, some of `oneOf`)
    raises SchemaError with the JSON pointer and the reason; with `weaken` it is left out and listed
    in `weakened`. `compact`: no whitespace between the parts of the text.

    >>> from_schema({"type": "array", "uniqueItems": True}, weaken=True).weakened[0].pointer
    '/uniqueItems'
    """
    from akunu.grammar.schema import compile_schema

    return compile_schema(source, weaken=weaken, compact=compact)


def from_json() -> Grammar:
    """Return the grammar of any JSON object."""
    return from_schema({"type": "object"})


def from_regex(pattern: str) -> Grammar:
    """Return the grammar of the texts that a regular expression matches as a whole.

    The syntax is that of Rust's crate `regex`, much like Python's; look arounds and references back
    raise GrammarError with their position.

    >>> from_regex("[0-9]+").llguidance
    '{"grammars": [{"lark_grammar": "start: /[0-9]+/"}]}'
    """
    from akunu.grammar.regex import compile_regex

    return compile_regex(pattern)


def from_choice(texts: Sequence[str]) -> Grammar:
    """Return the grammar of exactly these texts; one may begin with another.

    >>> from_choice(["yes", "no"]) == from_choice(["yes", "no", "yes"])
    True
    """
    from akunu.grammar.choice import compile_choice

    return compile_choice(texts)


def from_rules(text: str) -> Grammar:
    """Return the grammar of rules: llama.cpp's GBNF (`root ::= ...`) or Lark (`start: ...`).

    Raises GrammarError with line and column where the rules make no sense.

    >>> from_rules('root ::= "yes" | "no"') != from_rules('start: "yes"')
    True
    """
    from akunu.grammar.rules import compile_rules

    return compile_rules(text)


def mistakes(grammar: Grammar, text: str) -> tuple[str, ...]:
    """Return what a text does against the grammar's schema, which only a weakened one allows.

    Each is a JSON pointer into the text and what is wrong there; none for a text that fits.

    >>> grammar = from_schema({"type": "array", "uniqueItems": True}, weaken=True)
    >>> mistakes(grammar, "[1, 1]")
    ('at its root: [1, 1] has non-unique elements',)
    """
    from akunu.grammar.checking import schema_mistakes

    return schema_mistakes(grammar.schema, text)


def from_lark(text: str) -> Grammar:
    """Return the grammar of rules in llguidance's variant of Lark; nothing is checked yet."""
    return Grammar(llguidance=json.dumps({"grammars": [{"lark_grammar": text}]}))
