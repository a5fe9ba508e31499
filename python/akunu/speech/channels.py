"""Channels apart: each speaker has a microphone, as in an interview or a call."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from akunu.errors import ArgumentError
from akunu.speech.audio import AudioSource, load_audio
from akunu.speech.mel import SAMPLE_RATE
from akunu.speech.model import Progress, SpeechModel
from akunu.speech.transcription import Transcription


def transcribe_channels(
    model: SpeechModel,
    audio: AudioSource,
    *,
    sample_rate: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Transcription:
    """Transcribe each channel separately; segments name their channel and are sorted by time.

    `audio`, `sample_rate`: as `load_audio` takes them. `options`: those of
    `SpeechModel.transcribe`, except `stream`. The language is that of the channel with the longest
    text. Raises what `load_audio` and `transcribe` raise.
    """
    if "stream" in options:
        raise ArgumentError("stream needs mixed channels: separate channels are sorted at the end")
    return transcribe_apart(
        model,
        load_audio(audio, sample_rate=sample_rate, channels="apart"),
        progress=progress,
        **options,
    )


def transcribe_apart(
    model: SpeechModel,
    channels: NDArray[np.float32],
    *,
    progress: Progress | None = None,
    **options: Any,
) -> Transcription:
    """Likewise of samples at 16 kHz, [channels, n]."""
    seconds = channels.shape[1] / SAMPLE_RATE
    said = []
    for number, samples in enumerate(channels):

        def tell(done: float, of: float, before: float = number * seconds) -> None:
            if progress is not None:
                progress(before + done, len(channels) * seconds)

        said.append(model.transcribe(samples, progress=tell, **options))
    return joined(said)


def joined(said: list[Transcription]) -> Transcription:
    """Return transcriptions of the channels of one recording as one."""
    segments = sorted(
        (
            replace(segment, channel=channel)
            for channel, each in enumerate(said)
            for segment in each.segments
        ),
        key=lambda segment: (segment.start, segment.channel),
    )
    main = max(said, key=lambda each: len(each.text))
    after_vad = [each.duration_after_vad for each in said if each.duration_after_vad is not None]
    statistics: Counter[str] = Counter()
    for each in said:
        statistics.update(each.statistics)
    return replace(
        main,
        text="".join(segment.text for segment in segments),
        segments=tuple(replace(each, id=index) for index, each in enumerate(segments)),
        duration_after_vad=sum(after_vad) if after_vad else None,
        statistics=dict(statistics),
    )
