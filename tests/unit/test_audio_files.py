"""Audio in: every kind of source gives the same samples, and what is broken is named."""

from __future__ import annotations

import errno
import io
import wave
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
import soundfile

from akunu import AkunuError, ArgumentError, AudioError
from akunu.speech import audio
from akunu.speech.audio import load_audio
from akunu.speech.input import decoders
from lines import each_line

RATE = 16_000
TONE = (0.5 * np.sin(2 * np.pi * 440 * np.arange(RATE) / RATE)).astype(np.float32)


def wav_bytes(samples: np.ndarray, rate: int = RATE) -> bytes:
    """16-bit PCM, by the standard library."""
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1 if samples.ndim == 1 else samples.shape[1])
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes(np.round(samples * 32767).astype("<i2").tobytes())
    return file.getvalue()


def encoded(format: str, subtype: str | None = None, rate: int = RATE) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, TONE, rate, format=format, subtype=subtype)
    return file.getvalue()


def by_av(container: str, codec: str, rate: int = 48_000) -> bytes:
    file = io.BytesIO()
    with av.open(file, "w", format=container) as out:
        stream = out.add_stream(codec, rate=rate, layout="mono")
        stream.bit_rate = 128_000
        tone = (0.5 * np.sin(2 * np.pi * 440 * np.arange(rate) / rate)).astype(np.float32)
        frame = av.AudioFrame.from_ndarray(tone[None], format="fltp", layout="mono")
        frame.sample_rate = rate
        for packet in [*stream.encode(frame), *stream.encode(None)]:
            out.mux(packet)
    return file.getvalue()


def assert_is_the_tone(samples: np.ndarray, tolerance: float = 0.05) -> None:
    """A second of 440 Hz at half of the full scale, whatever the codec delays it by."""
    assert samples.dtype == np.float32
    assert abs(len(samples) - RATE) <= 0.06 * RATE
    middle = samples[RATE // 4 : 3 * RATE // 4]
    assert np.abs(np.fft.rfft(middle)).argmax() == 220  # bins of 2 Hz
    assert abs(np.abs(middle).max() - 0.5) < tolerance


@each_line(
    "source",
    [
        wav_bytes(TONE),
        encoded("FLAC"),
        encoded("MP3"),
        encoded("OGG", "VORBIS"),
        encoded("OGG", "OPUS"),
        encoded("AIFF"),
        encoded("WAV", "ULAW"),
        wav_bytes(
            np.stack([np.sin(np.arange(44_100) * 440 * 2 * np.pi / 44_100) / 2] * 2, 1), 44_100
        ),
        by_av("mp4", "aac"),
        by_av("webm", "libopus"),
    ],
    ids=["wav", "flac", "mp3", "vorbis", "opus", "aiff", "ulaw", "44100", "m4a", "webm"],
)
def test_a_file_of_any_format_gives_its_sound_at_16_khz(source: bytes, tmp_path: Path) -> None:
    samples = load_audio(source)
    assert_is_the_tone(samples)
    path = tmp_path / "tone"
    path.write_bytes(source)
    assert (load_audio(path) == samples).all()
    assert (load_audio(str(path)) == samples).all()
    with path.open("rb") as file:
        assert (load_audio(file) == samples).all()


@each_line("subtype", ["PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE"])
@each_line("format", ["WAV", "WAVEX"])
def test_wav_files_need_no_package(
    format: str, subtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = encoded(format, subtype)
    expected, _ = soundfile.read(io.BytesIO(data), dtype="float32")
    monkeypatch.setattr(decoders, "_imported", lambda _: None)
    np.testing.assert_allclose(load_audio(data), expected, rtol=0, atol=1e-7)


@each_line(
    ("dtype", "scale"), [(np.int16, 32768), (np.int32, 2**31), (np.float32, 1), (np.float64, 1)]
)
def test_arrays_are_taken_in_whatever_numbers_they_are(dtype: Any, scale: int) -> None:
    halves = np.array([0.5, -0.5, 0.25, 0]) * scale
    assert load_audio(halves.astype(dtype)).tolist() == [0.5, -0.5, 0.25, 0]


def test_channels_are_mixed_or_kept_apart() -> None:
    both = np.stack([TONE, np.zeros_like(TONE)], axis=1)
    assert (load_audio(both) == TONE / 2).all()
    left, right = load_audio(both, channels="apart")
    assert (left == TONE).all()
    assert (right == 0).all()


def test_resampling_keeps_the_sound_and_its_length() -> None:
    tone = (0.5 * np.sin(2 * np.pi * 440 * np.arange(8000) / 8000)).astype(np.float32)
    samples = load_audio(tone, sample_rate=8000)
    assert len(samples) == RATE
    np.testing.assert_allclose(samples[500:-500], TONE[500:-500], atol=1e-3)


def cut(data: bytes) -> bytes:
    return data[: len(data) * 2 // 3]


BROKEN = {
    "a cut WAV": (cut(wav_bytes(TONE)), "is cut off: 0.3[34] of its 1.00 seconds are missing"),
    "a cut FLAC": (cut(encoded("FLAC")), "cut off|cannot be read"),
    "a cut Vorbis": (cut(encoded("OGG", "VORBIS")), "is cut off: its last page is not whole"),
    "a cut Opus": (cut(encoded("OGG", "OPUS")), "is cut off: its last page is not whole"),
    "a cut M4A": (cut(by_av("mp4", "aac")), "or it is cut off"),
    "a cut WebM": (cut(by_av("webm", "libopus")), "is cut off: it has"),
    "text": (b"Hello, this is no audio at all.", "not audio or video in a known format"),
    "an empty file": (b"", "is empty"),
    "a WAV without samples": (wav_bytes(TONE[:0]), "holds no samples"),
    "a WAV's header only": (wav_bytes(TONE)[:30], "cut off|ends before its samples"),
    "no samples": (np.zeros(0, np.float32), "holds no samples"),
    "NaN": (np.array([0, np.nan], np.float32), "sample 1 is nan"),
    "16-bit numbers as floats": (np.array([0, 3000.0]), "the sample 3000"),
}


@each_line("name", BROKEN)
def test_what_is_broken_is_named(name: str) -> None:
    source, said = BROKEN[name]
    with pytest.raises(AudioError, match=said):
        load_audio(source)


def test_a_wav_file_cut_at_any_byte_is_an_error() -> None:
    data = wav_bytes(TONE[:40])
    for end in range(len(data) - 1):
        with pytest.raises(AudioError):
            load_audio(data[:end])
    with pytest.warns(UserWarning, match="the last sample is incomplete and was dropped"):
        assert (load_audio(data[:-1]) == load_audio(data)[:-1]).all()


@pytest.mark.parametrize("size", [0, 0x7FFF_F000, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFDB, 2**32 - 1])
def test_a_size_that_a_program_did_not_know_is_the_rest_of_the_file(size: int) -> None:
    data = bytearray(wav_bytes(TONE))
    place = data.index(b"data") + 4
    data[place : place + 4] = size.to_bytes(4, "little")
    assert (load_audio(bytes(data)) == load_audio(wav_bytes(TONE))).all()


def test_a_video_without_sound_is_named() -> None:
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as out:
        stream = out.add_stream("mpeg4", rate=25)
        stream.width = stream.height = 32
        picture = av.VideoFrame.from_ndarray(np.zeros((32, 32, 3), np.uint8), format="rgb24")
        for packet in [*stream.encode(picture), *stream.encode(None)]:
            out.mux(packet)
    with pytest.raises(AudioError, match="has no sound"):
        load_audio(file.getvalue())


def test_audio_that_is_too_long_is_refused_before_it_is_read() -> None:
    with pytest.raises(AudioError, match=r"longer than the 0\.5 seconds"):
        load_audio(wav_bytes(TONE), max_seconds=0.5)


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoders, "_imported", lambda _: None)
    with pytest.raises(AkunuError, match=r"needs soundfile.*akunu\[audio\]"):
        load_audio(encoded("FLAC"))
    with pytest.raises(AkunuError, match=r"needs PyAV.*akunu\[av\]"):
        load_audio(by_av("mp4", "aac"))


def test_arguments_that_make_no_sense_are_refused() -> None:
    for arguments, said in [
        ((12,), "must be a path, bytes"),
        ((io.StringIO("x"),), "binary mode"),
        ((np.zeros((2, 48_000), np.float32),), "transpose"),
        ((np.zeros(3, bool),), "not bool"),
    ]:
        with pytest.raises(ArgumentError, match=said):
            audio.load_audio(*arguments)
    with pytest.raises(ArgumentError, match="a file has its own"):
        load_audio(wav_bytes(TONE), sample_rate=8000)
    with pytest.raises(ArgumentError, match="channels"):
        load_audio(TONE, channels="left")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "said", "number"),
    [
        ("gone.wav", "No such file", errno.ENOENT),
        ("", "Is a directory", errno.EISDIR),
        ("a\0b", "null byte", None),
    ],
)
def test_a_file_that_cannot_be_opened_is_an_error_of_ours(
    tmp_path: Path, name: str, said: str, number: int | None
) -> None:
    with pytest.raises(AudioError, match=said) as error:
        load_audio(tmp_path / name)
    assert isinstance(error.value, OSError)
    assert error.value.errno == number
    assert str(error.value).startswith(f"{tmp_path / name}: ")
