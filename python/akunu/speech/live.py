"""Live text: words of speech that continues, confirmed or still tentative.

Speech that continues is heard again and again. Two readings of the same audio mostly agree on what
was said a while ago and differ at the end, where a word is half spoken. So words are confirmed on
which two readings in a row agree (local agreement, Macháček et al. 2023); what follows them is
tentative. Audio whose text is confirmed is dropped at the end of a segment, and all of it in a
pause: what is read again stays short, however long someone speaks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from akunu.common.checks import number
from akunu.errors import ArgumentError
from akunu.speech.activity.voice_activity import Vad, VadOptions, speech_spans
from akunu.speech.mel import SAMPLE_RATE, mono_samples
from akunu.speech.model import SpeechModel
from akunu.speech.transcription import Transcription

_PROMPT_BYTES = 200
"""Bytes of earlier text in the prompt: about a sentence."""
_KEPT_SECONDS = 1.0
"""How much audio without speech is kept: the beginning of a word is quiet."""
_FEWEST_SAMPLES = SAMPLE_RATE // 10
"""Less audio is not a word."""
_NOISE_SAMPLES = 16 * SAMPLE_RATE
"""How much audio is kept at least, for the energy detector to know the noise."""
_UNSPACED = "[\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff]"
"""Characters of Thai, Lao, Burmese, Japanese and Chinese, which have no spaces between words."""


@dataclass(frozen=True, slots=True)
class LiveText:
    """What a reading has come to."""

    confirmed: str
    """What follows the text that was confirmed before, with its spaces; it will not change."""
    tentative: str
    """What follows that, until the next reading."""
    is_pause: bool
    """Whether the speaker paused: everything is confirmed, and what follows is another line."""


class LiveTranscription:
    """Takes audio as it comes, and says what is said; for one thread at a time.

    >>> live = LiveTranscription(model)  # doctest: +SKIP
    >>> for samples in microphone:  # doctest: +SKIP
    ...     if (said := live.feed(samples)) is not None:
    ...         print(said.confirmed, end="", flush=True)
    >>> print(live.finish().confirmed)  # doctest: +SKIP
    """

    def __init__(
        self,
        model: SpeechModel,
        *,
        seconds_between: float = 1.0,
        pause_seconds: float = 1.0,
        longest_seconds: float = 20.0,
        vad: Vad = True,
        prompt: str | None = None,
        **options: Any,
    ) -> None:
        """`seconds_between`: how much audio comes before it is read again.

        `pause_seconds`: so much silence is a pause. `longest_seconds`: where someone speaks longer
        without one and readings do not agree, the text is confirmed as it is. `vad`: what tells
        speech from silence, see `speech_spans`; False never finds a pause. `prompt`: what was said
        before; its last 200 bytes count. `options`: of `SpeechModel.transcribe`; by default one
        beam, and the temperature 0 alone.

        Raises ArgumentError for numbers that make no sense, and options that are not for this.
        """
        self._between = number("seconds_between", seconds_between, 0.1, 10.0)
        self._pause = number("pause_seconds", pause_seconds, 0.2, 10.0)
        self._longest = number("longest_seconds", longest_seconds, 5.0, 28.0)
        for name in ("stream", "progress", "sample_rate", "vad_options", "word_timestamps"):
            if name in options:
                raise ArgumentError(f"{name} has no effect on live text: leave it out")
        self._model = model
        # Half of the context is for what was said before; a token has a byte at least.
        self._most_prompt = min(_PROMPT_BYTES, model._open().context // 2 - 2)
        self._vad: Vad = vad
        self._vad_model = options.pop("vad_model", None)
        usual = {"temperature": 0.0, "beam_size": 1, "condition_on_previous_text": False}
        self._options = {**usual, **options}
        self._before = prompt or ""  # what was said before the audio that is kept
        self._audio = np.zeros(0, np.float32)  # that is read again
        self._heard = np.zeros(0, np.float32)  # that and more before it, by which noise is known
        self._n_unread = 0  # samples
        self._last: list[str] = []  # words of the last reading
        self._n_confirmed = 0  # of them, the first

    def feed(self, samples: ArrayLike) -> LiveText | None:
        """Take samples at 16 kHz, [n]; return what a reading has come to, None where none was due.

        Raises ArgumentError for what is not audio, and what `SpeechModel.transcribe` raises.
        """
        new = mono_samples(samples)
        self._audio = np.concatenate([self._audio, new])
        # Never less than the audio: a block may be minutes long, with speech in front of silence.
        most = max(_NOISE_SAMPLES, len(self._audio))
        self._heard = np.concatenate([self._heard, new])[-most:]
        self._n_unread += len(new)
        if self._n_unread < self._between * SAMPLE_RATE:
            return None
        self._n_unread = 0
        return self._step()

    def finish(self) -> LiveText:
        """Return the rest, all of it confirmed; what is fed later is something new."""
        words: list[str] = []
        if len(self._audio) >= _FEWEST_SAMPLES and (silence := self._silence()) < self._seconds:
            words = _words(self._read(silence).text)
        self._n_unread = 0
        return LiveText(self._confirm(words, len(words), self._seconds), "", is_pause=True)

    @property
    def _seconds(self) -> float:
        return len(self._audio) / SAMPLE_RATE

    def _step(self) -> LiveText:
        silence = self._silence()
        if silence >= self._seconds:  # no one has spoken since the last pause
            self._drop(self._seconds - _KEPT_SECONDS)
            return LiveText("", "", is_pause=False)
        said = self._read(silence)
        words = _words(said.text)
        if silence >= self._pause:
            return LiveText(self._confirm(words, len(words), self._seconds), "", is_pause=True)
        if self._seconds > self._longest:
            n, ends = _without_last(said) or (len(words), self._seconds)
            text = self._confirm(words, n, ends)
            return LiveText(text, "".join(self._last), is_pause=False)
        begins = position_after(self._last[: self._n_confirmed], words)
        n = begins + agreement(self._last[self._n_confirmed :], words[begins:])
        self._last, self._n_confirmed = words, n
        if self._seconds > self._longest / 2:
            self._drop_confirmed(said)
        return LiveText("".join(words[begins:n]), "".join(words[n:]), is_pause=False)

    def _silence(self) -> float:
        """Return for how many seconds no one has spoken."""
        if self._vad is False:
            return 0.0
        spans = speech_spans(
            self._heard,
            self._vad,
            options=VadOptions(min_silence_duration_ms=200.0, speech_pad_ms=0.0),
            vad_model=self._vad_model,
        )
        return (len(self._heard) - spans[-1].end) / SAMPLE_RATE if spans else math.inf

    def _read(self, silence: float) -> Transcription:
        """Transcribe the audio, without the silence at its end that is longer than a pause."""
        beyond = max(0, round((silence - self._pause) * SAMPLE_RATE))
        audio = self._audio[: len(self._audio) - beyond]
        before = self._before.encode()[-self._most_prompt :].decode(errors="ignore")
        prompt = before.strip() or None
        said: Transcription = self._model.transcribe(
            audio, vad=False, prompt=prompt, **self._options
        )
        if "language" not in self._options and said.text and said.language_probability > 0.5:
            self._options["language"] = said.language
        return said

    def _confirm(self, words: Sequence[str], n: int, seconds: float) -> str:
        """Confirm the first words and drop their audio; return those that are new."""
        begins = position_after(self._last[: self._n_confirmed], words)
        self._before += "".join(words[:n])
        self._last, self._n_confirmed = list(words[n:]), max(0, begins - n)
        self._drop(seconds)
        return "".join(words[begins:n])

    def _drop_confirmed(self, said: Transcription) -> None:
        """Drop the audio of segments whose words are all confirmed, but never the last one's."""
        n = at = 0
        ends = 0.0
        for segment in said.segments[:-1]:
            at += len(_words(segment.text))
            if at > self._n_confirmed:
                break
            n, ends = at, segment.end
        self._before += "".join(self._last[:n])
        self._last = self._last[n:]
        self._n_confirmed -= n
        self._drop(ends)

    def _drop(self, seconds: float) -> None:
        self._audio = self._audio[max(0, round(seconds * SAMPLE_RATE)) :]


def agreement(last: Sequence[str], now: Sequence[str]) -> int:
    """Return how many words two readings begin with alike; case and punctuation do not count.

    >>> agreement([" we", " went", " hope"], [" We", " went,", " home"])
    2
    """
    n = 0
    for one, other in zip(last, now, strict=False):
        if _bare(one) != _bare(other):
            break
        n += 1
    return n


def position_after(confirmed: Sequence[str], words: Sequence[str]) -> int:
    """Return where in a new reading the words follow that are confirmed already.

    >>> position_after([" we", " went"], [" So", " we", " went", " home"])
    3
    """
    old, new = [_bare(each) for each in confirmed], [_bare(each) for each in words]
    if new[: len(old)] == old:
        return len(old)
    blocks = [each for each in SequenceMatcher(None, old, new, False).get_matching_blocks()]
    found = [each for each in blocks if each.size]
    if not found:
        return min(len(old), len(new))
    return min(len(new), found[-1].b + len(old) - found[-1].a)


def _without_last(said: Transcription) -> tuple[int, float] | None:
    """Return words and end of all segments but the last; None where there is one."""
    first = said.segments[:-1]
    return (sum(len(_words(each.text)) for each in first), first[-1].end) if first else None


def _words(text: str) -> list[str]:
    """Return words with the space before them; each character in scripts without spaces (Chinese).

    >>> _words(" Good morning."), _words("早上好")
    ([' Good', ' morning.'], ['早', '上', '好'])
    """
    return re.findall(rf"\s*(?:{_UNSPACED}|(?:(?!{_UNSPACED})\S)+)", text)


def _bare(word: str) -> str:
    return re.sub(r"[^\w]+", "", word).casefold() or word.strip()
