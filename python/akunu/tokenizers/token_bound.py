"""How many tokens a text has at least: its length by that of the longest token."""

from __future__ import annotations

import numpy as np

from akunu.tokenizers.vocabulary import BYTE, CONTROL, UNKNOWN, USER_DEFINED, Vocabulary, byte_of

_NAMES = (UNKNOWN, CONTROL, USER_DEFINED)
"""Types of tokens that are spelled as they are, also in byte-level BPE."""


class TokenBound:
    """No token stands for more of a text than the longest one spells.

    Letters are bytes in byte-level BPE, and else characters.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        """Measure the longest token of a vocabulary."""
        self._is_byte_level = vocabulary.model == "gpt2"
        self._is_composed = vocabulary.nfc
        # Such a token stands for any white space next to it, too.
        self._takes_spaces = any(each.lstrip or each.rstrip for each in vocabulary.added.values())
        self._longest = self._longest_of(vocabulary)

    def fewest_tokens(self, text: str) -> int:
        """Return a number of tokens that the text has at least."""
        if not self._longest:
            return 0
        if self._takes_spaces:
            text = "".join(text.split())
        if self._is_composed and not text.isascii():
            n_letters = len(text) // 4  # NFC makes one character of at most four
        else:
            n_letters = len(text.encode()) if self._is_byte_level else len(text)
        return -(-n_letters // self._longest)

    def _longest_of(self, vocabulary: Vocabulary) -> int:
        """Return the letters of the longest token; 0 where one may stand for any number of them."""
        indices = np.flatnonzero(vocabulary.types == BYTE).tolist()
        n_bytes = len({byte_of(vocabulary.tokens[index]) for index in indices} - {None})
        knows_all = vocabulary.model in ("llama", "gemma4") and n_bytes == 256
        if not self._is_byte_level and not knows_all:
            return 0
        # In byte-level BPE a token has one character for each byte, unless it is a name.
        return max(
            len(token.encode()) if self._is_byte_level and kind in _NAMES else len(token)
            for token, kind in zip(vocabulary.tokens, vocabulary.types.tolist(), strict=True)
        )
