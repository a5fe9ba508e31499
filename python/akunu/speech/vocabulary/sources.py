"""Whisper's vocabulary as its files have it: which token is which, and text into tokens."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from akunu.errors import ModelFormatError
from akunu.tokenizers.tokenizer import Tokenizer


class WhisperWords(Protocol):
    """Byte-level BPE with special tokens; names of special tokens in a text become those."""

    @property
    def where(self) -> str:
        """The file that has it, for messages."""

    def token_id(self, text: str) -> int | None:
        """Return the token of a name; None where there is none."""

    def token_text(self, token: int) -> str:
        """Return how a token is spelled, "" where the vocabulary ends before it."""

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text."""

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens; bytes that are not UTF-8 become U+FFFD."""


class JsonWords:
    """The `tokenizer.json` of a directory; raises ModelFormatError where it cannot be read."""

    def __init__(self, path: Path) -> None:
        """Read the file."""
        import tokenizers

        self.where = str(path)
        if not path.is_file():
            raise ModelFormatError(f"{path} is missing: it has the model's vocabulary")
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises Exception itself
            raise ModelFormatError(f"{path}: {error}") from None

    def token_id(self, text: str) -> int | None:
        """Return the token of a name."""
        found: int | None = self._tokenizer.token_to_id(text)
        return found

    def token_text(self, token: int) -> str:
        """Return how a token is spelled."""
        return self._tokenizer.id_to_token(token) or ""

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens."""
        text: str = self._tokenizer.decode(tokens, skip_special_tokens=False)
        return text


class VocabularyWords:
    """The vocabulary in a model's own file, by akunu's tokenizer."""

    def __init__(self, tokenizer: Tokenizer, where: str) -> None:
        """`where`: the file."""
        self.where = where
        self._tokenizer = tokenizer

    def token_id(self, text: str) -> int | None:
        """Return the token of a name."""
        return self._tokenizer.token_id(text)

    def token_text(self, token: int) -> str:
        """Return how a token is spelled."""
        return self._tokenizer.token_text(token) if token < self._tokenizer.vocab_size else ""

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text."""
        return self._tokenizer.encode(text, add_special=False, parse_special=True)

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens."""
        return self._tokenizer.decode(tokens)
