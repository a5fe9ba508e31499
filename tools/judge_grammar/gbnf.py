"""Texts for a grammar in GBNF: derived from its rules at random, and changed a little."""

from __future__ import annotations

import random
from collections.abc import Iterator

from akunu.grammar.expressions import Chars, Choice, Repeat, Sequence
from akunu.grammar.gbnf.parsing import Expression, Rule, parse_gbnf

_DEEP = 12
"""From this depth on, repetitions are as short and alternatives as small as they may be."""


def texts(grammar: str, n: int, seed: int, longest: int = 300) -> Iterator[str]:
    """About `n` texts: each that the rules derive, and three changed ones behind it."""
    rules = parse_gbnf(grammar)
    source = random.Random(seed)
    for _ in range(n // 4):
        text = _derived(rules, rules["root"], source, 0)
        if len(text) <= longest:
            yield text
            alphabet = sorted(set(text)) + list('aZ0"\\{ \n.,)')
            for _ in range(3):
                yield _changed(text, source, alphabet)


def _derived(
    rules: dict[str, Expression], part: Expression, source: random.Random, depth: int
) -> str:
    if isinstance(part, Chars):
        low, high = source.choice(part.ranges)
        return chr(source.randint(low, min(high, low + source.choice([0, 1, 5, 40, 2000]))))
    if isinstance(part, Rule):
        return _derived(rules, rules[part.name], source, depth + 1)
    if isinstance(part, Choice):
        options = sorted(part.options, key=lambda option: len(repr(option)))
        return _derived(
            rules, options[0] if depth > _DEEP else source.choice(options), source, depth + 1
        )
    if isinstance(part, Repeat):
        most = part.least + 3 if part.most is None else min(part.most, part.least + 3)
        times = part.least if depth > _DEEP else source.randint(part.least, most)
        return "".join(_derived(rules, part.part, source, depth + 1) for _ in range(times))
    assert isinstance(part, Sequence)
    return "".join(_derived(rules, one, source, depth + 1) for one in part.parts)


def _changed(text: str, source: random.Random, alphabet: list[str]) -> str:
    chars = list(text)
    for _ in range(source.choice([1, 1, 1, 2])):
        place, kind = source.randrange(len(chars) + 1), source.random()
        if kind < 0.35 and chars:
            del chars[min(place, len(chars) - 1)]
        elif kind < 0.7 or not chars:
            chars.insert(place, source.choice(alphabet))
        else:
            chars[min(place, len(chars) - 1)] = source.choice(alphabet)
    return "".join(chars)
