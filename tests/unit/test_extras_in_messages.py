"""Messages that ask for an extra name it as a clone has it too: no wheels are published yet."""

import sys

import numpy as np
import pytest

from akunu import AkunuError
from akunu.images import reader
from akunu.speech import audio
from akunu.speech.activity import silero
from akunu.speech.input import decoders, microphone


def test_samples_at_another_rate(monkeypatch):
    monkeypatch.setitem(sys.modules, "soxr", None)
    with pytest.raises(AkunuError, match=r"'akunu\[audio\]', or '\.\[audio\]' in a clone"):
        list(audio._resampled(iter([np.zeros(8, np.float32)]), 8000))


def test_recording(monkeypatch):
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    with pytest.raises(AkunuError, match=r"'akunu\[mic\]', or '\.\[mic\]' in a clone"):
        microphone._sounddevice()


def test_voice_activity(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(AkunuError, match=r"'akunu\[vad\]' \('\.\[vad\]' in a clone\)"):
        silero.SileroDetector(tmp_path / "silero_vad.onnx")


def test_a_compressed_file():
    error = decoders._missing("a.mp3", "soundfile", "audio")
    assert "'akunu[audio]' ('.[audio]' in a clone)" in str(error)


def test_images(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(AkunuError, match=r"'akunu\[images\]', or '\.\[images\]' in a clone"):
        reader.open_image(b"")
