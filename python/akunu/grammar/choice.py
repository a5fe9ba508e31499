"""One of several texts, as a grammar."""

from __future__ import annotations

import json
from collections.abc import Sequence

from akunu.errors import ArgumentError
from akunu.grammar import Grammar, from_lark


def compile_choice(texts: Sequence[str]) -> Grammar:
    """The grammar of exactly these texts; `akunu.grammar.from_choice`."""
    if isinstance(texts, str):
        raise ArgumentError("choice must be a list of texts, not one text")
    chosen = list(dict.fromkeys(texts))
    if not chosen:
        raise ArgumentError("choice must have at least one text")
    for text in chosen:
        if not isinstance(text, str):
            raise ArgumentError(f"choice must be a list of texts; {text!r} is none")
    return from_lark("start: " + " | ".join(map(_literal, chosen)))


def _literal(text: str) -> str:
    """A text in Lark's notation: a JSON text, whose escapes Lark has too."""
    return json.dumps(text, ensure_ascii=False)
