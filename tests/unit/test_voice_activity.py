"""Voice activity: what is speech, in which spans, and which times of the whole audio those are."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from akunu import AkunuError, ArgumentError
from akunu.speech.activity import silero
from akunu.speech.activity.energy_detector import speech_probabilities
from akunu.speech.activity.voice_activity import SpeechParts, VadOptions, spans_of, speech_spans
from akunu.speech.activity.voice_activity import SpeechSpan as Span
from akunu.speech.segments import Segment, Word
from lines import each_line

RATE = 16_000
NOISE = np.random.default_rng(3)


def noise(seconds: float, level: float) -> NDArray[np.float32]:
    return (level * NOISE.standard_normal(int(seconds * RATE))).astype(np.float32)


def tone(seconds: float, hertz: float, level: float = 0.3) -> NDArray[np.float32]:
    time = np.arange(int(seconds * RATE)) / RATE
    return (level * np.sin(2 * np.pi * hertz * time)).astype(np.float32)


def voice(seconds: float, level: float = 0.1) -> NDArray[np.float32]:
    """Syllables: four a second, harmonics of a pitch that moves."""
    time = np.arange(int(seconds * RATE)) / RATE
    phase = 2 * np.pi * (140 * time + 6 * np.sin(2 * np.pi * 1.5 * time))
    harmonics = sum(np.sin(k * phase) / k for k in range(1, 40))
    syllables = np.maximum(0, np.sin(2 * np.pi * 4 * time)) ** 0.5
    return (level * harmonics * syllables).astype(np.float32)


STEADY = {
    "silence": np.zeros(10 * RATE, np.float32),
    "the noise of 16 bits": noise(10, 2e-5),
    "faint noise": noise(10, 0.001),
    "loud noise": noise(10, 0.2),
    "brown noise": (np.cumsum(noise(10, 1.0)) / 2000).astype(np.float32),
    "a tone": tone(10, 440),
    "a tone that stops between chunks": tone(9.99, 1000),
    "hum": tone(10, 50) + tone(10, 150),
    "one sample": np.array([0.5], np.float32),
    "no sample": np.zeros(0, np.float32),
}


@each_line("name", STEADY)
def test_steady_sounds_are_no_speech(name: str) -> None:
    assert speech_spans(STEADY[name]) == []


@each_line("level", [0.01, 0.1, 1.0])
@each_line("background", [0.0, 0.03])
def test_speech_between_pauses_is_found_whatever_its_level(level: float, background: float) -> None:
    pause = np.zeros(5 * RATE, np.float32)
    wave = level * np.concatenate([pause, voice(3), pause, voice(2), pause])
    wave += noise(20, background * level)
    spans = speech_spans(wave, options=VadOptions(speech_pad_ms=0))
    found = [(span.start / RATE, span.end / RATE) for span in spans]
    assert np.allclose(found, [(5, 8), (13, 15)], atol=0.15), found


def test_speech_without_a_pause_is_kept_whole() -> None:
    assert speech_spans(voice(30)) == [Span(0, 30 * RATE)]


def test_a_chunk_has_a_probability_and_the_last_may_be_short() -> None:
    assert len(speech_probabilities(np.zeros(513, np.float32))) == 2


def test_spans_are_what_one_would_draw_by_hand() -> None:
    chunk = 512
    options = VadOptions(min_silence_duration_ms=64, speech_pad_ms=0)  # two chunks
    likely = [0.1, 0.9, 0.4, 0.6, 0.1, 0.1, 0.1, 0.8, 0.1, 0.7]
    # 0.4 is above 0.5 - 0.15, so speech goes on; one quiet chunk is no silence.
    assert spans_of(likely, 10 * chunk, options) == [
        Span(chunk, 4 * chunk),
        Span(7 * chunk, 10 * chunk),
    ]


def test_padding_is_shared_where_a_silence_is_too_short_for_both() -> None:
    options = VadOptions(min_silence_duration_ms=32, speech_pad_ms=100)  # 1600 samples
    likely = [0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0]
    first, second = spans_of(likely, 14 * 512, options)
    assert (first.start, second.end) == (5 * 512 - 1600, 9 * 512 + 1600)
    assert first.end == second.start == 7 * 512


def test_spans_that_are_too_long_are_cut_where_speech_is_least_probable() -> None:
    options = VadOptions(max_speech_duration_s=2.0, speech_pad_ms=0)  # 62 chunks
    likely = np.full(150, 0.9)
    likely[40:45] = likely[50:55] = 0.2  # pauses that are too short to end a span
    likely[55:62] = 0.6
    spans = spans_of(likely, 150 * 512, options)
    assert spans[0] == Span(0, 52 * 512)  # in the middle of the later pause
    assert [(one.end == other.start) for one, other in pairwise(spans)] == [True, True]
    assert spans[-1].end == 150 * 512
    assert all(1.0 <= (span.end - span.start) / RATE <= 2.0 for span in spans[:-1])
    padded = spans_of(likely, 150 * 512, replace(options, speech_pad_ms=200, threshold=0.5))
    assert all((span.end - span.start) / RATE <= 2.0 for span in padded)


def part(start: float, end: float, words: list[Word] | None = None) -> Segment:
    return Segment(
        id=0,
        seek=0,
        start=start,
        end=end,
        text=" a",
        tokens=(),
        temperature=0.0,
        avg_logprob=0.0,
        compression_ratio=1.0,
        no_speech_prob=0.0,
        words=None if words is None else tuple(words),
    )


def test_times_of_the_speech_are_times_of_the_whole_audio() -> None:
    wave = np.arange(10 * RATE, dtype=np.float32)
    parts = SpeechParts(wave, [Span(1 * RATE, 3 * RATE), Span(6 * RATE, 8 * RATE)])
    assert parts.duration == 4.0
    assert parts.samples[2 * RATE] == wave[6 * RATE]
    assert [parts.original(t) for t in (0.0, 1.5, 2.0, 3.0, 4.0)] == [1.0, 2.5, 6.0, 7.0, 8.0]
    assert parts.original(2.0, is_end=True) == 3.0
    assert parts.restored(part(0.5, 2.0)) == part(1.5, 3.0)
    words = [Word(1.0, 1.9, " a", 0.5), Word(1.9, 2.5, " b", 0.5)]
    restored = parts.restored(part(1.0, 2.5, words))
    # The middle of " b" lies in the second span: it begins shortly before that, not 3 s earlier.
    assert restored.words == (Word(2.0, 2.9, " a", 0.5), Word(5.9, 6.5, " b", 0.5))
    assert (restored.start, restored.end) == (2.0, 6.5)


def test_audio_without_speech_has_no_part() -> None:
    parts = SpeechParts(np.ones(RATE, np.float32), [])
    assert (parts.duration, len(parts.samples)) == (0.0, 0)


def test_without_detection_all_of_it_is_speech() -> None:
    assert speech_spans(np.zeros(RATE, np.float32), False) == [Span(0, RATE)]


@each_line(
    ("arguments", "error", "said"),
    [
        ({"vad": "webrtc"}, ArgumentError, 'vad must be True, False, "energy" or "silero"'),
        ({"vad_model": "x.onnx"}, ArgumentError, 'vad_model needs vad="silero"'),
        ({"vad": "silero", "vad_model": "no.onnx"}, AkunuError, "there is no file no.onnx"),
        ({"vad": "silero", "vad_model": __file__}, AkunuError, "cannot be read as an ONNX model"),
    ],
)
def test_what_cannot_be_done_is_said(
    arguments: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        speech_spans(np.zeros(RATE, np.float32), **arguments)


def test_a_missing_model_of_silero_is_never_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(silero.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(AkunuError, match=r"vad_model to the path of silero_vad\.onnx"):
        speech_spans(np.zeros(RATE, np.float32), "silero")


def test_options_that_make_no_sense_are_refused() -> None:
    for name in ("threshold", "speech_pad_ms"):
        with pytest.raises(ArgumentError, match=name):
            VadOptions(**{name: -1.0})
    with pytest.raises(ArgumentError, match="max_speech_duration_s"):
        VadOptions(max_speech_duration_s=0.5)


@pytest.fixture(scope="module")
def silero_vad() -> Any:
    """silero-vad itself, from wherever it is installed."""
    return pytest.importorskip("silero_vad", reason="silero-vad is not installed")


@pytest.mark.oracle
def test_spans_equal_silero_vads_own(silero_vad: Any) -> None:
    from silero_vad.utils_vad import get_speech_timestamps_from_probs

    chance = random.Random(0)
    for _ in range(200):
        likely = [chance.choice([0.05, 0.2, 0.4, 0.6, 0.9]) for _ in range(chance.randint(1, 80))]
        options = {
            "threshold": chance.choice([0.3, 0.5]),
            "min_speech_duration_ms": chance.choice([0, 100]),
            "min_silence_duration_ms": chance.choice([32, 100, 300]),
            "speech_pad_ms": chance.choice([0, 30, 200]),
        }
        n = len(likely) * 512 - chance.randint(0, 511)
        theirs = get_speech_timestamps_from_probs(likely, audio_length_samples=n, **options)
        ours = spans_of(likely, n, VadOptions(**options))
        assert [(each["start"], each["end"]) for each in theirs] == [
            (span.start, span.end) for span in ours
        ]


@pytest.mark.oracle
def test_probabilities_of_silero_equal_its_own(silero_vad: Any) -> None:
    torch = pytest.importorskip("torch")
    wave = np.concatenate([noise(1, 0.01), voice(2), noise(0.51, 0.01)])
    model = silero_vad.load_silero_vad(onnx=True)
    padded = np.pad(wave, (0, -len(wave) % 512)).reshape(-1, 512)
    theirs = [model(torch.from_numpy(chunk), RATE).item() for chunk in padded]
    np.testing.assert_allclose(silero.SileroDetector().probabilities(wave), theirs, atol=1e-6)


@pytest.mark.real
def test_silero_hears_nothing_where_nobody_speaks() -> None:
    folder = os.environ.get("AKUNU_REAL_MODELS")
    if not folder:
        pytest.skip("AKUNU_REAL_MODELS names no folder of real models")
    model = Path(folder) / "silero_vad.onnx"
    for steady in ("silence", "loud noise", "a tone", "no sample", "one sample"):
        assert speech_spans(STEADY[steady], "silero", vad_model=model) == []
