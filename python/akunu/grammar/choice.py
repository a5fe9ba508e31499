"""One of several texts, as a grammar."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from akunu.errors import ArgumentError
from akunu.grammar.errors import lone_surrogate
from akunu.grammar.grammar import Grammar, from_lark


def compile_choice(texts: Sequence[str]) -> Grammar:
    """The grammar of exactly these texts; `akunu.grammar.from_choice`."""
    if isinstance(texts, str):
        raise ArgumentError("choice must be a list of texts, not one text")
    if not isinstance(texts, Iterable) or isinstance(texts, (bytes, Mapping)):
        raise ArgumentError(f"choice must be a list of texts, not {texts!r:.80}")
    chosen = list(texts)
    if not chosen:
        raise ArgumentError("choice must have at least one text")
    for text in chosen:
        if not isinstance(text, str):
            raise ArgumentError(f"choice must be a list of texts; {text!r} is not a text")
        if wrong := lone_surrogate(text):
            raise ArgumentError(f"choice: {text!r:.80} {wrong}")
    # One lexeme, not a rule: llguidance follows at most 2000 alternatives of a rule.
    lexeme = " | ".join(_literal(text) for text in dict.fromkeys(chosen) if text)
    nothing = ['""'] if "" in chosen else []
    if not lexeme:
        return from_lark('start: ""')
    return from_lark("start: " + " | ".join([*nothing, "TEXT"]) + f"\nTEXT: {lexeme}")


def _literal(text: str) -> str:
    """A text in Lark's notation: a JSON text, whose escapes Lark has too."""
    return json.dumps(text, ensure_ascii=False)
