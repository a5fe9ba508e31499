"""`akunu transcribe`: audio in, text and subtitles out."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
import wave
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest
from cli_support import COMMAND, EMBER, ENVIRONMENT, Terminal

from lines import each_line

sys.path.append(str(Path(__file__).parents[1] / "models"))

import brief_speech

from akunu.speech.channels import transcribe_channels
from akunu.speech.model import load_whisper
from akunu.speech.writers import FORMATS

Run = Callable[..., "CompletedProcess[str]"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return brief_speech.write(tmp_path_factory.mktemp("whisper") / "small")


def wav(seconds: float = 8.0, n_channels: int = 1) -> bytes:
    rng = np.random.default_rng(7)
    samples = (rng.standard_normal((int(seconds * 16_000), n_channels)) * 3000).astype("<i2")
    data = io.BytesIO()
    with wave.open(data, "wb") as file:
        file.setnchannels(n_channels)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(samples.tobytes())
    return data.getvalue()


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    path = tmp_path / "talk.wav"
    path.write_bytes(wav())
    return path


# The random model hears steady noise, which is no speech: it reads all.
ALL = ("--no-vad", "-l", "de")


def test_the_text_goes_to_standard_output(run_akunu: Run, folder: str, talk: Path) -> None:
    with load_whisper(folder) as model:
        said = model.transcribe(talk, vad=False, language="de")
    done = run_akunu("transcribe", str(talk), "-m", folder, *ALL)
    assert done.returncode == 0, done.stderr
    assert done.stdout == said.render("txt")
    for form in FORMATS:
        if form == "json":
            continue
        shown = run_akunu("transcribe", str(talk), "-m", folder, "-f", form, *ALL)
        assert shown.stdout == said.render(form), form


def test_files_are_written_in_each_format(run_akunu: Run, folder: str, talk: Path) -> None:
    target = talk.parent / "a" / "b"
    formats = ",".join(FORMATS)
    done = run_akunu("transcribe", str(talk), "-m", folder, "-f", formats, "-o", str(target), *ALL)
    assert done.returncode == 0, done.stderr
    with load_whisper(folder) as model:
        said = model.transcribe(talk, vad=False, language="de")
    assert sorted(each.name for each in target.iterdir()) == sorted(f"talk.{f}" for f in FORMATS)
    for form in FORMATS:
        text = (target / f"talk.{form}").read_bytes().decode()
        if form != "json":
            assert text == said.render(form)
    found = json.loads((target / "talk.json").read_text())
    assert found["segments"] == json.loads(said.render("json"))["segments"]
    assert (found["language"], found["task"]) == ("de", "transcribe")
    assert done.stdout.startswith("[00:00.")  # what comes is shown, with its times
    assert len(done.stdout.splitlines()) >= len(said.segments)


def test_standard_input_is_read(run_akunu: Run, folder: str, talk: Path) -> None:
    expected = run_akunu("transcribe", str(talk), "-m", folder, *ALL).stdout
    done = subprocess.run(
        [*COMMAND, "transcribe", "-", "-m", folder, *ALL, "-o", str(talk.parent)],
        input=talk.read_bytes(), capture_output=True, env=ENVIRONMENT, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (talk.parent / "stdin.txt").read_text() == expected


def test_one_bad_file_does_not_stop_the_others(run_akunu: Run, folder: str, talk: Path) -> None:
    bad, other = talk.parent / "bad.wav", talk.parent / "other.wav"
    bad.write_bytes(b"no audio")
    other.write_bytes(wav(4.0))
    files = [str(bad), str(talk), "gone.wav", str(other)]
    out = talk.parent / "out"
    done = run_akunu("transcribe", *files, "-m", folder, "-o", str(out), *ALL)
    assert done.returncode == 1
    assert sorted(each.name for each in out.iterdir()) == ["other.txt", "talk.txt"]
    assert "bad.wav" in done.stderr
    assert "gone.wav: No such file" in done.stderr
    shown = run_akunu("transcribe", str(talk), str(other), "-m", folder, *ALL).stdout
    text, more = (out / "talk.txt").read_text(), (out / "other.txt").read_text()
    assert shown == f"==> {talk} <==\n{text}\n==> {other} <==\n{more}"


def test_channels_apart_say_which_they_are(run_akunu: Run, folder: str, tmp_path: Path) -> None:
    call = tmp_path / "call.wav"
    call.write_bytes(wav(6.0, n_channels=2))
    with load_whisper(folder) as model:
        said = transcribe_channels(model, call, vad=False, language="de")
    assert {segment.channel for segment in said.segments} == {0, 1}
    assert [each.start for each in said.segments] == sorted(each.start for each in said.segments)
    assert [each.id for each in said.segments] == list(range(len(said.segments)))
    done = run_akunu("transcribe", str(call), "-m", folder, "--channels", "apart", *ALL)
    assert done.stdout == said.render("txt")
    assert done.stdout.startswith("(channel 0) ")


def test_a_file_that_is_there_stays_unless_force_says_otherwise(
    run_akunu: Run, folder: str, talk: Path
) -> None:
    command = ("transcribe", str(talk), "-m", folder, "-o", str(talk.parent), *ALL)
    mine = talk.parent / "talk.txt"
    mine.write_text("corrected by hand")
    done = run_akunu(*command)
    assert done.returncode == 1
    assert "exists already; --force overwrites it" in done.stderr
    left_out = run_akunu(*command, "--skip-existing")
    assert left_out.returncode == 0
    assert "talk.wav is skipped" in left_out.stderr
    both = run_akunu(*command, "--skip-existing", "-f", "txt,srt")
    assert both.returncode == 0, both.stderr
    assert mine.read_text() == "corrected by hand"
    assert (talk.parent / "talk.srt").exists()
    assert run_akunu(*command, "--force").returncode == 0
    assert mine.read_text() != "corrected by hand"


def test_a_source_is_never_overwritten(run_akunu: Run, folder: str, tmp_path: Path) -> None:
    source = tmp_path / "talk.txt"  # its name says nothing about what is in it
    source.write_bytes(wav())
    command = ("transcribe", str(source), "-m", folder, "-o", str(tmp_path), "--force", *ALL)
    done = run_akunu(*command)
    assert done.returncode == 1
    assert "is the file to read" in done.stderr
    assert source.read_bytes() == wav()


def test_a_pipe_or_device_is_no_place_for_a_file(run_akunu: Run, folder: str, talk: Path) -> None:
    os.mkfifo(talk.parent / "talk.txt")
    command = ("transcribe", str(talk), "-m", folder, "-o", str(talk.parent), "--force", *ALL)
    done = run_akunu(*command)
    assert done.returncode == 1
    assert "a device, a pipe or a socket" in done.stderr


def test_silence_is_said(run_akunu: Run, folder: str, tmp_path: Path) -> None:
    path = tmp_path / "silence.wav"
    path.write_bytes(wav()[:44] + bytes(8 * 32_000))
    done = run_akunu("transcribe", str(path), "-m", folder)
    assert (done.returncode, done.stdout) == (0, "")
    assert "no speech was found" in done.stderr


@each_line(
    ("arguments", "code", "words"),
    [
        ([], 2, "there is no file"),
        (["a.wav", "-f", "doc"], 2, "--format is 'doc'"),
        (["a.wav", "-f", "srt,vtt"], 2, "need --output"),
        (["a.wav", "b.wav", "-f", "srt"], 2, "needs --output"),
        (["a.wav", "--force"], 2, "need --output"),
        (["a/x.wav", "b/x.mp3", "-o", "OUT"], 2, "would both be written to"),
        (["a.wav", "a.wav", "-o", "OUT"], 2, "would both be written to"),
        (["-", "-"], 2, "- is written twice"),
        (["a.wav", "--max-words", "2"], 2, "--words"),
        (["a.wav", "--words", "--max-words", "2", "--max-line-width", "9"], 2, "max_words"),
        (["a.wav", "--max-line-width", "0", "--words"], 2, "--max-line-width is 0"),
        (["a.wav", "--jobs", "0"], 2, "--jobs is 0"),
        (["TALK", "--beam-size", "0", "--no-vad"], 1, "beam_size"),
        (["a.wav", "-l", "klingon"], 2, "--language is 'klingon'"),
        (["a.wav", "--channels", "left"], 2, "--channels is 'left'"),
        (["a.wav", "--detector", "ears"], 2, "--detector is 'ears'"),
        (["a.wav", "--vad-model", "x"], 2, "needs --detector silero"),
        (["a.wav", "--no-vad", "--detector", "silero"], 2, "contradict"),
        (["gone.wav"], 1, "gone.wav: No such file"),
        (["TALK", "--temperature", "-1", "--no-vad"], 1, "temperature"),
        (["TALK", "-l", "fr", "--no-vad"], 1, "fr"),
        (["TALK", "--detector", "silero", "--vad-model", "gone.onnx"], 1, "gone.onnx"),
    ],
)
def test_what_makes_no_sense_is_said(
    run_akunu: Run, folder: str, talk: Path, arguments: list[str], code: int, words: str
) -> None:
    names = {"TALK": str(talk), "OUT": str(talk.parent / "out")}
    given = [names.get(each, each) for each in arguments]
    done = run_akunu("transcribe", *given, "-m", folder)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_model_of_texts_takes_no_audio(run_akunu: Run, talk: Path) -> None:
    done = run_akunu("transcribe", str(talk), "-m", str(EMBER))
    assert done.returncode == 1
    assert "is not a Whisper model" in done.stderr
    missing = run_akunu("transcribe", str(talk))
    assert missing.returncode == 2
    assert "--model" in missing.stderr


def test_a_speech_model_does_not_chat(run_akunu: Run, folder: str) -> None:
    for command in (["chat", folder, "Hello"], ["complete", folder, "--prompt", "Hello"]):
        done = run_akunu(*command)
        assert done.returncode == 1
        assert "is a speech model: akunu.load_whisper loads it" in done.stderr


def test_files_side_by_side_are_those_one_after_another(
    run_akunu: Run, folder: str, talk: Path
) -> None:
    files = []
    for number in range(5):
        path = talk.parent / f"part{number}.wav"
        path.write_bytes(wav(3.0 + number))
        files.append(str(path))
    files.insert(2, str(talk.parent / "gone.wav"))
    alone = run_akunu("transcribe", *files, "-m", folder, *ALL)
    assert alone.returncode == 1
    beside = run_akunu("transcribe", *files, "-m", folder, "--jobs", "3", *ALL)
    assert (beside.returncode, beside.stdout) == (1, alone.stdout)
    assert "gone.wav: No such file" in beside.stderr
    out = talk.parent / "out"
    run_akunu("transcribe", *files, "-m", folder, "-j", "3", "-o", str(out), "-f", "srt", *ALL)
    assert sorted(each.name for each in out.iterdir()) == [f"part{n}.srt" for n in range(5)]


def test_subtitles_are_laid_out_by_the_times_of_words(
    run_akunu: Run, folder: str, talk: Path
) -> None:
    with load_whisper(folder) as model:
        said = model.transcribe(talk, vad=False, language="de", word_timestamps=True)
    assert said.words
    for options, layout in (
        (["--max-line-width", "10", "--max-line-count", "2"], (10, 2, None, False)),
        (["--max-words", "2"], (None, None, 2, False)),
        (["--highlight-words"], (None, None, None, True)),
    ):
        names = ("max_line_width", "max_line_count", "max_words", "highlight_words")
        command = ("transcribe", str(talk), "-m", folder, "-f", "srt", "--words", *options, *ALL)
        done = run_akunu(*command)
        assert done.stdout == said.render("srt", **dict(zip(names, layout, strict=True)))


def test_ctrl_c_keeps_what_is_finished(folder: str, talk: Path) -> None:
    long, out = talk.parent / "long.wav", talk.parent / "out"
    long.write_bytes(wav(1200.0))
    program = subprocess.Popen(
        [*COMMAND, "transcribe", talk, long, "-m", folder, "-o", out, *ALL],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT,
    )  # fmt: skip
    end = time.monotonic() + 60
    while not (out / "talk.txt").exists():
        assert time.monotonic() < end
        time.sleep(0.02)
    program.send_signal(signal.SIGINT)
    _, told = program.communicate(timeout=60)
    assert program.returncode == 130, told
    assert [each.name for each in out.iterdir()] == ["talk.txt"]
    assert (out / "talk.txt").stat().st_size > 0


def test_a_terminal_sees_how_far_it_is(folder: str, talk: Path) -> None:
    talk.write_bytes(wav(300.0))
    command = ("transcribe", str(talk), "-m", folder, "-f", "srt", *ALL)
    with open(os.devnull, "wb") as nowhere:
        terminal = Terminal(*command, stdout=nowhere.fileno(), TERM="xterm")
        try:
            terminal.wait_for(r"transcribing .*talk\.wav: \d\d:\d\d of 05:00")
            terminal.send_signal(signal.SIGINT)
            assert terminal.exit_code() == 130
        finally:
            terminal.close()
