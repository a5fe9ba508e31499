"""Parts of a transcription: segments and words with their times."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Word:
    """A word, with the spaces and punctuation that its tokens have."""

    start: float
    """Seconds from the beginning of the audio, as all times here."""
    end: float
    word: str
    probability: float
    """Mean probability of its tokens."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of speech that the model set between two timestamps."""

    id: int
    """Counted from 0."""
    seek: int
    """The frame (10 ms each) at which the window began that this segment was heard in."""
    start: float
    end: float
    text: str
    tokens: tuple[int, ...]
    temperature: float
    """The temperature that its window was decoded with: above 0, lower ones had failed."""
    avg_logprob: float
    """Mean log-probability of the window's tokens."""
    compression_ratio: float
    """Bytes of the window's text over those of its zlib form: above 2.4, it repeats itself."""
    no_speech_prob: float
    """How probable the model holds it that the window has no speech."""
    words: tuple[Word, ...] | None = None
    """Words, where they were requested."""
    channel: int | None = None
    """The channel, counted from 0, where channels were transcribed apart."""
