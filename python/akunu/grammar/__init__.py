"""What a text may be: grammars, as the engine takes them.

>>> from akunu.grammar import from_lark
>>> from_lark('start: "yes" | "no"').llguidance
'{"grammars": [{"lark_grammar": "start: \\\\"yes\\\\" | \\\\"no\\\\""}]}'
"""

from __future__ import annotations

import json
from dataclasses import dataclass


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


def from_lark(text: str) -> Grammar:
    """Return the grammar of rules in llguidance's variant of Lark; nothing is checked yet."""
    return Grammar(llguidance=json.dumps({"grammars": [{"lark_grammar": text}]}))
