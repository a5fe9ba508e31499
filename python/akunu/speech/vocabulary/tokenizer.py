"""Whisper's vocabulary: text, languages, timestamps and what else has a token."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from akunu.errors import ArgumentError, ModelFormatError
from akunu.speech.speech_settings import SpeechSettings
from akunu.speech.vocabulary.sources import WhisperWords

SECONDS_PER_TIMESTAMP = 0.02
_LANGUAGE = re.compile(r"<\|([a-z]{2,3})\|>")
_FIRST_MULTILINGUAL_VOCABULARY = 51865  # English ones have a token less


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """Ids of tokens that are not text."""

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
    """The vocabulary of a Whisper model; raises ModelFormatError for one that is not Whisper's."""

    def __init__(self, words: WhisperWords, settings: SpeechSettings, vocab_size: int) -> None:
        """Take what the model's files say; `vocab_size`: of its logits."""
        self._words = words
        self._settings = settings
        self.vocab_size = vocab_size
        self.special = self._specials()
        said = settings.is_multilingual
        self.is_multilingual = (
            vocab_size >= _FIRST_MULTILINGUAL_VOCABULARY if said is None else said
        )
        self.languages = self._find_languages() if self.is_multilingual else {}

    def _specials(self) -> SpecialTokens:
        def needed(*names: str) -> int:
            for name in names:
                found = self._words.token_id(name)
                if found is not None and found < self.vocab_size:
                    return found
            raise ModelFormatError(f"{self._words.where}: there is no token {names[0]}")

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
            match = _LANGUAGE.fullmatch(self._words.token_text(token))
            if match:
                found[match[1]] = token
        return found

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text, without special ones."""
        ids = self._words.encode(text)
        return [token for token in ids if token < self.special.end_of_text]

    def decode(self, tokens: Iterable[int]) -> str:
        """Return the text of tokens; special ones and timestamps have none."""
        text = [int(token) for token in tokens if token < self.special.end_of_text]
        return self._words.decode(text)

    def start_of(self, language: str | None, task: str) -> list[int]:
        """Return the first tokens of a window's text, up to the one for timestamps."""
        if not self.is_multilingual:
            return [self.special.start]
        does = self.special.translate if task == "translate" else self.special.transcribe
        return [self.special.start, self.languages[language or "en"], does]

    def never_written(self, wanted: Sequence[int]) -> list[int]:
        """Return the tokens that no text has; -1 in `wanted` stands for the model's own list."""
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
                banned.update(self._known(self._settings.suppress_tokens))
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
        listed = self._known(self._settings.begin_suppress_tokens)
        return sorted({*listed, *self.encode(" "), self.special.end_of_text})

    def _known(self, listed: Sequence[int]) -> list[int]:
        return [token for token in listed if 0 <= token < self.vocab_size]
