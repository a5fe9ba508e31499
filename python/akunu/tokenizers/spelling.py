"""From token ids to bytes and text: how each token is spelled, and a text as its tokens arrive."""

from __future__ import annotations

import codecs
import json
import operator
import sys
from collections.abc import Sequence, Set
from functools import cached_property
from typing import Any, NoReturn, SupportsIndex, cast

import numpy as np

from akunu.errors import ArgumentError, MisuseError
from akunu.tokenizers.arguments import ordered
from akunu.tokenizers.pretokenizers import byte_alphabet
from akunu.tokenizers.vocabulary import (
    BYTE,
    CONTROL,
    SPACE,
    UNKNOWN,
    USER_DEFINED,
    WORD_MODELS,
    Vocabulary,
    byte_of,
)
from akunu.tokenizers.word_models import spell
from akunu.tokenizers.wordpiece_json import spelled_in_json

_LETTER_BYTES = {letter: byte for byte, letter in enumerate(byte_alphabet())}


class TokenSpelling:
    """The bytes of a vocabulary's tokens; those that were requested are kept."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        """Begin without any."""
        self._vocabulary = vocabulary
        self._types = vocabulary.types.astype(np.uint8).tobytes()
        self.known: list[bytes | None] = [None] * len(vocabulary.tokens)
        """The bytes of each token that was requested."""
        # Where encoding puts a space in front of text, decoding takes it away again.
        self.strips_space = vocabulary.add_space_prefix or vocabulary.model == "bert"
        self._word_steps: dict[str, Any] | None = None  # see `_word_models`
        if vocabulary.model in WORD_MODELS or (vocabulary.model == "bert" and vocabulary.steps):
            self._word_steps = json.loads(vocabulary.steps)
        # Whether text after a special token begins like a new one.
        self.opens_anew = not vocabulary.space_prefix_at_start_only

    @property
    def memory_bytes(self) -> int:
        """About how many bytes are kept."""
        known = [each for each in self.known if each is not None]
        return sum(map(sys.getsizeof, known)) + sys.getsizeof(known) + sys.getsizeof(self.known)

    def token_bytes(self, token: SupportsIndex) -> bytes:
        """Return the bytes that one token adds to a text (a control token: its name)."""
        index = self.checked_id(token)
        known = self.known[index]
        if known is None:
            known = self.known[index] = self._spell(index)
        return known

    def checked_id(self, token: SupportsIndex) -> int:
        """Return an id of the vocabulary; ArgumentError for anything else."""
        try:
            index = operator.index(token)
        except TypeError:
            raise ArgumentError(f"a token id must be an int, got {type(token).__name__}") from None
        if not 0 <= index < len(self.known):
            raise ArgumentError(
                f"token id {index} is out of range: this vocabulary has ids 0 to "
                f"{len(self.known) - 1}"
            )
        return index

    @cached_property
    def special_ids(self) -> frozenset[int]:
        """The tokens after which text opens anew (see `encode_pieces`)."""
        kinds = [CONTROL] if self.are_words_apart else [CONTROL, UNKNOWN, USER_DEFINED]
        return frozenset(np.flatnonzero(np.isin(self._vocabulary.types, kinds)).tolist())

    @property
    def opens_with_space(self) -> bool:
        """Whether a word's bytes begin with a space, which the first of a text is shown without.

        So it is where tokens are words (WordLevel, WordPiece).
        """
        return self.are_words_apart and self.strips_space

    @property
    def are_words_apart(self) -> bool:
        """Whether tokens are words, known or not, with the spaces between them left out."""
        return self._vocabulary.model in ("bert", *WORD_MODELS)

    def _spell(self, index: int) -> bytes:
        vocabulary = self._vocabulary
        if index in vocabulary.raw:
            return vocabulary.raw[index].replace(SPACE.encode(), b" ")
        token = vocabulary.tokens[index]
        kind = self._types[index]
        if self._word_steps is not None and kind != CONTROL:
            is_bert = vocabulary.model == "bert" and kind != UNKNOWN
            return spell(self._word_steps, spelled_in_json(token) if is_bert else token)
        if kind == UNKNOWN and self.are_words_apart:
            return b" " + token.encode()
        if kind in (UNKNOWN, CONTROL, USER_DEFINED):
            return token.encode()
        if vocabulary.model == "gpt2":
            letters = [_LETTER_BYTES.get(letter) for letter in token]
            return token.encode() if None in letters else bytes(cast("list[int]", letters))
        if kind == BYTE and vocabulary.model != "bert":
            return bytes([cast(int, byte_of(token))])
        return token.replace(SPACE, " ").encode()


class TokenStream:
    """Turns ids into text as they arrive; never gives out half a character.

    >>> stream = tokenizer.stream()                      # doctest: +SKIP
    >>> for token in tokens: print(stream.push(token), end="")  # doctest: +SKIP
    >>> print(stream.finish())                           # doctest: +SKIP
    """

    def __init__(
        self, spelling: TokenSpelling, *, skipped: Set[int], prompt: Sequence[SupportsIndex]
    ) -> None:
        """Use `Tokenizer.stream`."""
        self._spelling = spelling
        self._special = spelling.special_ids
        self._skipped = skipped
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._opens = True
        self.is_within_character = False
        """Whether the latest token ended inside a character, whose text is still to come."""
        if type(prompt) is not list:
            prompt = list(ordered("prompt", prompt, "a sequence of token ids (int)"))
        for token in prompt[-1:]:
            self._opens = spelling.opens_anew and spelling.checked_id(token) in self._special

    def push(self, token: SupportsIndex) -> str:
        """Return the text that is complete now that `token` has arrived, often ''."""
        text: str = self._decoder.decode(self.push_bytes(token))
        self.is_within_character = bool(self._decoder.getstate()[0])
        return text

    def push_bytes(self, token: SupportsIndex) -> bytes:
        """Return the bytes that `token` adds to the text."""
        spelling = self._spelling
        known = None
        if type(token) is int and 0 <= token < len(spelling.known):
            index, known = token, spelling.known[token]
        if known is None:
            index = spelling.checked_id(token)
            known = spelling.token_bytes(index)
        is_skipped = index in self._skipped
        if index in self._special:
            # Words on both sides of a token that is not shown stay apart.
            if not (is_skipped and spelling.are_words_apart):
                self._opens = spelling.opens_anew
            return b"" if is_skipped else known
        if is_skipped:
            return b""
        if self._opens and spelling.strips_space:
            known = known.removeprefix(b" ")
        self._opens = False
        return known

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuse to be copied or pickled."""
        raise MisuseError(
            "a TokenStream cannot be copied or pickled; start another with Tokenizer.stream()"
        )

    def finish(self) -> str:
        """Return what is left: U+FFFD for an unfinished character, else ''."""
        return self._decoder.decode(b"", final=True)
