"""Live text: which words are confirmed, and that audio that goes on is read in bounded pieces."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from lines import each_line

sys.path.append(str(Path(__file__).parents[1] / "models"))

import brief_speech

from akunu import ArgumentError
from akunu.cli.commands.listen import first_seconds
from akunu.speech.audio import load_audio
from akunu.speech.live import LiveText, LiveTranscription, agreement, position_after
from akunu.speech.model import SpeechModel, load_whisper


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SpeechModel]:
    path = brief_speech.write(tmp_path_factory.mktemp("whisper") / "small")
    with load_whisper(path) as model:
        yield model


@each_line(
    ("last", "now", "n"),
    [
        ([], [], 0),
        ([" a", " b"], [" a", " b"], 2),
        ([" a", " b"], [" a", " c"], 1),
        ([" Four..."], [" four", " or"], 1),
        ([" one,"], [" One"], 1),
        ([" 1."], [" one"], 0),
        ([" -"], [" ."], 0),
    ],
)
def test_words_agree_whatever_their_case_and_punctuation(
    last: list[str], now: list[str], n: int
) -> None:
    assert agreement(last, now) == n


@each_line(
    ("confirmed", "words", "position"),
    [
        ([], [" a"], 0),
        ([" a", " b"], [" A,", " b", " c"], 2),
        ([" a", " b"], [" x", " a", " b", " c"], 3),  # a word more
        ([" a", " b", " c"], [" a", " c", " d"], 2),  # a word less
        ([" a", " b"], [" a", " z", " c"], 2),  # the last one has changed
        ([" a", " b", " c"], [" a"], 1),  # never behind the end
        ([" a", " b"], [" x", " y", " z"], 2),
    ],
)
def test_what_follows_confirmed_words_is_found_in_another_reading(
    confirmed: list[str], words: list[str], position: int
) -> None:
    assert position_after(confirmed, words) == position


def fed(live: LiveTranscription, samples: NDArray[np.float32]) -> list[LiveText]:
    """Every reading of audio that comes in blocks of a tenth of a second."""
    blocks = [samples[at : at + 1600] for at in range(0, len(samples), 1600)]
    said = [each for block in blocks if (each := live.feed(block)) is not None]
    return [*said, live.finish()]


def test_silence_and_steady_noise_are_never_read(model: SpeechModel) -> None:
    rng = np.random.default_rng(1)
    for samples in (np.zeros(160_000), rng.standard_normal(160_000) * 0.1):
        live = LiveTranscription(model)
        assert {(each.confirmed, each.tentative) for each in fed(live, samples)} == {("", "")}
        assert len(live._audio) <= 2 * 16_000  # what was silent is not kept


def test_what_is_read_again_stays_short(model: SpeechModel) -> None:
    rng = np.random.default_rng(2)
    live = LiveTranscription(
        model, vad=False, language="de", longest_seconds=5.0, seconds_between=1.0
    )
    longest = 0
    for _ in range(120):
        live.feed(rng.standard_normal(1600).astype(np.float32) * 0.1)
        longest = max(longest, len(live._audio))
    assert longest <= 6.2 * 16_000


@each_line(
    "options",
    [
        {"seconds_between": 0.0},
        {"pause_seconds": float("nan")},
        {"longest_seconds": 60.0},
        {"stream": True},
        {"sample_rate": 8000},
    ],
)
def test_options_that_make_no_sense_are_said(model: SpeechModel, options: dict) -> None:
    with pytest.raises(ArgumentError, match=next(iter(options))):
        LiveTranscription(model, **options)


def test_audio_that_is_none_is_said(model: SpeechModel) -> None:
    live = LiveTranscription(model)
    for bad in ([1, 2], [[0.0]], [float("nan")]):
        with pytest.raises(ArgumentError, match="sample"):
            live.feed(bad)
    assert live.finish() == LiveText("", "", is_pause=True)


@each_line(
    ("seconds", "lengths"),
    [
        (None, [16_000, 16_000, 1_000_000]),
        (0.5, [8000]),
        (2.0, [16_000, 16_000]),
        (2.5, [16_000, 16_000, 8000]),
        (90.0, [16_000, 16_000, 1_000_000]),
    ],
)
def test_what_comes_too_late_is_cut_off(seconds: float | None, lengths: list[int]) -> None:
    blocks = [np.zeros(n, np.float32) for n in (16_000, 16_000, 1_000_000)]
    assert [len(each) for each in first_seconds(blocks, seconds)] == lengths


@pytest.mark.real
def test_speech_in_front_of_a_long_silence_is_heard(whisper_tiny: SpeechModel) -> None:
    """Minutes that come as one block: whoever fed them was busy."""
    speech = os.environ.get("AKUNU_REAL_SPEECH")
    if not speech:
        pytest.skip("AKUNU_REAL_SPEECH names no folder of recordings")
    samples = load_audio(Path(speech) / "conf-adminmenu-162.wav")[: 8 * 16_000]
    expected = words_of(whisper_tiny.transcribe(samples).text)
    silence = np.zeros(120 * 16_000, np.float32)
    live = LiveTranscription(whisper_tiny)
    said = live.feed(np.concatenate([samples, silence]))
    assert said is not None
    assert said.is_pause
    assert errors(expected, words_of(said.confirmed)) <= 0.1
    assert live.feed(silence) == LiveText("", "", is_pause=False)
    live.feed(samples[:8000])  # less than is read at a time
    assert live.feed(np.concatenate([samples[8000:], silence])) == said


@pytest.mark.real
def test_live_words_are_those_of_the_whole(whisper_tiny: SpeechModel) -> None:
    speech = os.environ.get("AKUNU_REAL_SPEECH")
    if not speech:
        pytest.skip("AKUNU_REAL_SPEECH names no folder of recordings")
    names = ("conf-adminmenu-162", "basic-pbx-ivr-main")
    pause = np.zeros(24_000, np.float32)
    parts = [load_audio(Path(speech) / f"{name}.wav") for name in names]
    whole = [whisper_tiny.transcribe(each).text for each in parts]
    live = LiveTranscription(whisper_tiny, seconds_between=2.0)
    said = fed(live, np.concatenate([x for part in parts for x in (part, pause)]))
    assert sum(each.is_pause and bool(each.confirmed) for each in said) >= 2  # a line for each
    text = "".join(each.confirmed for each in said)
    assert errors(words_of(" ".join(whole)), words_of(text)) <= 0.1
    tentative = [each.tentative for each in said if each.tentative]
    assert tentative  # something was shown before it was sure


def words_of(text: str) -> list[str]:
    return "".join(c for c in text.lower() if c.isalnum() or c.isspace()).split()


def errors(expected: list[str], found: list[str]) -> float:
    """Levenshtein's distance in words, as a share of those expected."""
    row = list(range(len(found) + 1))
    for i, one in enumerate(expected, 1):
        before, row[0] = row[0], i
        for j, other in enumerate(found, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (one != other))
    return row[-1] / len(expected)


@pytest.fixture(scope="module")
def whisper_tiny() -> Iterator[SpeechModel]:
    folder = os.environ.get("AKUNU_REAL_MODELS")
    path = Path(folder or ".") / "whisper-tiny.en"
    if not path.is_dir():
        pytest.skip("AKUNU_REAL_MODELS has no whisper-tiny.en")
    with load_whisper(path) as model:
        yield model
