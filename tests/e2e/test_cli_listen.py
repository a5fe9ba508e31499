"""`akunu listen` and the microphone below it.

No machine of ours has a microphone. ALSA can make one of a file, which PortAudio then finds as any
other, but for its haste: all of the file comes at once. Where PortAudio or ALSA is missing, those
tests are skipped.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cli_support import COMMAND, EMBER, ENVIRONMENT

sys.path.append(str(Path(__file__).parents[1] / "models"))

import brief_speech

ASOUNDRC = """
pcm.recorded {{
  type file
  slave.pcm null
  file /dev/null
  infile {path}
  format raw
  hint {{ show on description "a file" }}
}}
pcm.!default recorded
"""


def run(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run akunu with the ALSA devices of a home."""
    environment = {**ENVIRONMENT, "HOME": str(home)}
    return subprocess.run(
        [*COMMAND, "listen", *arguments],
        capture_output=True, text=True, env=environment, timeout=120,
    )  # fmt: skip


def has_portaudio() -> bool:
    try:
        import sounddevice  # noqa: F401
    except (ImportError, OSError):
        return False
    return True


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return brief_speech.write(tmp_path_factory.mktemp("whisper") / "small")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home whose ALSA has a microphone that hears what is in a file."""
    if not has_portaudio():
        pytest.skip("sounddevice or PortAudio is not installed")
    sound = tmp_path / "sound.raw"
    rng = np.random.default_rng(3)
    sound.write_bytes((rng.standard_normal(20 * 16_000) * 0.1).astype("<f4").tobytes())
    (tmp_path / ".asoundrc").write_text(ASOUNDRC.format(path=sound))
    if "recorded" not in run(tmp_path, "--list").stdout:
        pytest.skip("PortAudio does not use ALSA here: it has no device that is a file")
    return tmp_path


def test_without_a_microphone_that_is_said(folder: str, tmp_path: Path) -> None:
    if not has_portaudio():
        done = run(tmp_path, "-m", folder)
        assert done.returncode == 1
        assert "PortAudio" in done.stderr or "sounddevice" in done.stderr
        return
    listed = run(tmp_path, "--list")
    assert listed.returncode == 0
    if listed.stdout:
        pytest.skip("this machine has a microphone")
    assert "there is no microphone" in listed.stderr
    done = run(tmp_path, "-m", folder)
    assert done.returncode == 1
    assert "PortAudio finds no microphone" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_microphone_is_heard(folder: str, home: Path) -> None:
    assert "* 1  default" in run(home, "--list").stdout
    done = run(home, "-m", folder, "--seconds", "4", "--no-vad", "-l", "de")
    assert done.returncode == 0, done.stderr
    assert "listening; Ctrl-C stops" in done.stderr
    assert done.stdout.strip()
    assert done.stdout.endswith("\n")
    silent = run(home, "-m", folder, "--seconds", "3")  # steady noise is no speech
    assert (silent.returncode, silent.stdout) == (0, "")


def test_a_microphone_that_is_not_there_is_said(folder: str, home: Path) -> None:
    done = run(home, "-m", folder, "--microphone", "Blue Yeti")
    assert done.returncode == 1
    fits = "microphone is 'Blue Yeti', which fits no microphone; the microphones are "
    assert f"{fits}0 'recorded', 1" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 2, "the model is missing"),
        (["-m", str(EMBER)], 1, "is not a Whisper model"),
        (["-m", str(EMBER), "--seconds", "0"], 2, "--seconds is 0"),
        (["-m", str(EMBER), "-l", "klingon"], 2, "--language is 'klingon'"),
    ],
)
def test_what_makes_no_sense_is_said(
    tmp_path: Path, arguments: list[str], code: int, words: str
) -> None:
    done = run(tmp_path, *arguments)
    assert done.returncode == code, done.stderr
    assert words in done.stderr


@pytest.mark.real
def test_real_speech_is_written_as_it_is_heard(home: Path) -> None:
    from akunu.speech.audio import load_audio

    models, speech = os.environ.get("AKUNU_REAL_MODELS"), os.environ.get("AKUNU_REAL_SPEECH")
    if not models or not speech:
        pytest.skip("AKUNU_REAL_MODELS or AKUNU_REAL_SPEECH is not set")
    samples = load_audio(Path(speech) / "conf-adminmenu-162.wav")
    (home / "sound.raw").write_bytes(samples.astype("<f4").tobytes())
    done = run(home, "-m", f"{models}/whisper-tiny.en", "--seconds", "8")
    assert done.returncode == 0, done.stderr
    assert "mute or unmute yourself" in done.stdout
