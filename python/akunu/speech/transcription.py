"""What a transcription is: its text, language and segments, in faster-whisper's words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from akunu.speech.segments import Segment, Word
from akunu.speech.writers import render, subtitle_layout


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
    """Code of the language that was passed or detected: "en"."""
    duration: float
    """Seconds of audio."""
    language_probability: float = 1.0
    """How probable the detected language was; 1 where it was passed."""
    language_probabilities: Mapping[str, float] | None = None
    """The probability of every language, if it was detected."""
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

        `layout`: for subtitles, the fields of `akunu.speech.writers.SubtitleLayout`. Raises
        ArgumentError for other formats and fields, and for a layout where words have no times.
        """
        return render(self, format, subtitle_layout(layout))
