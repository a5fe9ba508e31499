"""What a transcription is: text, segments and words with their times, in faster-whisper's words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


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
    """Words, where they were asked for."""
    channel: int | None = None
    """The channel, counted from 0, where channels were transcribed apart."""


@dataclass(frozen=True, slots=True)
class Transcription:
    """A whole transcription.

    >>> said = Transcription(text=" Hi.", segments=(), language="en", duration=1.0)
    >>> said.language, said.duration
    ('en', 1.0)
    """

    text: str
    """The text of all segments."""
    segments: tuple[Segment, ...]
    language: str
    """Code of the language that was given or detected: "en"."""
    duration: float
    """Seconds of audio."""
    language_probability: float = 1.0
    """How probable the detected language was; 1 where it was given."""
    language_probabilities: Mapping[str, float] | None = None
    """Of every language, where it was detected."""
    duration_after_vad: float | None = None
    """Seconds that voice activity detection left; None without it."""
    task: str = "transcribe"
    """"transcribe" or "translate"."""
    statistics: Mapping[str, float] = field(default_factory=dict)
    """What the work took: seconds and counts by name."""

    @property
    def words(self) -> tuple[Word, ...] | None:
        """Words of all segments; None where they were not asked for."""
        if not any(segment.words is not None for segment in self.segments):
            return None
        return tuple(word for segment in self.segments for word in segment.words or ())

    def to_dict(self) -> dict[str, Any]:
        """Return everything as dicts and numbers; words and channels only where there are any."""
        found = asdict(self)
        for segment in found["segments"]:
            for name in ("words", "channel"):
                if segment[name] is None:
                    del segment[name]
        return found

    def render(self, format: str, **layout: Any) -> str:
        """Return the text of a file: "txt", "srt", "vtt", "tsv", "json", "lrc" or "csv".

        `layout`: of subtitles, the fields of `akunu.speech.writers.SubtitleLayout`. Raises
        ArgumentError for other formats and fields, and for a layout where words have no times.
        """
        from akunu.speech.writers import render, subtitle_layout

        return render(self, format, subtitle_layout(layout))
