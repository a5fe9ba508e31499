"""What shows only when llguidance begins to follow a grammar, asked before anything is generated.

A grammar may be well formed and yet have no first token: nothing fits it, or more could follow than
llguidance computes for one mask. Here bytes are the tokens, so that no model is needed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLParserLimits, LLTokenizer

_told: list[tuple[int, int, int]] = []

NOTHING_FITS = "no text fits it"

_FIRST_BYTES = 16
_OF_A_MODEL = re.compile("special token|Token range")
"""Errors about a grammar that names tokens: only a model has them."""

WIDE = 1000
"""A part with this many properties or alternatives is tried separately."""


def engine_numbers() -> tuple[int, int, int]:
    """Return the limits of the engine: `kGrammarLimits` in src/inference/llguidance.h.

    The first limits the rules that llguidance follows at one position of a text. An object needs
    four for each optional property that may come next, a rule one for each alternative.
    """
    if not _told:
        from akunu import _core

        _told.append(_core.GRAMMAR_LIMITS)
    return _told[0]


def tell_engine_numbers(numbers: tuple[int, int, int]) -> None:
    """Have these without asking the engine: loading it takes longer than most grammars."""
    _told[:] = [numbers]


def why_none_begins(grammar: str | LLMatcher) -> str | None:
    """Why no text of a grammar, llguidance's own JSON, can begin; None where one can."""
    return _refused(matcher_of(grammar) if isinstance(grammar, str) else grammar)


def why_too_wide(grammar: str, behind: Sequence[bytes] = ()) -> str | None:
    """Why a text cannot continue after any first character, or after these beginnings."""
    matcher = matcher_of(grammar)
    if reason := _refused(matcher):
        return reason
    mask = matcher.compute_bitmask()
    allowed = [bytes([byte]) for byte in range(256) if mask[byte // 8] >> byte % 8 & 1]
    for beginning in [*allowed[:_FIRST_BYTES], *behind]:
        tokens = _bytes().tokenize_bytes(beginning)
        fits = matcher.try_consume_tokens(tokens) == len(tokens)
        if (fits or matcher.is_error()) and (reason := _refused(matcher)):
            return reason
        matcher.reset()
    return None


def matcher_of(grammar: str) -> LLMatcher:
    """What follows a grammar from its beginning; with an error where llguidance refuses it."""
    from llguidance import LLMatcher

    return LLMatcher(_bytes(), grammar, log_level=0, limits=engine_limits())


def _refused(matcher: LLMatcher) -> str | None:
    """Why there is no mask from here on."""
    mask = b"" if matcher.is_error() else matcher.compute_bitmask()
    if matcher.is_error():
        error = matcher.get_error()
        if _OF_A_MODEL.search(error):
            return None
        return NOTHING_FITS if error.startswith("NoExtension") else _plain(error)
    return None if any(mask) else NOTHING_FITS


def _plain(error: str) -> str:
    first = error.strip().splitlines()[0].removeprefix("Parser Error: ")
    if first.startswith("Current row has"):
        return (
            f"{first.split()[3]} rules could continue at the same place of a text; the limit is "
            f"{engine_numbers()[0]}"
        )
    if first.startswith("panic"):  # of an assertion about the number of symbols
        return "it has too many rules"
    return first[:300]


@cache
def _bytes() -> LLTokenizer:
    from llguidance import LLTokenizer

    return LLTokenizer("byte")


@cache
def engine_limits() -> LLParserLimits:
    """The limits of the engine, as llguidance takes them."""
    from llguidance import LLParserLimits

    in_row, of_mask, fuel = engine_numbers()
    return LLParserLimits(
        max_items_in_row=in_row,
        step_max_items=of_mask,
        step_lexer_fuel=fuel,
        verbose_errors=False,
    )
