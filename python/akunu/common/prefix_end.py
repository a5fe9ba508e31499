"""Why a prompt took over no more of the cache than it did: what the engine says, and for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

PrefixEnd = Literal[
    "",
    "whole",
    "off",
    "outputs",
    "unknown",
    "differs",
    "ends",
    "not_computed",
    "other_key",
    "evicted",
]
"""As src/cache/sequence_store.h has them; "": no one looked yet."""

_EXPLAINED: Final[Mapping[str, str]] = {
    "off": "the cache of prefixes is off",
    "outputs": "the others' outputs are wanted",
    "unknown": "no text in the cache begins like it",
    "differs": "the next token is another one",
    "ends": "the text that it continues ends there",
    "not_computed": "the next ones were generated, and not read as a prompt yet",
    "other_key": "a text with other adapters has more",
    "evicted": "the others had to make room",
}


def explained(end: PrefixEnd) -> str:
    """Return it in words; "" where all was taken over, and where no one looked.

    >>> explained("differs")
    'the next token is another one'
    """
    return _EXPLAINED.get(end, "")
