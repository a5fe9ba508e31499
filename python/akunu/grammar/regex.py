"""Regular expressions as grammars."""

from __future__ import annotations

import re
from typing import Any

from akunu.errors import ArgumentError
from akunu.grammar.ecma.translation import MOST_CHARACTERS
from akunu.grammar.errors import GrammarError, lone_surrogate
from akunu.grammar.grammar import Grammar, from_lark
from akunu.grammar.limits import why_none_begins


def compile_regex(pattern: str | re.Pattern[str]) -> Grammar:
    """The grammar of what a pattern matches as a whole; `akunu.grammar.from_regex`."""
    from llguidance import LLMatcher

    if isinstance(pattern, re.Pattern):
        pattern = _text_of(pattern)
    if not isinstance(pattern, str):
        raise ArgumentError(f"regex must be a text, not {pattern!r}")
    if wrong := lone_surrogate(pattern):
        raise ArgumentError(f"regex {wrong}")
    if len(pattern) > MOST_CHARACTERS:
        reason = f"it has {len(pattern)} characters; at most {MOST_CHARACTERS} are allowed"
        raise GrammarError("regex", reason)
    if found := _unsupported(pattern):
        position, what = found
        raise _error(pattern, position, f"a grammar cannot express {what}")
    # Within one rule a "/" ends the expression, so that it is escaped; a line's end is written \n.
    grammar = from_lark(f"start: /{_within_slashes(pattern)}/" if pattern else 'start: ""')
    if error := LLMatcher.validate_grammar(grammar.llguidance, None):
        lines = [line.strip() for line in error.splitlines() if line.strip()]
        if "lookarounds not supported" in lines[0]:  # without a position
            found_at = re.search(r"\\[bB]|(?<!^)\^|\$(?!$)", pattern)
            position = found_at.start() if found_at else 0
            reason = "a grammar cannot express a boundary (of a word, or ^ or $ inside)"
            raise _error(pattern, position, reason)
        marks = [line for line in error.splitlines() if line.strip() and set(line) <= {" ", "^"}]
        position = max(marks[0].index("^") - 4, 0) if marks else 0
        reasons = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
        raise _error(pattern, position, reasons[0] if reasons else lines[0])
    if refused := why_none_begins(grammar.llguidance):
        raise _error(pattern, 0, refused)
    return grammar


# What Rust's syntax has words for; VERBOSE is written out, the others say nothing.
_SAID = {re.IGNORECASE: "i", re.DOTALL: "s"}
_SILENT = re.UNICODE | re.DEBUG | re.VERBOSE


def _text_of(pattern: re.Pattern[Any]) -> str:
    """A compiled expression as a text, with the flags that can be said in one."""
    if not isinstance(pattern.pattern, str):
        raise ArgumentError(f"regex must be an expression of text, not of bytes: {pattern!r}")
    flags = re.RegexFlag(pattern.flags)
    for flag in (re.MULTILINE, re.ASCII, re.LOCALE):
        if flags & flag:
            raise ArgumentError(
                f"regex has the flag re.{flag.name}, which a grammar cannot express: "
                f"{_INSTEAD.get(flag, 'leave it out')}"
            )
    text = _without_comments(pattern.pattern) if flags & re.VERBOSE else pattern.pattern
    said = "".join(letter for flag, letter in _SAID.items() if flags & flag)
    return f"(?{said}){text}" if said else text


_INSTEAD = {
    re.MULTILINE: "write line ends as \\n",
    re.ASCII: "write classes such as [0-9] for \\d",
}


def _without_comments(pattern: str) -> str:
    r"""An expression of re.VERBOSE without its whitespace and comments, which mean nothing.

    >>> _without_comments("a b  # letters\n [ #] +")
    'ab[\\x20\\x23]+'
    """
    written, at = "", 0
    while at < len(pattern):
        found = _PART.match(pattern, at)
        assert found is not None
        at = found.end()
        part = found[0]
        if part[0] == "[":
            # Within a class they mean themselves; Rust's own (?x) would leave them out.
            written += re.sub(r"(?s)(\\.)|([\s#])", _escaped, part)
        elif part[0] != "#" and not part.isspace():
            written += part
    return written


_PART = re.compile(r"(?s)\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|#[^\n]*|\s+|.")


def _escaped(found: re.Match[str]) -> str:
    return found[1] or f"\\x{ord(found[2]):02x}"


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


_LOOKS = (
    ("(?=", "a lookahead"),
    ("(?!", "a negative lookahead"),
    ("(?<=", "a lookbehind"),
    ("(?<!", "a negative lookbehind"),
)


def _unsupported(pattern: str) -> tuple[int, str] | None:
    """Where an expression has a lookaround or a backreference, and which."""
    inside = False
    position = 0
    while position < len(pattern):
        char = pattern[position]
        if char == "\\":
            after = pattern[position + 1 : position + 2]
            if not inside and after.isdigit() and after != "0":
                return position, "a backreference"
            if not inside and after == "k" and pattern[position + 2 : position + 3] == "<":
                return position, "a backreference"
            position += 2
            continue
        if inside:
            inside = char != "]"
        elif char == "[":
            inside = True
            # "]" right after the opening is a character of the class in Rust and Python.
            position += 1 if pattern[position + 1 : position + 2] == "^" else 0
        else:
            for opening, what in _LOOKS:
                if pattern.startswith(opening, position):
                    return position, what
        position += 1
    return None


def _error(pattern: str, position: int, reason: str) -> GrammarError:
    before = pattern[:position]
    line = before.count("\n") + 1
    return GrammarError("regex", reason, line, position - (before.rfind("\n") + 1) + 1)
