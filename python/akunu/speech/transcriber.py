"""From samples to segments: window after window, each beginning where the last one's text ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from akunu import _core
from akunu.speech.activity.voice_activity import SpeechSpan
from akunu.speech.mel import HOP, SAMPLE_RATE, log_mel
from akunu.speech.segments import Segment
from akunu.speech.transcribe_options import TranscribeOptions
from akunu.speech.vocabulary.tokenizer import SECONDS_PER_TIMESTAMP, WhisperTokenizer
from akunu.speech.window_decoder import WindowDecoder, WindowText

_FRAMES_PER_TIMESTAMP = round(SECONDS_PER_TIMESTAMP * SAMPLE_RATE / HOP)
_SECONDS_PER_FRAME = HOP / SAMPLE_RATE
_RESET_ABOVE = 0.5  # what was drawn at a higher temperature, or failed there, is not a good prompt


@dataclass(frozen=True, slots=True)
class Spectrogram:
    """The frames of audio, and of a window's silence after it."""

    mel: NDArray[np.float32]
    n_frames: int
    """Frames of the audio."""
    window: int
    """Frames that the encoder sees at once."""

    def at(self, frame: int) -> _core.SpeechWindow:
        """Return the window that begins with a frame."""
        return _core.SpeechWindow(self.mel[:, frame : frame + self.window])


def spectrogram(
    samples: NDArray[np.float32],
    filters: NDArray[np.float32],
    window: int,
    threads: int | None,
) -> Spectrogram:
    """Return the frames of samples at 16 kHz; `filters`: the model's, [n_mels, 201]."""
    mel = log_mel(samples, filters, padding=window * HOP, threads=threads)
    return Spectrogram(mel, mel.shape[1] - window, window)


def split_text(
    tokens: Sequence[int], first_timestamp: int, n_frames: int
) -> tuple[list[tuple[int, int, tuple[int, ...]]], int]:
    """Return (first frame, last frame, tokens) of each segment, and the frames that are done.

    `n_frames`: of the window that are audio; no time is later. Two timestamps in a row are the end
    of a segment and the beginning of the next. What follows the last of such pairs was cut off by
    the window's end, and is heard again in the next one.

    >>> split_text([100, 7, 110, 110, 8], 100, 3000)
    ([(0, 20, (100, 7, 110))], 20)
    """
    is_timestamp = [token >= first_timestamp for token in tokens]
    ends_alone = len(tokens) >= 2 and is_timestamp[-1] and not is_timestamp[-2]
    cuts = [i for i in range(1, len(tokens)) if is_timestamp[i] and is_timestamp[i - 1]]

    def frame(token: int) -> int:
        return min((token - first_timestamp) * _FRAMES_PER_TIMESTAMP, n_frames)

    if not cuts:
        times = [token for token in tokens if token >= first_timestamp]
        end = frame(times[-1]) if times and times[-1] != first_timestamp else n_frames
        return [(0, end, tuple(tokens))], n_frames
    if ends_alone:
        cuts.append(len(tokens))
    segments = []
    begin = 0
    for cut in cuts:
        part = tuple(tokens[begin:cut])
        segments.append((frame(part[0]), frame(part[-1]), part))
        begin = cut
    return segments, n_frames if ends_alone else frame(tokens[begin - 1])


def stretches(spans: Sequence[SpeechSpan], most: int) -> list[list[SpeechSpan]]:
    """Return neighbouring spans of speech together, as many as have at most this many samples.

    >>> stretches([SpeechSpan(0, 2), SpeechSpan(3, 5), SpeechSpan(6, 20)], 5)
    [[SpeechSpan(start=0, end=2), SpeechSpan(start=3, end=5)], [SpeechSpan(start=6, end=20)]]
    """
    found: list[list[SpeechSpan]] = []
    n_samples = 0
    for span in spans:
        n_samples += span.end - span.start
        if not found or n_samples > most:
            found.append([])
            n_samples = span.end - span.start
        found[-1].append(span)
    return found


def transcribe_windows(
    sound: Spectrogram,
    decoder: WindowDecoder,
    tokenizer: WhisperTokenizer,
    options: TranscribeOptions,
    language: str | None,
    progress: Callable[[float], None],
) -> Iterator[Segment]:
    """Yield the segments of audio; `progress` is called with the seconds that are done."""
    said: list[int] = list(options.prompt)
    said_since = 0  # what is the next window's prompt
    seek = 0
    n_segments = 0
    spoken_until = 0.0
    while seek < sound.n_frames:
        n_frames = min(sound.window, sound.n_frames - seek)
        window = sound.at(seek)
        text = decoder.decode(
            window,
            language,
            said[said_since:],
            is_first=seek == 0,
            seed=options.seed + seek,
        )
        if text.is_silent(options):
            seek += n_frames
            progress(seek * _SECONDS_PER_FRAME)
            continue
        if options.without_timestamps:  # a timestamp that is written all the same says nothing
            parts, done = [(0, n_frames, text.tokens)], n_frames
        else:
            parts, done = split_text(text.tokens, tokenizer.special.first_timestamp, n_frames)
        segments = [
            _segment(seek, begin, end, tokens, text, tokenizer) for begin, end, tokens in parts
        ]
        segments = [each for each in segments if each.start < each.end and each.text.strip()]
        if options.word_timestamps and segments:
            segments, spoken_until = decoder.with_words(
                window, segments, language or "en", n_frames, spoken_until
            )
            # What was cut off begins after the last word, or where the last segment ended.
            if done < n_frames and segments[-1].words:
                done = round(segments[-1].words[-1].end / _SECONDS_PER_FRAME) - seek
        for segment in segments:
            said += segment.tokens
            yield replace(segment, id=n_segments)
            n_segments += 1
        if not options.condition_on_previous_text or text.last_temperature > _RESET_ABOVE:
            said_since = len(said)
        # A text that ends where it began would be heard for ever.
        seek += done if done > 0 else n_frames
        progress(min(seek, sound.n_frames) * _SECONDS_PER_FRAME)


def _segment(
    seek: int,
    begin: int,
    end: int,
    tokens: tuple[int, ...],
    text: WindowText,
    tokenizer: WhisperTokenizer,
) -> Segment:
    return Segment(
        id=0,
        seek=seek,
        start=round((seek + begin) * _SECONDS_PER_FRAME, 2),
        end=round((seek + end) * _SECONDS_PER_FRAME, 2),
        text=tokenizer.decode(tokens),
        tokens=tokens,
        temperature=text.temperature,
        avg_logprob=text.avg_logprob,
        compression_ratio=text.compression_ratio,
        no_speech_prob=text.no_speech_prob,
    )
