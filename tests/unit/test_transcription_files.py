"""Files of transcriptions: small ones by hand, many by Whisper's own writers."""

from __future__ import annotations

import importlib.util
import io
import json
import random
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from akunu import ArgumentError
from akunu.speech.segments import Segment, Word
from akunu.speech.transcription import Transcription
from akunu.speech.writers import FORMATS
from lines import each_line


def segment(start: float, end: float, text: str, words: list[Word] | None = None) -> Segment:
    return Segment(
        id=0,
        seek=0,
        start=start,
        end=end,
        text=text,
        tokens=(1, 2),
        temperature=0.0,
        avg_logprob=-0.5,
        compression_ratio=1.0,
        no_speech_prob=0.01,
        words=None if words is None else tuple(words),
    )


def transcription(*segments: Segment) -> Transcription:
    text = "".join(each.text for each in segments)
    return Transcription(text=text, segments=segments, language="en", duration=5000.0)


TWO = transcription(
    segment(0, 3.12, " Press 1."), segment(3661.5, 3662, ' Say "no" & <go> --> on.')
)
WORDS = [Word(i, i + 0.5, f" word{i}", 0.9) for i in range(6)]
SPOKEN = transcription(
    segment(0, 2.5, " word0 word1 word2", WORDS[:3]),
    segment(3, 5.5, " word3 word4 word5", WORDS[3:]),
)

BY_HAND = {
    "txt": 'Press 1.\nSay "no" & <go> --> on.\n',
    "srt": "1\n00:00:00,000 --> 00:00:03,120\nPress 1.\n\n"
    '2\n01:01:01,500 --> 01:01:02,000\nSay "no" & <go> -> on.\n\n',
    "vtt": "WEBVTT\n\n00:00.000 --> 00:03.120\nPress 1.\n\n"
    '01:01:01.500 --> 01:01:02.000\nSay "no" &amp; &lt;go> -> on.\n\n',
    "tsv": 'start\tend\ttext\n0\t3120\tPress 1.\n3661500\t3662000\tSay "no" & <go> --> on.\n',
    "csv": 'start,end,text\n0,3120,"Press 1."\n3661500,3662000,"Say ""no"" & <go> --> on."\n',
    "lrc": '[00:00.00]Press 1.\n[61:01.50]Say "no" & <go> --> on.\n',
}


@each_line("format", BY_HAND)
def test_a_file_is_what_one_would_write_by_hand(format: str) -> None:
    assert TWO.render(format) == BY_HAND[format]


def test_json_holds_everything_in_whispers_words() -> None:
    found = json.loads(SPOKEN.render("json"))
    assert found["text"] == " word0 word1 word2 word3 word4 word5"
    assert found["language"] == "en"
    assert found["segments"][0]["words"][1] == {
        "start": 1,
        "end": 1.5,
        "word": " word1",
        "probability": 0.9,
    }
    assert found["segments"][0]["tokens"] == [1, 2]
    assert "words" not in json.loads(TWO.render("json"))["segments"][0]


@each_line("format", FORMATS)
def test_nothing_said_is_a_file_without_lines(format: str) -> None:
    expected = {"vtt": "WEBVTT\n\n", "tsv": "start\tend\ttext\n", "csv": "start,end,text\n"}
    if format != "json":
        assert transcription().render(format) == expected.get(format, "")


def test_lines_have_their_width_and_subtitles_their_lines() -> None:
    rendered = SPOKEN.render("srt", max_line_width=12, max_line_count=2)
    assert rendered == (
        "1\n00:00:00,000 --> 00:00:03,500\nword0 word1\nword2 word3\n\n"
        "2\n00:00:04,000 --> 00:00:05,500\nword4 word5\n\n"
    )


def test_subtitles_end_after_so_many_words() -> None:
    assert [
        cue.split("\n")[1] for cue in SPOKEN.render("vtt", max_words=2).split("\n\n")[1:-1]
    ] == [
        "word0 word1",
        "word2",
        "word3 word4",
        "word5",
    ]


def test_each_word_is_underlined_while_it_is_spoken() -> None:
    one = transcription(segment(0, 1.5, " word0 word1", WORDS[:2]))
    assert one.render("vtt", highlight_words=True) == (
        "WEBVTT\n\n"
        "00:00.000 --> 00:00.500\n<u>word0</u> word1\n\n"
        "00:00.500 --> 00:01.000\nword0 word1\n\n"
        "00:01.000 --> 00:01.500\nword0 <u>word1</u>\n\n"
    )


@each_line(
    ("format", "layout", "said"),
    [
        ("doc", {}, "format is 'doc'; it must be one of txt, srt"),
        ("srt", {"max_line_width": 0}, "max_line_width"),
        ("srt", {"line_width": 4}, "has no 'line_width'; it has max_line_width"),
        ("srt", {"max_words": 2, "max_line_width": 40}, "cannot be used with"),
        ("srt", {"max_line_width": 40}, "needs times of words"),
    ],
)
def test_what_makes_no_sense_is_refused(format: str, layout: dict[str, Any], said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        TWO.render(format, **layout)


@pytest.fixture(scope="session")
def whispers_writers() -> ModuleType:
    """whisper/utils.py alone: the package would import PyTorch and numba."""
    found = importlib.util.find_spec("whisper")
    if found is None or not found.submodule_search_locations:
        pytest.skip("openai-whisper is not installed")
    path = Path(found.submodule_search_locations[0]) / "utils.py"
    spec = importlib.util.spec_from_file_location("whisper_utils", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def random_transcription(seed: int) -> Transcription:
    """Words of several lengths, with pauses, some of them long."""
    chance = random.Random(seed)
    clock, segments = 0.0, []
    for _ in range(chance.randint(1, 5)):
        words = []
        for _ in range(chance.randint(1, 12)):
            start = round(clock + chance.choice([0, 0, 0, 0.3, 4]), 2)
            clock = round(start + chance.uniform(0.1, 0.6), 2)
            words.append(Word(start, clock, " " + "x" * chance.randint(1, 9), 0.5))
        text = "".join(word.word for word in words)
        segments.append(segment(words[0].start, words[-1].end, text, words))
    return transcription(*segments)


LAYOUTS: list[dict[str, Any]] = [
    {},
    {"max_line_width": 20},
    {"max_line_width": 20, "max_line_count": 2},
    {"max_line_width": 8, "max_line_count": 1},
    {"max_line_count": 1},
    {"max_words": 3},
    {"highlight_words": True},
    {"highlight_words": True, "max_line_width": 20, "max_line_count": 2},
]


@pytest.mark.oracle
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("format", ["srt", "vtt", "txt", "tsv"])
def test_files_equal_those_of_whispers_own_writers(
    format: str, layout: dict[str, Any], whispers_writers: ModuleType
) -> None:
    theirs = {{"max_words": "max_words_per_line"}.get(k, k): v for k, v in layout.items()}
    for seed in range(40):
        said = random_transcription(seed)
        file = io.StringIO()
        writer = whispers_writers.get_writer(format, "")
        writer.write_result(said.to_dict(), file, theirs)
        assert said.render(format, **layout) == file.getvalue()
