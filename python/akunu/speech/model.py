"""A loaded Whisper model: speech in, text out.

>>> import akunu
>>> with akunu.load_whisper("whisper-tiny.en") as model:  # doctest: +SKIP
...     said = model.transcribe("interview.wav")
>>> said.text, said.segments[0].start  # doctest: +SKIP
(' Good morning.', 0.0)
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from akunu import _core
from akunu.common.checks import file_path
from akunu.common.typos import explains_typos
from akunu.errors import AkunuError, ArgumentError, UnsupportedModelError
from akunu.model_facts import MemoryReport
from akunu.options.text_options import LoadOptions
from akunu.speech.activity.voice_activity import (
    SpeechParts,
    SpeechSpan,
    Vad,
    VadOptions,
    speech_spans,
)
from akunu.speech.audio import AudioSource, load_audio
from akunu.speech.files import open_whisper_files
from akunu.speech.mel import HOP, SAMPLE_RATE
from akunu.speech.segment_stream import SegmentStream
from akunu.speech.segments import Segment
from akunu.speech.transcribe_options import (
    USUAL_TEMPERATURES,
    Task,
    TranscribeOptions,
    transcribe_options,
)
from akunu.speech.transcriber import (
    Spectrogram,
    spectrogram,
    stretches,
    transcribe_windows,
)
from akunu.speech.transcription import Transcription
from akunu.speech.vocabulary.tokenizer import WhisperTokenizer
from akunu.speech.window_decoder import Running, WindowDecoder
from akunu.storage.native_load import begin_load

_BATCH_SILENCE_MS = 160.0
"""The shortest pause between stretches, where vad_options say nothing; as in faster-whisper."""
Progress: TypeAlias = Callable[[float, float], None]
"""Called with the seconds of audio that are done, and how many there are."""


@explains_typos
def load_whisper(
    path: str | os.PathLike[str],
    /,
    *,
    device: str = "auto",
    threads: int | None = None,
    kv_type: str = "f16",
    kv_memory: int | None = None,
    gpu_memory: int | None = None,
) -> SpeechModel:
    """Load a Whisper model: a Hugging Face directory, or a file of akunu's (GGUF) or whisper.cpp's.

    The options are those of `akunu.load`; without `kv_memory`, the cache has room for six windows
    of 30 seconds with five beams each. Raises what `akunu.load` raises, and UnsupportedModelError
    for a model that is not Whisper.

    >>> model = load_whisper("whisper-tiny.en")  # doctest: +SKIP
    """
    options = LoadOptions(
        device=device,
        threads=threads,
        kv_type=kv_type,
        kv_memory=kv_memory,
        gpu_memory=gpu_memory,
    )
    where = file_path("path", path)
    if not where.exists():
        raise ArgumentError(
            f"{where}: there is no such file or directory; akunu.pull downloads a model from the "
            f"hub and returns its path"
        )
    files = open_whisper_files(where)
    native = begin_load(where, options, files.alignment_heads).result()
    try:
        if native.audio is None:
            raise UnsupportedModelError(
                f"{where} is a model of text ({native.config['architecture']}); akunu.load loads it"
            )
        filters = files.read_filters(native.audio["n_mels"])
        words = files.read_words()
        settings = files.read_settings(words)
        tokenizer = WhisperTokenizer(words, settings, native.config["vocab_size"])
    except BaseException:
        native.close()
        raise
    return SpeechModel(native, tokenizer, filters, where, options)


class SpeechModel:
    """A Whisper model that is ready; `akunu.load_whisper` makes it.

    Several threads may use one: their windows are decoded side by side, and none changes another.
    Close it, or use it in a `with` block, to free its memory at once.
    """

    def __init__(
        self,
        native: _core.NativeModel,
        tokenizer: WhisperTokenizer,
        filters: NDArray[np.float32],
        path: Path,
        options: LoadOptions,
    ) -> None:
        """Use `akunu.load_whisper`."""
        audio = native.audio
        assert audio is not None
        self._native: _core.NativeModel | None = native
        self._tokenizer = tokenizer
        self._filters = filters
        self._path = path
        self._threads = options.threads if isinstance(options.threads, int) else None
        self._n_frames = audio["n_frames"]
        self._notes = tuple(native.notes)
        self._lock = threading.Lock()

    @property
    def path(self) -> Path:
        """Where the model came from."""
        return self._path

    @property
    def notes(self) -> tuple[str, ...]:
        """What the load decided that you might not expect, a line each."""
        return self._notes

    @property
    def memory(self) -> MemoryReport:
        """Bytes that the model takes, by what they are for."""
        return MemoryReport(self._open().memory)

    @property
    def languages(self) -> tuple[str, ...]:
        """Codes of the languages that the model knows, in its order; ("en",) of an English one."""
        return tuple(self._tokenizer.languages) or ("en",)

    @property
    def is_multilingual(self) -> bool:
        """Whether it knows more than English."""
        return self._tokenizer.is_multilingual

    @overload
    def transcribe(
        self,
        audio: AudioSource,
        *,
        sample_rate: int | None = ...,
        language: str | None = ...,
        task: Task = ...,
        beam_size: int = ...,
        patience: float = ...,
        best_of: int = ...,
        temperature: float | Sequence[float] = ...,
        compression_ratio_threshold: float | None = ...,
        logprob_threshold: float | None = ...,
        no_speech_threshold: float | None = ...,
        condition_on_previous_text: bool = ...,
        prompt: str | Sequence[int] | None = ...,
        prefix: str | None = ...,
        hotwords: str | None = ...,
        suppress_tokens: Sequence[int] = ...,
        suppress_blank: bool = ...,
        without_timestamps: bool = ...,
        max_initial_timestamp: float = ...,
        word_timestamps: bool = ...,
        vad: Vad = ...,
        vad_model: str | os.PathLike[str] | None = ...,
        vad_options: VadOptions | None = ...,
        stream: Literal[False] = ...,
        progress: Progress | None = ...,
        batch: int = ...,
        seed: int = ...,
        priority: int = ...,
    ) -> Transcription: ...
    @overload
    def transcribe(
        self,
        audio: AudioSource,
        *,
        sample_rate: int | None = ...,
        language: str | None = ...,
        task: Task = ...,
        beam_size: int = ...,
        patience: float = ...,
        best_of: int = ...,
        temperature: float | Sequence[float] = ...,
        compression_ratio_threshold: float | None = ...,
        logprob_threshold: float | None = ...,
        no_speech_threshold: float | None = ...,
        condition_on_previous_text: bool = ...,
        prompt: str | Sequence[int] | None = ...,
        prefix: str | None = ...,
        hotwords: str | None = ...,
        suppress_tokens: Sequence[int] = ...,
        suppress_blank: bool = ...,
        without_timestamps: bool = ...,
        max_initial_timestamp: float = ...,
        word_timestamps: bool = ...,
        vad: Vad = ...,
        vad_model: str | os.PathLike[str] | None = ...,
        vad_options: VadOptions | None = ...,
        stream: Literal[True],
        progress: Progress | None = ...,
        batch: int = ...,
        seed: int = ...,
        priority: int = ...,
    ) -> SegmentStream: ...
    @explains_typos
    def transcribe(
        self,
        audio: AudioSource,
        *,
        sample_rate: int | None = None,
        language: str | None = None,
        task: Task = "transcribe",
        beam_size: int = 5,
        patience: float = 1.0,
        best_of: int = 5,
        temperature: float | Sequence[float] = USUAL_TEMPERATURES,
        compression_ratio_threshold: float | None = 2.4,
        logprob_threshold: float | None = -1.0,
        no_speech_threshold: float | None = 0.6,
        condition_on_previous_text: bool = True,
        prompt: str | Sequence[int] | None = None,
        prefix: str | None = None,
        hotwords: str | None = None,
        suppress_tokens: Sequence[int] = (-1,),
        suppress_blank: bool = True,
        without_timestamps: bool = False,
        max_initial_timestamp: float = 1.0,
        word_timestamps: bool = False,
        vad: Vad = True,
        vad_model: str | os.PathLike[str] | None = None,
        vad_options: VadOptions | None = None,
        stream: bool = False,
        progress: Progress | None = None,
        batch: int = 1,
        seed: int = 0,
        priority: int = 0,
    ) -> Transcription | SegmentStream:
        """Return what is said in `audio`; with `stream=True`, its segments as they are heard.

        `audio`, `sample_rate`: as `akunu.speech.audio.load_audio` takes them. `language`: its code,
        "de"; None detects it. `task`: "translate" writes English. `beam_size`, `patience`: of beam
        search at temperature 0; one beam is greedy. `best_of`: texts that are drawn at a
        temperature above 0, of which the likeliest is taken. `temperature`: one, or several that
        are tried in order until a window's text passes `compression_ratio_threshold` (it does
        not repeat itself) and `logprob_threshold` (it is likely). `no_speech_threshold`: a window
        is silent whose probability of no speech is above it and whose text is unlikely; None
        switches a check off. `condition_on_previous_text`: what was said before is the prompt of
        the next window. `prompt`: text, or tokens, as if it had been said before. `prefix`: how the
        first window's text begins. `hotwords`: likely words, at the start of
        every window's prompt.
        `suppress_tokens`: never written; -1 stands for the model's own list. `suppress_blank`: no
        window begins with a space or its end. `without_timestamps`: a segment per window.
        `max_initial_timestamp`: seconds within which a window's first segment begins.
        `word_timestamps`: segments have words with times. `vad`, `vad_model`, `vad_options`: only
        where there is speech, see `speech_spans` (speech/activity); False takes all.
        `progress`: called with the seconds done and all. `batch`: this many stretches of speech at
        a time, none with the text before it as its prompt; a larger `kv_memory` has room for more
        than six, or for more beams. `seed`: of the random numbers. `priority`: as for
        `Model.generate`.

        Raises AudioError for audio that cannot be read, ArgumentError for options that make no
        sense, DeviceError where the device failed.

        >>> model = load_whisper("whisper-tiny.en")  # doctest: +SKIP
        >>> for segment in model.transcribe("talk.flac", stream=True):  # doctest: +SKIP
        ...     print(f"{segment.start:6.2f} {segment.text}")
        """
        options = transcribe_options(
            self._tokenizer,
            self._open().context // 2 - 1,
            language=language,
            task=task,
            beam_size=beam_size,
            patience=patience,
            best_of=best_of,
            temperature=temperature,
            compression_ratio_threshold=compression_ratio_threshold,
            logprob_threshold=logprob_threshold,
            no_speech_threshold=no_speech_threshold,
            condition_on_previous_text=condition_on_previous_text,
            prompt=prompt,
            prefix=prefix,
            hotwords=hotwords,
            suppress_tokens=suppress_tokens,
            suppress_blank=suppress_blank,
            without_timestamps=without_timestamps,
            max_initial_timestamp=max_initial_timestamp,
            word_timestamps=word_timestamps,
            vad=vad,
            vad_model=vad_model,
            vad_options=vad_options,
            batch=batch,
            seed=seed,
            priority=priority,
        )
        heard = self._begin(load_audio(audio, sample_rate=sample_rate), options, progress)
        return heard if stream else heard.result()

    async def transcribe_async(self, audio: AudioSource, **options: Any) -> Transcription:
        """Return what is said in `audio`, computed in a thread; options are those of `transcribe`.

        Where the coroutine is cancelled, the work ends.
        """
        if options.pop("stream", False):
            raise ArgumentError("transcribe_async returns a whole transcription; leave out stream")
        heard = await asyncio.to_thread(lambda: self.transcribe(audio, stream=True, **options))
        try:
            return await asyncio.to_thread(heard.result)
        finally:
            heard.cancel()

    def _begin(
        self,
        samples: NDArray[np.float32],
        options: TranscribeOptions,
        progress: Progress | None,
    ) -> SegmentStream:
        duration = len(samples) / SAMPLE_RATE
        spans = [SpeechSpan(0, len(samples))]
        if options.vad is not False:
            spans = speech_spans(
                samples,
                options.vad,
                options=self._vad_options(options),
                vad_model=options.vad_model,
            )
        parts = SpeechParts(samples, spans)
        probabilities: dict[str, float] | None = None
        language = options.language
        if language is None:
            heard = parts.samples if spans else samples
            probabilities = self._language_probabilities(heard, options.priority)
            language = next(iter(probabilities))
        if options.word_timestamps and not (self._open().audio or {})["n_alignment_heads"]:
            raise UnsupportedModelError(
                f"{self._path}: the model names no alignment_heads (from generation_config.json), "
                f"so times of words cannot be computed"
            )
        running = Running()
        work = _Work(self, options, language, running, duration, progress)
        hear = work.side_by_side if options.batch > 1 else work.one_by_one
        return SegmentStream(
            hear(parts, spans, samples),
            running,
            work.decoders,
            task=options.task,
            duration=duration,
            duration_after_vad=None if options.vad is False else parts.duration,
            language=language,
            probabilities=probabilities,
        )

    def _vad_options(self, options: TranscribeOptions) -> VadOptions | None:
        """Return what makes spans; those that are decoded side by side fit into windows."""
        if options.batch == 1:
            return options.vad_options
        usual = VadOptions(min_silence_duration_ms=_BATCH_SILENCE_MS)
        chosen = options.vad_options or usual
        window = self._n_frames * HOP / SAMPLE_RATE
        longest = min(chosen.max_speech_duration_s, window)
        return replace(chosen, max_speech_duration_s=longest)

    def detect_language(
        self, audio: AudioSource, *, sample_rate: int | None = None
    ) -> dict[str, float]:
        """Return the probability of every language for the first 30 seconds, the likeliest first.

        Raises UnsupportedModelError for a model that knows only English.
        """
        if not self.is_multilingual:
            raise UnsupportedModelError(f"{self._path} knows only English")
        return self._language_probabilities(load_audio(audio, sample_rate=sample_rate), 0)

    def _language_probabilities(
        self, samples: NDArray[np.float32], priority: int
    ) -> dict[str, float]:
        window = self._spectrogram(samples[: self._n_frames * HOP]).at(0)
        start = np.array([self._tokenizer.special.start], np.uint32)
        logits = self._open().logits(start, 0, priority, window=window)[0].astype(np.float64)
        tokens = self._tokenizer.languages
        of_languages = logits[list(tokens.values())]
        weights = np.exp(of_languages - of_languages.max())
        found = dict(zip(tokens, (weights / weights.sum()).tolist(), strict=True))
        return dict(sorted(found.items(), key=lambda each: -each[1]))

    def _spectrogram(self, samples: NDArray[np.float32]) -> Spectrogram:
        return spectrogram(samples, self._filters, self._n_frames, self._threads)

    def close(self) -> None:
        """Free the model's memory; whatever is under way ends with an AkunuError."""
        with self._lock:
            native, self._native = self._native, None
        if native is not None:
            native.close()

    def _open(self) -> _core.NativeModel:
        native = self._native
        if native is None:
            raise AkunuError("the model is closed; load it again")
        return native

    def __enter__(self) -> SpeechModel:
        """Return the model itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the model."""
        self.close()


class _Work:
    """The work after speech and language are detected."""

    def __init__(
        self,
        model: SpeechModel,
        options: TranscribeOptions,
        language: str,
        running: Running,
        duration: float,
        progress: Progress | None,
    ) -> None:
        self.decoders: list[WindowDecoder] = []
        self._model = model
        self._options = options
        self._language = language
        self._running = running
        self._duration = duration
        self._progress = progress

    def one_by_one(
        self, parts: SpeechParts, spans: Sequence[SpeechSpan], _: NDArray[np.float32]
    ) -> Iterator[Segment]:
        """Yield the segments of all speech in one piece, with the times of the whole audio."""
        if spans:
            for segment in self._segments(
                parts.samples, lambda seconds: self._tell(parts.original(seconds))
            ):
                yield parts.restored(segment)
        self._tell(self._duration)

    def side_by_side(
        self, _: SpeechParts, spans: Sequence[SpeechSpan], samples: NDArray[np.float32]
    ) -> Iterator[Segment]:
        """Yield the segments of stretches of speech, several of which are decoded at a time."""
        windows = stretches(spans, self._model._n_frames * HOP)
        n_segments = 0
        with ThreadPoolExecutor(self._options.batch) as threads:

            def hear(stretch: Sequence[SpeechSpan]) -> list[Segment]:
                self._running.check()
                parts = SpeechParts(samples, stretch)
                first = stretch[0].start // HOP
                return [
                    replace(parts.restored(each), seek=first + each.seek)
                    for each in self._segments(parts.samples, _tell_nobody)
                ]

            try:
                for stretch, segments in zip(windows, threads.map(hear, windows), strict=True):
                    for segment in segments:
                        yield replace(segment, id=n_segments)
                        n_segments += 1
                    self._tell(stretch[-1].end / SAMPLE_RATE)
            except BaseException:
                self._running.cancel()
                raise
        self._tell(self._duration)

    def _segments(
        self, samples: NDArray[np.float32], progress: Callable[[float], None]
    ) -> Iterator[Segment]:
        model = self._model
        decoder = WindowDecoder(model._open(), model._tokenizer, self._options, self._running)
        self.decoders.append(decoder)
        return transcribe_windows(
            model._spectrogram(samples),
            decoder,
            model._tokenizer,
            self._options,
            self._language,
            progress,
        )

    def _tell(self, seconds: float) -> None:
        if self._progress is not None:
            self._progress(min(seconds, self._duration), self._duration)


def _tell_nobody(_: float) -> None:
    """Stretches that are decoded side by side are reported when their turn comes."""
