"""Grammars in llama.cpp's notation, GBNF, written in llguidance's: the same texts."""

from __future__ import annotations

from akunu.grammar import Grammar, from_lark
from akunu.grammar.errors import GrammarError
from akunu.grammar.gbnf_automata import automaton
from akunu.grammar.gbnf_lexemes import Lexeme, Shape, with_lexemes
from akunu.grammar.gbnf_parsing import (
    ANY,
    Chars,
    Choice,
    Expression,
    Ranges,
    Repeat,
    Rule,
    Sequence,
    Token,
    parse_gbnf,
)


def compile_gbnf(text: str) -> Grammar:
    """The grammar of rules in GBNF; GrammarError with line and column where they make no sense."""
    from llguidance import LLMatcher

    rules = _productive(parse_gbnf(text))
    if "root" not in rules:
        raise GrammarError("grammar (GBNF)", "no text ever fits the rule root")
    grammar = from_lark(_Lark(with_lexemes(rules)).text())
    if error := LLMatcher.validate_grammar(grammar.llguidance, None):
        raise GrammarError("grammar (GBNF)", f"llguidance refuses it: {error.splitlines()[0]}")
    return grammar


def _productive(rules: dict[str, Expression]) -> dict[str, Expression]:
    """The rules without what no text fits, such as a rule that always refers to itself."""
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


class _Lark:
    """Writes rules and lexemes down."""

    def __init__(self, shapes: dict[str, Shape]) -> None:
        self._shapes = shapes
        self._names: dict[str, str] = {"root": "start"}
        self._lexemes: dict[Expression, str] = {}
        for name in shapes:
            if name != "root":
                plain = "r_" + name.lower().replace("-", "_")
                while plain in self._names.values():
                    plain += "_"
                self._names[name] = plain

    def text(self) -> str:
        rules = [f"{self._names[name]}: {self._top(shape)}" for name, shape in self._shapes.items()]
        lexemes = [
            f"{name}: /{_regex(text)}/" + (" & /(?s:.+)/" if automaton(text).nullable else "")
            for text, name in self._lexemes.items()
        ]
        return "\n".join([*rules, *lexemes]) + "\n"

    def _top(self, shape: Shape | Expression) -> str:
        if isinstance(shape, Choice):
            return "\n  | ".join(map(self._written, shape.options))
        return self._written(shape)

    def _written(self, shape: Shape | Expression) -> str:
        if isinstance(shape, Lexeme):
            name = self._lexemes.setdefault(shape.text, f"L{len(self._lexemes)}")
            return name + "?" if automaton(shape.text).nullable else name
        if isinstance(shape, Token):
            return shape.text
        if isinstance(shape, Rule):
            return self._names[shape.name]
        if isinstance(shape, Repeat):
            return f"({self._written(shape.part)}){_repeats(shape)}"
        if isinstance(shape, Choice):
            return f"({' | '.join(map(self._written, shape.options))})"
        assert isinstance(shape, Sequence)
        return " ".join(f"{self._written(part)}" for part in shape.parts) or '""'


def _repeats(part: Repeat) -> str:
    if part.most is None:
        return {0: "*", 1: "+"}.get(part.least, f"{{{part.least},}}")
    return "?" if (part.least, part.most) == (0, 1) else f"{{{part.least},{part.most}}}"


def _regex(part: Expression) -> str:
    """An expression without references as a regular expression."""
    if isinstance(part, Chars):
        return _class(part.ranges)
    if isinstance(part, Repeat):
        return f"(?:{_regex(part.part)}){_repeats(part)}"
    if isinstance(part, Choice):
        return f"(?:{'|'.join(map(_regex, part.options))})"
    assert isinstance(part, Sequence)
    return "".join(map(_regex, part.parts))


def _class(ranges: Ranges) -> str:
    if ranges == ANY:
        return "(?s:.)"
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return _char(ranges[0][0])
    inside = [_char(low) if low == high else f"{_char(low)}-{_char(high)}" for low, high in ranges]
    return f"[{''.join(inside)}]"


def _char(code: int) -> str:
    char = chr(code)
    return char if char.isascii() and char.isalnum() else f"\\x{{{code:x}}}"
