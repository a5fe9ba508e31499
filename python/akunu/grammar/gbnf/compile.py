"""Grammars in llama.cpp's notation, GBNF, written in llguidance's: the same texts."""

from __future__ import annotations

from akunu.grammar.errors import GrammarError
from akunu.grammar.expressions import ANY, Chars, Choice, Ranges, Repeat, Sequence
from akunu.grammar.gbnf.automata import automaton
from akunu.grammar.gbnf.lexemes import Lexeme, Shape, with_lexemes
from akunu.grammar.gbnf.parsing import Expression, Rule, Token, parse_gbnf
from akunu.grammar.grammar import Grammar, from_lark
from akunu.grammar.limits import WIDE, engine_numbers, why_none_begins, why_too_wide
from akunu.grammar.productive import productive_rules


def compile_gbnf(text: str) -> Grammar:
    """The grammar of rules in GBNF; GrammarError with line and column where they make no sense."""
    from llguidance import LLMatcher

    rules = productive_rules(parse_gbnf(text))
    if "root" not in rules:
        raise GrammarError("grammar (GBNF)", "no text ever fits the rule root")
    for name, rule in rules.items():
        if _width(rule) > (most := engine_numbers()[0]):
            reason = f"{name} has {_width(rule)} alternatives; {most} can be followed"
            raise GrammarError("grammar (GBNF)", reason)
    lark = _Lark(with_lexemes(rules))
    grammar = from_lark(lark.text())
    if error := LLMatcher.validate_grammar(grammar.llguidance, None):
        raise GrammarError("grammar (GBNF)", f"llguidance refuses it: {error.splitlines()[0]}")
    if refused := why_none_begins(grammar.llguidance):
        raise GrammarError("grammar (GBNF)", refused)
    wide = [name for name, rule in rules.items() if _width(rule) > WIDE]
    for name in (name for name in wide if name in lark.names):
        if refused := why_too_wide(from_lark(lark.text(name)).llguidance):
            raise GrammarError("grammar (GBNF)", f"{refused} (rule {name})")
    return grammar


def _width(part: Expression) -> int:
    """The most alternatives that stand at one place."""
    if isinstance(part, Choice):
        return max(len(part.options), *map(_width, part.options))
    if isinstance(part, Sequence):
        return max(map(_width, part.parts), default=0)
    return _width(part.part) if isinstance(part, Repeat) else 0


class _Lark:
    """Writes rules and lexemes down."""

    def __init__(self, shapes: dict[str, Shape]) -> None:
        self._shapes = shapes
        self.names: dict[str, str] = {}
        """What each rule is called there."""
        self._lexemes: dict[Expression, str] = {}
        for name in shapes:
            plain = "r_" + name.lower().replace("-", "_")
            while plain in self.names.values():
                plain += "_"
            self.names[name] = plain

    def text(self, root: str = "root") -> str:
        """All rules, where a text is what fits the rule `root`."""
        rules = [f"{self.names[name]}: {self._top(shape)}" for name, shape in self._shapes.items()]
        lexemes = [
            f"{name}: /{_regex(text)}/" + (" & /(?s:.+)/" if automaton(text).nullable else "")
            for text, name in self._lexemes.items()
        ]
        return "\n".join([f"start: {self.names[root]}", *rules, *lexemes]) + "\n"

    def _top(self, shape: Shape | Expression) -> str:
        if isinstance(shape, Choice):
            return "\n  | ".join(map(self._expression, shape.options))
        return self._expression(shape)

    def _expression(self, shape: Shape | Expression) -> str:
        if isinstance(shape, Lexeme):
            name = self._lexemes.setdefault(shape.text, f"L{len(self._lexemes)}")
            return name + "?" if automaton(shape.text).nullable else name
        if isinstance(shape, Token):
            return shape.text
        if isinstance(shape, Rule):
            return self.names[shape.name]
        if isinstance(shape, Repeat):
            return f"({self._expression(shape.part)}){_repeats(shape)}"
        if isinstance(shape, Choice):
            return f"({' | '.join(map(self._expression, shape.options))})"
        assert isinstance(shape, Sequence)
        return " ".join(f"{self._expression(part)}" for part in shape.parts) or '""'


def _repeats(part: Repeat[object]) -> str:
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
