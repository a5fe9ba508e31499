"""Regular expressions as grammars."""

from __future__ import annotations

import re

from akunu.errors import ArgumentError
from akunu.grammar import Grammar, from_lark
from akunu.grammar.errors import GrammarError, lone_surrogate
from akunu.grammar.schema_patterns import unsupported


def compile_regex(pattern: str) -> Grammar:
    """The grammar of what a pattern matches as a whole; `akunu.grammar.from_regex`."""
    from llguidance import LLMatcher

    if not isinstance(pattern, str):
        raise ArgumentError(f"regex must be a text, not {pattern!r}")
    if wrong := lone_surrogate(pattern):
        raise ArgumentError(f"regex {wrong}")
    if found := unsupported(pattern):
        position, what = found
        raise _error(pattern, position, f"{what} is nothing that a grammar can have")
    # Within one rule a "/" ends the expression, so that it is escaped; a line's end is written \n.
    grammar = from_lark(f"start: /{_within_slashes(pattern)}/" if pattern else 'start: ""')
    if error := LLMatcher.validate_grammar(grammar.llguidance, None):
        lines = [line.strip() for line in error.splitlines() if line.strip()]
        if "lookarounds not supported" in lines[0]:  # without a position
            found_at = re.search(r"\\[bB]|(?<!^)\^|\$(?!$)", pattern)
            position = found_at.start() if found_at else 0
            reason = "a boundary (of a word, or ^ or $ inside) is nothing that a grammar can have"
            raise _error(pattern, position, reason)
        marks = [line for line in error.splitlines() if line.strip() and set(line) <= {" ", "^"}]
        position = max(marks[0].index("^") - 4, 0) if marks else 0
        reasons = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
        raise _error(pattern, position, reasons[0] if reasons else lines[0])
    return grammar


def _within_slashes(pattern: str) -> str:
    written, escaped = "", False
    for char in pattern:
        if char == "/" and not escaped:
            written += "\\/"
        elif char == "\n":
            written += "n" if escaped else "\\n"
        else:
            written += char
        escaped = char == "\\" and not escaped
    return written


def _error(pattern: str, position: int, reason: str) -> GrammarError:
    before = pattern[:position]
    line = before.count("\n") + 1
    return GrammarError("regex", reason, line, position - (before.rfind("\n") + 1) + 1)
