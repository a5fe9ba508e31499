"""Which rules a text can ever end: the classic fixed point over a grammar's rules."""

from __future__ import annotations

from akunu.grammar.expressions import Chars, Choice, Repeat, Sequence
from akunu.grammar.gbnf.parsing import Expression, Rule, Token


def productive_rules(rules: dict[str, Expression]) -> dict[str, Expression]:
    """The rules without those that no text fits, such as a rule that always refers to itself."""
    productive: set[str] = set()
    while True:
        found = {name for name, part in rules.items() if _kept(part, productive) is not None}
        if found == productive:
            break
        productive = found
    kept = {name: _kept(part, productive) for name, part in rules.items()}
    return {name: part for name, part in kept.items() if part is not None}


def _kept(part: Expression, productive: set[str]) -> Expression | None:
    if isinstance(part, Chars):
        return part if part.ranges else None
    if isinstance(part, Rule):
        return part if part.name in productive else None
    if isinstance(part, Token):
        return part
    if isinstance(part, Repeat):
        if part.most == 0:
            return Sequence(())
        inner = _kept(part.part, productive)
        if inner is None:
            return Sequence(()) if part.least == 0 else None
        return Repeat(inner, part.least, part.most)
    if isinstance(part, Choice):
        options = tuple(
            option
            for option in (_kept(one, productive) for one in part.options)
            if option is not None
        )
        return Choice(options) if options else None
    parts = tuple(one for one in (_kept(one, productive) for one in part.parts) if one is not None)
    return Sequence(parts) if len(parts) == len(part.parts) else None
