"""Grammars in llguidance's variant of Lark: checked, and what no text ends refused."""

from __future__ import annotations

import json
import re

from akunu.grammar.errors import GrammarError
from akunu.grammar.expressions import Chars, Choice, Repeat, Sequence
from akunu.grammar.gbnf.parsing import Expression, Rule, Token
from akunu.grammar.grammar import Grammar, from_lark
from akunu.grammar.lark_parsing import Lark, NotRead, parse_lark
from akunu.grammar.limits import NOTHING_FITS, engine_numbers, why_none_begins
from akunu.grammar.productive import productive_rules

NOTHING = Chars(())
_MAY_BE_EMPTY = re.compile(r"\[\^|&|~|\\[pPDSW]|%regex")
"""What an expression has that nothing may match."""


def compile_lark(text: str) -> Grammar:
    """The grammar of rules in Lark, as llguidance has it."""
    from llguidance import LLMatcher

    grammar = from_lark(text)
    if error := LLMatcher.validate_grammar(grammar.llguidance, None):
        raise _error(error)
    try:
        read = parse_lark(text)
    except (NotRead, RecursionError):
        read = None  # in a form that is not looked into
    if read is not None:
        _check_rules(text, read)
    if reason := why_none_begins(grammar.llguidance):
        raise GrammarError("grammar (Lark)", reason)
    return grammar


def _check_rules(text: str, read: Lark) -> None:
    """Refuses rules that no text ends, and those with more alternatives than can be followed."""
    empty = _empty_terminals(read)
    for name, place in read.places.items():
        rule = read.rules[name]
        if isinstance(rule, Choice) and len(rule.options) > (most := engine_numbers()[0]):
            reason = (
                f"{name} has {len(rule.options)} alternatives; {most} can be followed. A "
                "TERMINAL may have any number"
            )
            raise _located(text, place, reason)
    rules = {name: _without(rule, empty) for name, rule in read.rules.items()}
    ending = productive_rules(rules)
    for name in _needed(read.rules):
        if name not in read.places or (name in ending and not _leads_nowhere(rules[name])):
            continue
        for terminal, place in empty.items():
            raise _located(text, place, f"no text fits {terminal}")
        raise _located(text, read.places[name], f"no text ever ends the rule {name}")


def _empty_terminals(read: Lark) -> dict[str, int]:
    """TERMINALS and expressions in rules that no text fits, with their places."""
    definitions = "\n".join(read.definitions)
    found: dict[str, int] = {}
    if _MAY_BE_EMPTY.search(definitions):
        used = {name: read.terminals[name] for name in _terminals(read)}
        found |= {name: at for name, at in used.items() if _is_empty(name, definitions)}
    for expression, at in read.expressions.items():
        if _MAY_BE_EMPTY.search(expression) and _is_empty(expression, ""):
            found[expression] = at
    return found


def _is_empty(terminal: str, definitions: str) -> bool:
    lark = json.dumps({"grammars": [{"lark_grammar": f"start: {terminal}\n{definitions}\n"}]})
    return why_none_begins(lark) == NOTHING_FITS


def _terminals(read: Lark) -> list[str]:
    """TERMINALS that rules have, in the order of the text."""
    used: set[str] = set()
    open_parts = list(read.rules.values())
    while open_parts:
        part = open_parts.pop()
        if isinstance(part, Token):
            used.add(part.text)
        open_parts += _inside(part)
    return [name for name in read.terminals if name in used]


def _needed(rules: dict[str, Expression]) -> list[str]:
    """Rules that a text may come to, from `start` on."""
    found = ["start"]
    for name in found:
        open_parts = [rules[name]] if name in rules else []
        while open_parts:
            part = open_parts.pop(0)
            if isinstance(part, Rule) and part.name not in found:
                found.append(part.name)
            open_parts += _inside(part)
    return found


def _inside(part: Expression) -> list[Expression]:
    if isinstance(part, Repeat):
        return [part.part]
    if isinstance(part, Choice):
        return list(part.options)
    return list(part.parts) if isinstance(part, Sequence) else []


def _without(part: Expression, empty: dict[str, int]) -> Expression:
    """The expression with a character of no class for each of these terminals."""
    if isinstance(part, Token):
        return NOTHING if part.text in empty else part
    if isinstance(part, Repeat):
        return Repeat(_without(part.part, empty), part.least, part.most)
    if isinstance(part, Choice):
        return Choice(tuple(_without(one, empty) for one in part.options))
    if isinstance(part, Sequence):
        return Sequence(tuple(_without(one, empty) for one in part.parts))
    return part


def _leads_nowhere(part: Expression) -> bool:
    """Whether a text may come to what nothing fits, after something else."""
    if isinstance(part, Sequence) and NOTHING in part.parts[1:] and part.parts[0] != NOTHING:
        return True
    return any(map(_leads_nowhere, _inside(part)))


def _located(text: str, place: int, reason: str) -> GrammarError:
    before = text[:place]
    column = place - (before.rfind("\n") + 1) + 1
    return GrammarError("grammar (Lark)", reason, before.count("\n") + 1, column)


def _error(error: str) -> GrammarError:
    """llguidance's message, with the place that it names."""
    place = re.match(r"(?:at )?(\d+)\((\d+)\): ", error)
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    if place is None:
        return GrammarError("grammar (Lark)", lines[0])
    reasons = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    reason = reasons[0] if reasons else lines[0][place.end() :]
    return GrammarError("grammar (Lark)", reason, int(place[1]), int(place[2]))
