"""A grammar as the engine takes it, and the free text that may stand before it."""

from __future__ import annotations

import json
from dataclasses import dataclass

from akunu.common.checks import MAX_UINT32, integer, refusal
from akunu.errors import ArgumentError

_MOST_TOKENS = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeText:
    """Text that no grammar rules, and where it ends.

    It ends after the first of `until`, or after `most_tokens`: then `then` is written, whatever
    the model would have liked. Without either it continues to the text's end.
    """

    until: tuple[str | tuple[int, ...], ...] = ()
    """Texts, or sequences of token ids: after the first that appears, the grammar begins."""
    most_tokens: int | None = None
    """Tokens that the free text may have, those of `until` included; None: any number."""
    then: tuple[int, ...] = ()
    """Tokens that are written after `most_tokens`: mostly the ids of one of `until`."""

    def __post_init__(self) -> None:
        """Raise ArgumentError for values that make no sense."""
        if not isinstance(self.until, (list, tuple)):
            raise refusal("until", self.until, _UNTIL, "")
        object.__setattr__(self, "until", tuple(map(_end, self.until)))
        if self.most_tokens is not None:
            most = integer("most_tokens", self.most_tokens, 0, _MOST_TOKENS, "or None")
            object.__setattr__(self, "most_tokens", most)
        object.__setattr__(self, "then", _ids("then", self.then))
        if self.then and self.most_tokens is None:
            raise ArgumentError("then is set; it needs most_tokens")


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
        """Raise ArgumentError for values of the wrong type."""
        for name in ("llguidance", "schema"):
            if not isinstance(getattr(self, name), str):
                raise refusal(name, getattr(self, name), "a text", "")
        if self.after is not None and not isinstance(self.after, FreeText):
            raise refusal("after", self.after, "a FreeText", "or None")
        if not isinstance(self.weakened, tuple):
            raise refusal("weakened", self.weakened, "a tuple of Weakened", "")
        if not self.llguidance and self.after is None:
            raise ArgumentError("a Grammar needs llguidance (rules) or after (free text)")


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
    # A lone surrogate is not text that a model could write.
    if not isinstance(given, str) or not given or any("\ud800" <= c <= "\udfff" for c in given):
        raise refusal("until", given, _UNTIL, "")
    return given


def _ids(name: str, given: object) -> tuple[int, ...]:
    if not isinstance(given, (list, tuple)):
        raise refusal(name, given, "a tuple of token ids", "")
    return tuple(integer(f"a token of {name}", each, 0, MAX_UINT32) for each in given)


def from_lark(text: str) -> Grammar:
    """Return the grammar of rules in llguidance's variant of Lark; what it says is not checked."""
    if not isinstance(text, str):
        raise refusal("text", text, "a str", "")
    return Grammar(llguidance=json.dumps({"grammars": [{"lark_grammar": text}]}))
