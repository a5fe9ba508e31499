"""What a text may be: grammars, as the engine takes them.

>>> from akunu.grammar import from_lark
>>> from_lark('start: "yes" | "no"').llguidance
'{"grammars": [{"lark_grammar": "start: \\\\"yes\\\\" | \\\\"no\\\\""}]}'
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from akunu.common.checks import MAX_UINT32, flag, integer, refusal
from akunu.errors import ArgumentError

_MOST_TOKENS = 2**31 - 1


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

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        if not isinstance(self.until, (list, tuple)):
            raise refusal("until", self.until, _UNTIL, "")
        object.__setattr__(self, "until", tuple(map(_end, self.until)))
        if self.most_tokens is not None:
            most = integer("most_tokens", self.most_tokens, 0, _MOST_TOKENS, "or None")
            object.__setattr__(self, "most_tokens", most)
        object.__setattr__(self, "then", _ids("then", self.then))
        if self.then and self.most_tokens is None:
            raise ArgumentError("then is given without most_tokens, after which it is written")


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

    def __post_init__(self) -> None:
        """Refuse what has the wrong type."""
        for name in ("llguidance", "schema"):
            if not isinstance(getattr(self, name), str):
                raise refusal(name, getattr(self, name), "a text", "")
        if self.after is not None and not isinstance(self.after, FreeText):
            raise refusal("after", self.after, "a FreeText", "or None")
        if not isinstance(self.weakened, tuple):
            raise refusal("weakened", self.weakened, "a tuple of Weakened", "")
        if not self.llguidance and self.after is None:
            raise ArgumentError("a Grammar needs rules, llguidance, or free text, after")


@dataclass(frozen=True, slots=True)
class Weakened:
    """An assertion of a schema that its grammar does not hold a text to."""

    pointer: str
    """JSON pointer of the assertion, from the schema's root."""
    reason: str


_UNTIL = "a tuple of texts and of tuples of token ids, none of them empty"


def _end(given: object) -> str | tuple[int, ...]:
    """Return what ends free text in its plain form."""
    if isinstance(given, (list, tuple)) and given:
        return _ids("until", given)
    # A lone surrogate is no text that a model could write.
    if not isinstance(given, str) or not given or any("\ud800" <= c <= "\udfff" for c in given):
        raise refusal("until", given, _UNTIL, "")
    return given


def _ids(name: str, given: object) -> tuple[int, ...]:
    if not isinstance(given, (list, tuple)):
        raise refusal(name, given, "a tuple of token ids", "")
    return tuple(integer(f"a token of {name}", each, 0, MAX_UINT32) for each in given)


def from_schema(
    source: Any, *, weaken: bool = False, compact: bool = False, brief: bool = False
) -> Grammar:
    """Return the grammar of a JSON schema; it may end after one JSON value.

    `source`: a schema as dict, bool or JSON text, a pydantic model, a dataclass, a TypedDict or
    another annotated type. What no grammar can say (most of `not`, `uniqueItems`, some of `oneOf`)
    raises SchemaError with the JSON pointer and the reason; with `weaken` it is left out and listed
    in `weakened`. `compact`: no whitespace between the parts of the text. `brief`: where the schema
    sets no bound, texts have at most 48 characters, numbers nine digits and three behind the point,
    lists and open objects three parts more than they need, and objects no properties but those that
    it names; small models need such bounds to come to an end.

    >>> from_schema({"type": "array", "uniqueItems": True}, weaken=True).weakened[0].pointer
    '/uniqueItems'
    """
    flag("weaken", weaken)
    flag("compact", compact)
    flag("brief", brief)
    from akunu.grammar.separate_process import compiled

    options = {"weaken": weaken, "compact": compact, "brief": brief}
    return compiled("schema.compile:compile_schema", source, **options)


def from_json() -> Grammar:
    """Return the grammar of any JSON object."""
    return from_schema({"type": "object"})


def from_regex(pattern: str | re.Pattern[str]) -> Grammar:
    """Return the grammar of the texts that a regular expression matches as a whole.

    The syntax is that of Rust's crate `regex`, much like Python's; look arounds and references back
    raise GrammarError with their position. `pattern`: a text, or what `re.compile` made: of its
    flags, MULTILINE and ASCII raise ArgumentError.

    >>> from_regex("[0-9]+").llguidance
    '{"grammars": [{"lark_grammar": "start: /[0-9]+/"}]}'
    """
    from akunu.grammar.separate_process import compiled

    return compiled("regex:compile_regex", pattern)


def from_choice(texts: Sequence[str]) -> Grammar:
    """Return the grammar of exactly these texts; one may begin with another.

    >>> from_choice(["yes", "no"]) == from_choice(["yes", "no", "yes"])
    True
    """
    from akunu.grammar.separate_process import compiled

    return compiled("choice:compile_choice", texts)


def from_rules(text: str) -> Grammar:
    """Return the grammar of rules: llama.cpp's GBNF (`root ::= ...`) or Lark (`start: ...`).

    Raises GrammarError with line and column where the rules make no sense.

    >>> from_rules('root ::= "yes" | "no"') != from_rules('start: "yes"')
    True
    """
    from akunu.grammar.separate_process import compiled

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
        raise ArgumentError("grammar was not made from a schema: there is nothing to look at")
    from akunu.grammar.checking import schema_mistakes

    return schema_mistakes(grammar.schema, text)


def from_lark(text: str) -> Grammar:
    """Return the grammar of rules in llguidance's variant of Lark; what it says is not checked."""
    if not isinstance(text, str):
        raise refusal("text", text, "a str", "")
    return Grammar(llguidance=json.dumps({"grammars": [{"lark_grammar": text}]}))
