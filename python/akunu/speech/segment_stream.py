"""The segments of a transcription, as they are heard."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

from akunu.speech.segments import Segment
from akunu.speech.transcribe_options import Task
from akunu.speech.transcription import Transcription
from akunu.speech.window_decoder import Running, WindowDecoder


class SegmentStream(Iterator[Segment]):
    """Segments, each as soon as its window is decoded; what `transcribe(stream=True)` returns.

    Leaving it before its end computes no further windows.
    """

    def __init__(
        self,
        segments: Iterator[Segment],
        running: Running,
        decoders: Sequence[WindowDecoder],
        *,
        task: Task,
        duration: float,
        duration_after_vad: float | None,
        language: str,
        probabilities: Mapping[str, float] | None,
    ) -> None:
        """Use `SpeechModel.transcribe`."""
        self._segments = segments
        self._running = running
        self._decoders = decoders
        self._heard: list[Segment] = []
        self._began = time.monotonic()
        self.task = task
        self.duration = duration
        """Seconds of audio."""
        self.duration_after_vad = duration_after_vad
        """Seconds that voice activity detection left; None without it."""
        self.language = language
        """Code of the language that was passed or detected."""
        self.language_probabilities = probabilities
        """The probability of every language, where it was detected."""

    def __next__(self) -> Segment:
        """Return the next segment; the engine computes its window meanwhile."""
        segment = next(self._segments)
        self._heard.append(segment)
        return segment

    def cancel(self) -> None:
        """End the work, from any thread; a thread that waits for a segment gets an AkunuError."""
        self._running.cancel()

    def close(self) -> None:
        """The same, under the name that generators have for it."""
        self.cancel()

    @property
    def transcription(self) -> Transcription:
        """What `result` returns."""
        return self.result()

    def result(self) -> Transcription:
        """Return the whole transcription, once the rest of it is computed."""
        for _ in self:
            pass
        probabilities = self.language_probabilities
        return Transcription(
            text="".join(segment.text for segment in self._heard),
            segments=tuple(self._heard),
            language=self.language,
            duration=self.duration,
            language_probability=probabilities[self.language] if probabilities else 1.0,
            language_probabilities=probabilities,
            duration_after_vad=self.duration_after_vad,
            task=self.task,
            statistics={
                "seconds": time.monotonic() - self._began,
                "windows": sum(decoder.n_windows for decoder in self._decoders),
                "failed_windows": sum(decoder.n_failed for decoder in self._decoders),
                "tokens": sum(decoder.n_tokens for decoder in self._decoders),
            },
        )
