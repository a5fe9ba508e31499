"""A window of speech becomes tokens: drawn at one temperature after the other until they pass."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from akunu import _core
from akunu.errors import AkunuError
from akunu.options.text_options import SamplingOptions
from akunu.speech.beam_search import Hypothesis, Tokens, beam_search
from akunu.speech.segments import Segment
from akunu.speech.transcribe_options import TranscribeOptions
from akunu.speech.vocabulary.tokenizer import SECONDS_PER_TIMESTAMP, WhisperTokenizer
from akunu.speech.words import (
    TimedWord,
    fit_to_segment,
    timed_words,
    token_times,
    usual_duration,
)


class CancelledError(AkunuError):
    """The transcription was cancelled."""


class Running:
    """What the engine computes for one transcription, so that another thread can end it."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._lock = threading.Lock()
        self._generations: set[_core.Generation] = set()
        self._is_cancelled = False

    def add(self, generation: _core.Generation) -> None:
        """Count a generation among those that `cancel` ends."""
        with self._lock:
            self._generations.add(generation)
            if self._is_cancelled:
                generation.cancel()

    def remove(self, generation: _core.Generation) -> None:
        """The generation is over."""
        with self._lock:
            self._generations.discard(generation)

    def cancel(self) -> None:
        """End everything; a thread that waits for it gets a CancelledError."""
        with self._lock:
            self._is_cancelled = True
            for generation in self._generations:
                generation.cancel()

    def check(self) -> None:
        """Raise CancelledError if it was cancelled."""
        if self._is_cancelled:
            raise CancelledError("the transcription was cancelled")


@dataclass(frozen=True, slots=True)
class WindowText:
    """What was heard in a window."""

    tokens: tuple[int, ...]
    """Text and timestamps, without the end of the text."""
    temperature: float
    last_temperature: float
    """The last one tried: a higher one, where none passed and this text was the best."""
    avg_logprob: float
    compression_ratio: float
    no_speech_prob: float

    def is_silent(self, options: TranscribeOptions) -> bool:
        """Whether the window has no speech, and the text that was heard is none."""
        if options.no_speech_threshold is None:
            return False
        is_likely = (
            options.logprob_threshold is not None and self.avg_logprob > options.logprob_threshold
        )
        return self.no_speech_prob > options.no_speech_threshold and not is_likely

    def repeats_itself(self, options: TranscribeOptions) -> bool:
        """Whether the text compresses better than text does."""
        most = options.compression_ratio_threshold
        return most is not None and self.compression_ratio > most

    def fails(self, options: TranscribeOptions) -> bool:
        """Whether another temperature shall be tried."""
        least = options.logprob_threshold
        is_unlikely = least is not None and self.avg_logprob < least
        is_silence = is_unlikely and (
            options.no_speech_threshold is not None
            and self.no_speech_prob > options.no_speech_threshold
        )
        return (self.repeats_itself(options) or is_unlikely) and not is_silence


class WindowDecoder:
    """Decodes windows of one transcription."""

    def __init__(
        self,
        native: _core.NativeModel,
        tokenizer: WhisperTokenizer,
        options: TranscribeOptions,
        running: Running,
    ) -> None:
        """Use what `SpeechModel` has."""
        self._native = native
        self._tokenizer = tokenizer
        self._options = options
        self._running = running
        self._context = native.context
        self._n_alignment_heads = (native.audio or {}).get("n_alignment_heads", 0)
        self.n_tokens = 0
        self.n_windows = self.n_failed = 0

    def decode(
        self,
        window: _core.SpeechWindow,
        language: str | None,
        previous: Sequence[int],
        *,
        is_first: bool,
        seed: int,
    ) -> WindowText:
        """Return the text of a window. `previous`: tokens that were said before."""
        self.n_windows += 1
        prompt, start = self._prompt(language, previous, is_first=is_first)
        pending = self._native.start_logits(
            np.array(prompt[: start + 1], np.uint32), start, self._options.priority, window=window
        )
        tried: list[WindowText] = []
        silence: float | None = None
        for temperature in self._options.temperatures:
            if temperature == 0 and self._options.beam_size > 1:
                drawn = self._search(window, prompt)
            else:
                drawn = self._draw(window, prompt, temperature, seed)
            if silence is None:
                silence = self._probability_of_silence(pending.result()[0])
            text = self._judged(drawn, temperature, silence)
            if not text.fails(self._options):
                return text
            tried.append(text)
        self.n_failed += 1
        passed = [text for text in tried if not text.repeats_itself(self._options)]
        best = max(passed or tried, key=lambda text: text.avg_logprob)
        return replace(best, last_temperature=tried[-1].temperature)

    def with_words(
        self,
        window: _core.SpeechWindow,
        segments: Sequence[Segment],
        language: str,
        n_frames: int,
        spoken_until: float,
    ) -> tuple[list[Segment], float]:
        """Return a window's segments with their words, and when the last word ends.

        `n_frames`: of the window that are audio. `spoken_until`: when the last word before ends.
        """
        offset = segments[0].seek * SECONDS_PER_TIMESTAMP / 2
        end = self._tokenizer.special.end_of_text
        texts = [[token for token in each.tokens if token < end] for each in segments]
        words = self._aligned(window, texts, language, n_frames)
        usual = usual_duration([word for own in words for word in own])
        found = []
        for segment, own in zip(segments, words, strict=True):
            for word in own:
                word.start, word.end = offset + word.start, offset + word.end
            timed = segment
            if own:
                begin, stop = fit_to_segment(own, segment.start, segment.end, usual, spoken_until)
                timed = replace(segment, start=round(begin, 2), end=round(stop, 2))
                spoken_until = stop
            found.append(replace(timed, words=tuple(word.finished() for word in own)))
        return found, spoken_until

    def _aligned(
        self,
        window: _core.SpeechWindow,
        texts: Sequence[Sequence[int]],
        language: str,
        n_frames: int,
    ) -> list[list[TimedWord]]:
        special = self._tokenizer.special
        start = self._tokenizer.start_of(language, self._options.task)
        tokens = [token for text in texts for token in text]
        # A text that fills the context has no place for its end, whose row is of no use.
        end = [special.end_of_text] * (len(start) + 1 + len(tokens) < self._context)
        row = np.array([*start, special.no_timestamps, *tokens, *end], np.uint32)
        self._running.check()
        pending = self._native.start_alignment(row, window, priority=self._options.priority)
        scored = self._native.start(
            row,
            max_tokens=0,
            stop_ids=[],
            sampling=SamplingOptions(temperature=0.0).packed(seed=0),
            logit_bias={},
            prompt_logprobs=0,
            priority=self._options.priority,
            window=window,
        )
        while scored.next() is not None:
            pass
        logprobs = scored.prompt_logprobs()[0][len(start) : len(start) + len(tokens)]
        weights = pending.result().reshape(len(row), self._n_alignment_heads, -1)
        wanted = slice(len(start), len(start) + 1 + len(tokens))
        times = token_times(weights, wanted, max(1, n_frames // 2))
        return timed_words(self._tokenizer, texts, language, times, logprobs)

    def _prompt(
        self, language: str | None, previous: Sequence[int], *, is_first: bool
    ) -> tuple[list[int], int]:
        """Return the tokens that are passed, and where among them the start is."""
        options, special = self._options, self._tokenizer.special
        prefix = options.prefix if is_first else ()
        hotwords = () if prefix else options.hotwords
        room = self._context // 2 - 1 - len(prefix) - len(hotwords)
        before = [*hotwords, *(previous[-room:] if room > 0 else ())]
        prompt = [special.previous, *before] if before else []
        start = len(prompt)
        prompt += self._tokenizer.start_of(language, options.task)
        if options.without_timestamps:
            prompt.append(special.no_timestamps)
        elif prefix:
            prompt.append(special.first_timestamp)
        return [*prompt, *prefix], start

    def _rules(self, n_before: int) -> _core.TranscriptionRules:
        """Return what may follow after this many tokens."""
        options, special = self._options, self._tokenizer.special
        latest = round(options.max_initial_timestamp / SECONDS_PER_TIMESTAMP)
        return _core.TranscriptionRules(
            first_timestamp=0 if options.without_timestamps else special.first_timestamp,
            end_of_text=special.end_of_text,
            last_initial=special.first_timestamp + latest,
            n_before=n_before,
            banned=options.banned,
            banned_first=options.banned_first,
        )

    def _search(self, window: _core.SpeechWindow, prompt: Sequence[int]) -> Hypothesis:
        """Each step is a task per text, which finds all but its last token in the cache."""
        options = self._options
        rules = self._rules(len(prompt))
        sampling = SamplingOptions(temperature=0.0).packed(seed=0)

        def expand(texts: Sequence[Tokens]) -> list[list[tuple[int, float]]]:
            self._running.check()
            self.n_tokens += len(texts)
            steps = [
                self._native.start(
                    np.array([*prompt, *text], np.uint32),
                    max_tokens=1,
                    stop_ids=[],
                    sampling=sampling,
                    logit_bias={},
                    logprobs=options.beam_size + 1,
                    priority=options.priority,
                    window=window,
                    rules=rules,
                )
                for text in texts
            ]
            found = []
            for step in steps:
                while step.next() is not None:
                    pass
                _, tokens, logprobs = step.logprobs(0, 1)
                wanted = slice(0, options.beam_size + 1)
                pairs = zip(tokens[0, wanted].tolist(), logprobs[0, wanted].tolist(), strict=True)
                found.append([(token, logprob) for token, logprob in pairs if logprob > -np.inf])
            return found

        return beam_search(
            expand,
            self._tokenizer.special.end_of_text,
            options.beam_size,
            options.patience,
            self._context - len(prompt),
        )

    def _draw(
        self, window: _core.SpeechWindow, prompt: Sequence[int], temperature: float, seed: int
    ) -> Hypothesis:
        n = self._options.best_of if temperature > 0 else 1
        sampling = SamplingOptions(temperature=temperature).packed(seed=seed)
        self._running.check()
        rules = self._rules(len(prompt))
        started = []
        for choice in range(n):
            generation = self._native.start(
                np.array(prompt, np.uint32),
                max_tokens=self._context - len(prompt),
                stop_ids=[self._tokenizer.special.end_of_text],
                sampling=sampling,
                logit_bias={},
                logprobs=0,
                choice=choice,
                priority=self._options.priority,
                window=window,
                rules=rules,
            )
            self._running.add(generation)
            started.append(generation)
        try:
            drawn = [self._finished(generation) for generation in started]
        finally:
            for generation in started:
                generation.cancel()
                self._running.remove(generation)
        return max(drawn, key=lambda each: each.rank)

    def _finished(self, generation: _core.Generation) -> Hypothesis:
        tokens: list[int] = []
        while (more := generation.next()) is not None:
            tokens += more
        self._running.check()
        self.n_tokens += len(tokens)
        logprobs, _, _ = generation.logprobs(0, len(tokens) + 1)
        return Hypothesis(tuple(tokens), float(np.sum(logprobs, dtype=np.float64)))

    def _judged(self, drawn: Hypothesis, temperature: float, silence: float) -> WindowText:
        text = self._tokenizer.decode(drawn.tokens).strip().encode("utf-8")
        return WindowText(
            tokens=drawn.tokens,
            temperature=temperature,
            last_temperature=temperature,
            avg_logprob=drawn.logprob / (len(drawn.tokens) + 1),
            compression_ratio=len(text) / len(zlib.compress(text)),
            no_speech_prob=silence,
        )

    def _probability_of_silence(self, logits: NDArray[np.float32]) -> float:
        wide = logits.astype(np.float64)
        weights = np.exp(wide - wide.max())
        return float(weights[self._tokenizer.special.no_speech] / weights.sum())
