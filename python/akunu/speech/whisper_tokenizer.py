"""Whisper's vocabulary: text, languages, timestamps and what else has a token."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from akunu.errors import ArgumentError, ModelFormatError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SECONDS_PER_TIMESTAMP = 0.02
_LANGUAGE = re.compile(r"<\|([a-z]{2,3})\|>")
_FIRST_MULTILINGUAL_VOCABULARY = 51865  # English ones have a token less


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """Ids of tokens that are no text."""

    end_of_text: int
    start: int
    translate: int
    transcribe: int
    start_of_model: int
    previous: int
    no_speech: int
    no_timestamps: int

    @property
    def first_timestamp(self) -> int:
        """The token of 0.00 s; each of the next is 0.02 s later."""
        return self.no_timestamps + 1


class WhisperTokenizer:
    """The vocabulary of a Whisper model, from its directory.

    Raises ModelFormatError where a file is missing, or is not Whisper's.
    """

    def __init__(self, directory: Path, vocab_size: int) -> None:
        """Read tokenizer.json, and generation_config.json where there is one."""
        self._tokenizer = _read_tokenizer(directory / "tokenizer.json")
        self._generation = _read_json(directory / "generation_config.json")
        self.vocab_size = vocab_size
        self.special = self._specials(directory)
        said = self._generation.get("is_multilingual")
        self.is_multilingual = (
            said if isinstance(said, bool) else vocab_size >= _FIRST_MULTILINGUAL_VOCABULARY
        )
        self.languages = self._find_languages() if self.is_multilingual else {}

    def _specials(self, directory: Path) -> SpecialTokens:
        def needed(*names: str) -> int:
            for name in names:
                found = self._tokenizer.token_to_id(name)
                if found is not None and found < self.vocab_size:
                    return found
            raise ModelFormatError(f"{directory / 'tokenizer.json'}: there is no token {names[0]}")

        return SpecialTokens(
            end_of_text=needed("<|endoftext|>"),
            start=needed("<|startoftranscript|>"),
            translate=needed("<|translate|>"),
            transcribe=needed("<|transcribe|>"),
            start_of_model=needed("<|startoflm|>"),
            previous=needed("<|startofprev|>"),
            no_speech=needed("<|nospeech|>", "<|nocaptions|>"),
            no_timestamps=needed("<|notimestamps|>"),
        )

    def _find_languages(self) -> dict[str, int]:
        """Tokens of languages lie between the start and what is done."""
        ends = min(self.special.translate, self.special.transcribe)
        found = {}
        for token in range(self.special.start + 1, ends):
            match = _LANGUAGE.fullmatch(self._tokenizer.id_to_token(token) or "")
            if match:
                found[match[1]] = token
        return found

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text, without special ones."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return [token for token in ids if token < self.special.end_of_text]

    def decode(self, tokens: Iterable[int]) -> str:
        """Return the text of tokens; special ones and timestamps have none."""
        text = [int(token) for token in tokens if token < self.special.end_of_text]
        decoded: str = self._tokenizer.decode(text, skip_special_tokens=False)
        return decoded

    def start_of(self, language: str | None, task: str) -> list[int]:
        """Return what a window's text begins with, before it is said whether it has timestamps."""
        if not self.is_multilingual:
            return [self.special.start]
        does = self.special.translate if task == "translate" else self.special.transcribe
        return [self.special.start, self.languages[language or "en"], does]

    def never_written(self, wanted: Sequence[int]) -> list[int]:
        """Return the tokens that no text has; of `wanted`, -1 stands for the model's own list."""
        special = self.special
        banned = {
            special.start,
            special.translate,
            special.transcribe,
            special.start_of_model,
            special.previous,
            special.no_speech,
            special.no_timestamps,
        }
        for token in wanted:
            if token == -1:
                banned.update(self._listed("suppress_tokens"))
            elif 0 <= token < self.vocab_size:
                banned.add(token)
            else:
                raise ArgumentError(
                    f"suppress_tokens has {token}; tokens are 0 to {self.vocab_size - 1}, "
                    "and -1 stands for the model's own list"
                )
        return sorted(banned)

    def never_first(self) -> list[int]:
        """Return the tokens with which no text begins: a space, and its end."""
        listed = self._listed("begin_suppress_tokens")
        return sorted({*listed, *self.encode(" "), self.special.end_of_text})

    def _listed(self, key: str) -> list[int]:
        listed = self._generation.get(key) or []
        return [
            token for token in listed if isinstance(token, int) and 0 <= token < self.vocab_size
        ]


def alignment_heads_of(directory: Path) -> list[tuple[int, int]]:
    """Return (layer, head) of those that know when words are said, by generation_config.json.

    Raises ModelFormatError for what is no such list.
    """
    listed = _read_json(directory / "generation_config.json").get("alignment_heads") or []
    try:
        return [(int(layer), int(head)) for layer, head in listed]
    except (TypeError, ValueError):
        raise ModelFormatError(
            f"{directory / 'generation_config.json'}: alignment_heads must be pairs of numbers"
        ) from None


def _read_tokenizer(path: Path) -> Tokenizer:
    from tokenizers import Tokenizer

    if not path.is_file():
        raise ModelFormatError(f"{path} is missing: the words of the model are there")
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises Exception itself
        raise ModelFormatError(f"{path}: {error}") from None


def _read_json(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ModelFormatError(f"{path}: {error}") from None
    if not isinstance(found, dict):
        raise ModelFormatError(f"{path}: an object is needed")
    return found
