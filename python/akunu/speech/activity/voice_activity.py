"""Voice activity: where audio has speech, the speech alone, and times back in the whole audio."""

from __future__ import annotations

import math
import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from akunu.common.checks import number
from akunu.errors import ArgumentError
from akunu.speech.activity.energy_detector import speech_probabilities
from akunu.speech.activity.silero import SileroDetector
from akunu.speech.mel import SAMPLE_RATE, mono_samples
from akunu.speech.segments import Segment, Word

Vad: TypeAlias = "bool | Literal['energy', 'silero']"

CHUNK = 512
"""Samples that have one probability of speech: 32 ms."""
_HYSTERESIS = 0.15
_PAUSE = 5
"""Chunks without speech at which a span that is too long is cut: 160 ms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VadOptions:
    """How probabilities of speech become spans; names and defaults are faster-whisper's."""

    threshold: float = 0.5
    """Speech begins where its probability reaches this, and continues down to 0.15 less."""
    min_speech_duration_ms: float = 0.0
    """Shorter speech is none."""
    min_silence_duration_ms: float = 2000.0
    """Shorter silence belongs to the speech around it."""
    speech_pad_ms: float = 400.0
    """How much is kept before and after speech."""
    max_speech_duration_s: float = math.inf
    """Longer spans, paddings included, are cut where speech is least probable; 1 at least."""

    def __post_init__(self) -> None:
        """Raise ArgumentError for values that make no sense."""
        number("threshold", self.threshold, 0.0, 1.0, above=True)
        for name in ("min_speech_duration_ms", "min_silence_duration_ms", "speech_pad_ms"):
            number(name, getattr(self, name), 0.0, 1e9)
        longest = self.max_speech_duration_s
        if longest != math.inf:
            number("max_speech_duration_s", longest, 1.0 + 2 * self.speech_pad_ms / 1000, 1e9)


@dataclass(frozen=True, slots=True)
class SpeechSpan:
    """Speech: samples [start, end)."""

    start: int
    end: int


def speech_spans(
    samples: NDArray[np.float32],
    vad: Vad = "energy",
    *,
    options: VadOptions | None = None,
    vad_model: str | os.PathLike[str] | None = None,
) -> list[SpeechSpan]:
    """Return where samples at 16 kHz have speech.

    `vad`: "energy" (or True) is a detector of ours, "silero" the neural one, by onnxruntime, with
    the file of an installed silero-vad or that of `vad_model`; False is all of it. Raises
    ArgumentError for another detector; AkunuError where what "silero" needs is not there.

    >>> speech_spans(np.zeros(16_000, np.float32))
    []
    """
    wave = mono_samples(samples)
    if vad_model is not None and vad != "silero":
        raise ArgumentError(f'vad_model needs vad="silero", and vad is {vad!r}')
    if vad is False:
        return [SpeechSpan(0, len(wave))] if len(wave) else []
    options = options or VadOptions()
    if vad is True or vad == "energy":
        return spans_of(speech_probabilities(wave), len(wave), options)
    if vad == "silero":
        return spans_of(SileroDetector(vad_model).probabilities(wave), len(wave), options)
    raise ArgumentError(f'vad must be True, False, "energy" or "silero", not {vad!r}')


def spans_of(
    probabilities: Sequence[float] | NDArray[np.float32], n_samples: int, options: VadOptions
) -> list[SpeechSpan]:
    """Return the spans of speech, of which each chunk of 512 samples has a probability."""
    pad = int(options.speech_pad_ms * SAMPLE_RATE / 1000)
    found = _spans(probabilities, n_samples, options)
    if options.max_speech_duration_s != math.inf:
        most = int(options.max_speech_duration_s * SAMPLE_RATE) - 2 * pad
        found = [part for span in found for part in _cut(span, probabilities, most)]
    padded: list[SpeechSpan] = []
    for index, span in enumerate(found):
        # Two spans share a silence that is too short for both paddings.
        before = found[index - 1].end if index else None
        after = found[index + 1].start if index + 1 < len(found) else None
        start = span.start - (pad if before is None else min(pad, (span.start - before) // 2))
        end = span.end + (pad if after is None else min(pad, (after - span.end) // 2))
        padded.append(SpeechSpan(max(0, start), min(n_samples, end)))
    return padded


def _spans(
    probabilities: Sequence[float] | NDArray[np.float32], n_samples: int, options: VadOptions
) -> list[SpeechSpan]:
    lower = max(options.threshold - _HYSTERESIS, 0.01)
    shortest = options.min_speech_duration_ms * SAMPLE_RATE / 1000
    silence = options.min_silence_duration_ms * SAMPLE_RATE / 1000
    found: list[SpeechSpan] = []
    start: int | None = None
    quiet_since: int | None = None
    for index, probability in enumerate(probabilities):
        at = index * CHUNK
        if probability >= options.threshold:
            quiet_since = None
            if start is None:
                start = at
        elif start is not None and probability < lower:
            if quiet_since is None:
                quiet_since = at
            if at - quiet_since >= silence:
                if quiet_since - start > shortest:
                    found.append(SpeechSpan(start, quiet_since))
                start = quiet_since = None
    if start is not None and n_samples - start > shortest:
        found.append(SpeechSpan(start, n_samples))
    return found


def _cut(
    span: SpeechSpan, probabilities: Sequence[float] | NDArray[np.float32], most: int
) -> Iterator[SpeechSpan]:
    """Yield a span as parts of at most this many samples, each but the last at least half of
    that."""
    start = span.start
    while span.end - start > most:
        # The last of the places where 160 ms have the least speech.
        first, last = (start + most // 2) // CHUNK, (start + most) // CHUNK
        likely = np.asarray(probabilities[first:last], np.float64)
        width = min(_PAUSE, len(likely))
        sums = np.convolve(likely, np.ones(width), "valid")
        at = len(sums) - 1 - int(np.argmin(sums[::-1]))
        end = (first + at + width // 2) * CHUNK
        yield SpeechSpan(start, end)
        start = end
    yield SpeechSpan(start, span.end)


class SpeechParts:
    """The speech of audio in one piece, and what its times are in the whole audio.

    >>> parts = SpeechParts(np.arange(48_000, dtype=np.float32), [SpeechSpan(16_000, 32_000)])
    >>> len(parts.samples), parts.original(0.5)
    (16000, 1.5)
    """

    def __init__(self, samples: NDArray[np.float32], spans: Sequence[SpeechSpan]) -> None:
        """Join the spans, which are in order and apart."""
        pieces = [samples[span.start : span.end] for span in spans]
        self.samples = np.concatenate(pieces) if pieces else samples[:0]
        """The samples of all spans."""
        self._ends = list(accumulate(span.end - span.start for span in spans))
        self._removed = [
            span.end - joined_end for span, joined_end in zip(spans, self._ends, strict=True)
        ]

    @property
    def duration(self) -> float:
        """Seconds of speech."""
        return len(self.samples) / SAMPLE_RATE

    def original(self, seconds: float, *, is_end: bool = False) -> float:
        """Return the time in the whole audio; where spans meet, the later one's, or where it ends.

        `is_end`: the time is the end of something, which at a seam ended with the earlier span.
        """
        return self._moved(seconds, self._span_at(seconds, is_end=is_end))

    def restored(self, segment: Segment) -> Segment:
        """Return a segment of the speech with the times of the whole audio."""
        if segment.words:
            words = tuple(self._restored_word(word) for word in segment.words)
            return replace(segment, start=words[0].start, end=words[-1].end, words=words)
        return replace(
            segment,
            start=self.original(segment.start),
            end=self.original(segment.end, is_end=True),
        )

    def _restored_word(self, word: Word) -> Word:
        # No one speaks half of a word, pauses, and continues: its middle says which span it is of.
        span = self._span_at((word.start + word.end) / 2, is_end=False)
        return replace(word, start=self._moved(word.start, span), end=self._moved(word.end, span))

    def _span_at(self, seconds: float, *, is_end: bool) -> int:
        at = round(seconds * SAMPLE_RATE)
        index = bisect_right(self._ends, at - 1 if is_end else at)
        return min(index, len(self._ends) - 1)

    def _moved(self, seconds: float, span: int) -> float:
        if not self._ends:
            return seconds
        return round(seconds + self._removed[span] / SAMPLE_RATE, 3)
