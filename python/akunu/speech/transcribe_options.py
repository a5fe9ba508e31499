"""The arguments of `SpeechModel.transcribe`, checked."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from akunu.common.checks import flag, integer, number, priority_of, refusal
from akunu.errors import ArgumentError
from akunu.speech.activity.voice_activity import Vad, VadOptions

if TYPE_CHECKING:
    from akunu.speech.vocabulary.tokenizer import WhisperTokenizer

Task: TypeAlias = Literal["transcribe", "translate"]

MOST_BEAMS = 19
"""The engine says the 20 likeliest tokens, and a beam search needs one more than it has texts."""
USUAL_TEMPERATURES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscribeOptions:
    """How audio becomes text; `SpeechModel.transcribe` says what each means."""

    language: str | None
    task: Task
    beam_size: int
    patience: float
    best_of: int
    temperatures: tuple[float, ...]
    compression_ratio_threshold: float | None
    logprob_threshold: float | None
    no_speech_threshold: float | None
    condition_on_previous_text: bool
    prompt: tuple[int, ...]
    prefix: tuple[int, ...]
    hotwords: tuple[int, ...]
    banned: tuple[int, ...]
    banned_first: tuple[int, ...]
    without_timestamps: bool
    max_initial_timestamp: float
    word_timestamps: bool
    vad: Vad
    vad_model: str | os.PathLike[str] | None
    vad_options: VadOptions | None
    batch: int
    seed: int
    priority: int


def transcribe_options(
    tokenizer: WhisperTokenizer,
    most_prompt: int,
    *,
    language: str | None,
    task: str,
    beam_size: int,
    patience: float,
    best_of: int,
    temperature: float | Sequence[float],
    compression_ratio_threshold: float | None,
    logprob_threshold: float | None,
    no_speech_threshold: float | None,
    condition_on_previous_text: bool,
    prompt: str | Sequence[int] | None,
    prefix: str | None,
    hotwords: str | None,
    suppress_tokens: Sequence[int],
    suppress_blank: bool,
    without_timestamps: bool,
    max_initial_timestamp: float,
    word_timestamps: bool,
    vad: Vad,
    vad_model: str | os.PathLike[str] | None,
    vad_options: VadOptions | None,
    batch: int,
    seed: int,
    priority: int,
) -> TranscribeOptions:
    """Check the arguments; ArgumentError for nonsense. `most_prompt`: tokens of a prompt."""
    for name, value in (
        ("condition_on_previous_text", condition_on_previous_text),
        ("suppress_blank", suppress_blank),
        ("without_timestamps", without_timestamps),
        ("word_timestamps", word_timestamps),
    ):
        flag(name, value)
    return TranscribeOptions(
        language=language_of(tokenizer, language),
        task=_task_of(tokenizer, task),
        beam_size=integer("beam_size", beam_size, 1, MOST_BEAMS),
        patience=number("patience", patience, 0.0, 100.0, above=True),
        best_of=integer("best_of", best_of, 1, 64),
        temperatures=_temperatures(temperature),
        compression_ratio_threshold=_threshold(
            "compression_ratio_threshold", compression_ratio_threshold, 0.0, 1e6
        ),
        logprob_threshold=_threshold("logprob_threshold", logprob_threshold, -1e6, 0.0),
        no_speech_threshold=_threshold("no_speech_threshold", no_speech_threshold, 0.0, 1.0),
        condition_on_previous_text=bool(condition_on_previous_text) and batch == 1,
        prompt=_prompt(tokenizer, prompt, most_prompt),
        prefix=_words("prefix", tokenizer, prefix, most_prompt),
        hotwords=_words("hotwords", tokenizer, hotwords, most_prompt),
        banned=tuple(tokenizer.never_written(_tokens("suppress_tokens", suppress_tokens))),
        banned_first=tuple(tokenizer.never_first()) if suppress_blank else (),
        without_timestamps=bool(without_timestamps),
        max_initial_timestamp=number("max_initial_timestamp", max_initial_timestamp, 0.0, 30.0),
        word_timestamps=bool(word_timestamps),
        vad=vad,
        vad_model=vad_model,
        vad_options=vad_options,
        batch=_batch(batch, vad),
        seed=integer("seed", seed, 0, 2**64 - 1),
        priority=priority_of(priority),
    )


def language_of(tokenizer: WhisperTokenizer, language: str | None) -> str | None:
    """Return the code of a language that the model knows; None where it is to be detected."""
    if not tokenizer.is_multilingual:
        if language not in (None, "en"):
            raise ArgumentError(f"language is {language!r}; this model knows only English")
        return "en"
    if language is None or language in tokenizer.languages:
        return language
    known = ", ".join(tokenizer.languages)
    raise ArgumentError(f"language is {language!r}; this model knows {known}")


def _task_of(tokenizer: WhisperTokenizer, task: str) -> Task:
    if task == "translate":
        if not tokenizer.is_multilingual:
            raise ArgumentError('task is "translate"; this model knows only English')
        return "translate"
    if task == "transcribe":
        return "transcribe"
    raise refusal("task", task, '"transcribe" or "translate"', "")


def _temperatures(given: float | Sequence[float]) -> tuple[float, ...]:
    several = tuple(given) if isinstance(given, Sequence) else (given,)
    if not several or isinstance(given, str):
        raise refusal("temperature", given, "a number or several", "")
    return tuple(number("temperature", each, 0.0, 100.0) for each in several)


def _batch(batch: int, vad: Vad) -> int:
    if integer("batch", batch, 1, 256) > 1 and vad is False:
        raise ArgumentError("batch needs the parts with speech, but vad is False")
    return batch


def _threshold(name: str, value: float | None, lowest: float, highest: float) -> float | None:
    return None if value is None else number(name, value, lowest, highest)


def _tokens(name: str, given: Sequence[int]) -> list[int]:
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise refusal(name, given, "a list of tokens", "")
    return [integer(f"{name}[{i}]", each, -1, 2**32 - 1) for i, each in enumerate(given)]


def _prompt(
    tokenizer: WhisperTokenizer, given: str | Sequence[int] | None, most: int
) -> tuple[int, ...]:
    if given is None:
        return ()
    if isinstance(given, str):
        return _words("prompt", tokenizer, given, most)
    tokens = _tokens("prompt", given)
    for token in tokens:
        if not 0 <= token < tokenizer.vocab_size:
            raise ArgumentError(
                f"prompt has token {token}; ids go from 0 to {tokenizer.vocab_size - 1}"
            )
    return _fitting("prompt", tokens, most)


def _words(name: str, tokenizer: WhisperTokenizer, text: str | None, most: int) -> tuple[int, ...]:
    if text is None or (isinstance(text, str) and not text.strip()):
        return ()
    if not isinstance(text, str):
        raise refusal(name, text, "a str", "or None")
    return _fitting(name, tokenizer.encode(" " + text.strip()), most)


def _fitting(name: str, tokens: Sequence[int], most: int) -> tuple[int, ...]:
    if len(tokens) > most:
        raise ArgumentError(f"{name} has {len(tokens)} tokens; there is room for {most}")
    return tuple(tokens)
