"""A pattern that matches every text but a few."""

from __future__ import annotations

import re
from collections.abc import Iterable

_ANY = r"[\s\S]"


def every_text_but(words: Iterable[str]) -> str:
    """A pattern, without a lookahead, that matches each text but these.

    >>> every_text_but(["a"])
    '^(?:|[^a][\\\\s\\\\S]*|a[\\\\s\\\\S]+)$'
    """
    return f"^{_but({word for word in words})}$"


_LETTER = r"(?:[A-Za-z0-9_ @/:,#%&=!<>~'\"-]|\\[.@/:$^*+?()|{}\[\]-])"
_WORDS = rf"{_LETTER}+(?:\|{_LETTER}+)*"


def words_of(pattern: str) -> list[str] | None:
    """The texts that a pattern such as `^word$` or `^(one|other)$` matches; None for all others."""
    found = re.fullmatch(rf"\^(?:({_LETTER}+)|\((?:\?:)?({_WORDS})\))\$", pattern)
    return None if found is None else _plain(found[1] or found[2])


def _plain(words: str) -> list[str]:
    return [re.sub(r"\\(.)", r"\1", word) for word in re.split(r"(?<!\\)\|", words)]


def _but(words: set[str]) -> str:
    if not words:
        return rf"{_ANY}*"
    firsts = sorted({word[0] for word in words if word})
    ways = [] if "" in words else [""]
    if not firsts:
        return rf"{_ANY}+"
    ways.append(f"[^{''.join(map(_escaped, firsts))}]{_ANY}*")
    for first in firsts:
        rest = {word[1:] for word in words if word.startswith(first)}
        ways.append(_escaped(first) + _but(rest))
    return f"(?:{'|'.join(ways)})"


def _escaped(char: str) -> str:
    return char if char.isalnum() and char.isascii() else f"\\u{{{ord(char):x}}}"
