"""Grammars that are written as rules: which notation it is, and what is wrong in it."""

from __future__ import annotations

import re

from akunu.errors import ArgumentError
from akunu.grammar.errors import GrammarError, lone_surrogate
from akunu.grammar.gbnf.compile import compile_gbnf
from akunu.grammar.grammar import Grammar
from akunu.grammar.lark import compile_lark


def compile_rules(text: str) -> Grammar:
    """The grammar of GBNF or Lark; `akunu.grammar.from_rules`."""
    if not isinstance(text, str) or not text.strip():
        raise ArgumentError("grammar must be a text of rules, in GBNF or Lark")
    if wrong := lone_surrogate(text):
        raise ArgumentError(f"grammar {wrong}")
    if is_gbnf(text):
        try:
            return compile_gbnf(text)
        except RecursionError as error:
            reason = "its groups are nested too deeply"
            raise GrammarError("grammar (GBNF)", reason) from error
    return compile_lark(text)


def is_gbnf(text: str) -> bool:
    """Whether the first rule is GBNF's, `name ::= ...`, rather than Lark's, `name: ...`."""
    defined = re.search(
        r"^[ \t]*[?!]?[A-Za-z0-9_-]+(?:\[[^\]\n]*\]|\.[0-9]+)?\s*(::=|:)",
        re.sub(r"(?m)^[ \t]*(#|//).*$", "", text),
        re.MULTILINE,
    )
    return defined is not None and defined[1] == "::="
