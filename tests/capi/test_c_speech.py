"""Speech in C beside the Python package: the same segments of the same samples."""

from __future__ import annotations

import ctypes
import os
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import speech_models as sm
from c_library import (
    ARGUMENT,
    BUSY,
    FILE,
    HANDLE,
    UNSUPPORTED,
    CError,
    Handle,
    Library,
    LoadOptions,
    Segment,
    SegmentCallback,
    TranscribeOptions,
    TranscriptionStats,
)
from numpy.typing import NDArray

import akunu
from akunu.speech.audio import load_audio
from akunu.speech.model import SpeechModel
from akunu.speech.segments import Segment as PythonSegment

Samples = NDArray[np.float32]
SPEC = sm.SpeechSpec()
ENGLISH = sm.SpeechSpec(is_multilingual=False, n_mels=128)
STOP, CANCELLED = 1, 3
EMBER = Path(akunu.__file__).parent / "data" / "ember-q8_0.gguf"


@dataclass
class Heard:
    """The segments that a callback was told."""

    segments: list[dict[str, Any]] = field(default_factory=list)
    most: int = 10**9
    on_segment: Callable[[], None] = lambda: None

    def callback(self) -> Any:
        def told(at: Any, _user: int) -> bool:
            given: Segment = at.contents
            known = {name: getattr(given, name) for name, *_ in Segment._fields_}
            known["text"] = ctypes.string_at(given.text, given.text_length).decode()
            known["tokens"] = tuple(given.tokens[: given.n_tokens])
            self.segments.append(known)
            self.on_segment()
            return len(self.segments) < self.most

        return SegmentCallback(told)


def noise(seconds: float, seed: int = 0) -> Samples:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(round(seconds * 16_000)) * 0.1).astype(np.float32)


def of(samples: Samples) -> tuple[Any, ctypes.c_size_t]:
    at = samples.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
    return at, ctypes.c_size_t(len(samples))


def loaded(library: Library, path: Path) -> Handle:
    options = LoadOptions(device=b"cpu", threads=2)
    return library.new("load_model", str(path).encode(), ctypes.byref(options))


def transcribe(
    library: Library, model: Handle, samples: Samples, **options: Any
) -> tuple[list[dict[str, Any]], TranscriptionStats]:
    heard, stats = Heard(), TranscriptionStats()
    library.call(
        "transcribe", model, *of(samples), ctypes.byref(TranscribeOptions(**options)),
        heard.callback(), None, ctypes.byref(stats),
    )  # fmt: skip
    return heard.segments, stats


def assert_same(found: list[dict[str, Any]], expected: tuple[PythonSegment, ...]) -> None:
    names = ("id", "start", "end", "text", "tokens", "compression_ratio")
    assert [{name: each[name] for name in names} for each in found] == [
        {name: getattr(each, name) for name in names} for each in expected
    ]
    for mine, theirs in zip(found, expected, strict=True):
        # float32 here, and sums whose order may differ
        assert mine["temperature"] == pytest.approx(theirs.temperature, rel=1e-6)
        assert mine["avg_logprob"] == pytest.approx(theirs.avg_logprob, rel=1e-12)
        assert mine["no_speech_prob"] == pytest.approx(theirs.no_speech_prob, rel=1e-12)


def by_python(model: SpeechModel, samples: Samples, **options: Any) -> akunu.Transcription:
    return model.transcribe(samples, beam_size=1, vad=False, **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whisper") / "model"
    return sm.write(path, SPEC, sm.random_tensors(SPEC))


@pytest.fixture(scope="module")
def known(folder: Path) -> Iterator[SpeechModel]:
    with akunu.load_whisper(folder, threads=2, device="cpu") as model:
        yield model


@pytest.fixture(scope="module")
def model(library: Library, folder: Path) -> Iterator[Handle]:
    handle = loaded(library, folder)
    yield handle
    library.call("close_model", handle)


@pytest.mark.parametrize("seed", range(3))
def test_segments_are_those_of_the_package(
    library: Library, model: Handle, known: SpeechModel, seed: int
) -> None:
    samples = noise(15, seed)  # two and a half windows of 6 seconds
    found, stats = transcribe(library, model, samples, seed=seed)
    expected = by_python(known, samples, seed=seed)
    assert_same(found, expected.segments)
    assert found
    assert stats.language.decode() == expected.language
    assert stats.language_probability == pytest.approx(expected.language_probability, rel=1e-12)
    assert (stats.finish, stats.n_segments) == (STOP, len(found))
    assert stats.audio_seconds == 15


def test_every_option_is_that_of_the_package(
    library: Library, model: Handle, known: SpeechModel
) -> None:
    samples = noise(9, 5)
    temperatures = (ctypes.c_float * 2)(0.0, 0.5)
    cases: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"language": b"de"}, {"language": "de"}),
        ({"task": b"translate", "language": b"haw"}, {"task": "translate", "language": "haw"}),
        ({"prompt": b" so it was "}, {"prompt": " so it was "}),
        ({"no_timestamps": True}, {"without_timestamps": True}),
        ({"no_previous_text": True}, {"condition_on_previous_text": False}),
        ({"temperatures": temperatures, "n_temperatures": 2}, {"temperature": (0.0, 0.5)}),
        ({"best_of": 2, "seed": 11}, {"best_of": 2, "seed": 11}),
    ]
    for in_c, in_python in cases:
        found, _ = transcribe(library, model, samples, **in_c)
        assert_same(found, by_python(known, samples, **in_python).segments)


def test_english_models_hear_english(library: Library, tmp_path: Path) -> None:
    path = sm.write(tmp_path / "model", ENGLISH, sm.random_tensors(ENGLISH))
    model = loaded(library, path)
    samples = noise(7, 3)
    with akunu.load_whisper(path, threads=2, device="cpu") as known:
        expected = by_python(known, samples)
    found, stats = transcribe(library, model, samples)
    assert_same(found, expected.segments)
    assert (stats.language, stats.language_probability) == (b"en", 1.0)
    assert library.text("get_languages", model) == "en"
    with pytest.raises(CError, match="knows only English"):
        transcribe(library, model, samples, language=b"de")
    with pytest.raises(CError, match="knows only English"):
        transcribe(library, model, samples, task=b"translate")
    library.call("close_model", model)


def test_languages_are_listed(library: Library, model: Handle) -> None:
    assert library.text("get_languages", model).split("\n") == list(sm.LANGUAGES)


def wav(samples: Samples, *, rate: int = 16_000, channels: int = 1, kind: str = "<f4") -> bytes:
    """A WAV file; integers are of the samples as they are given."""
    encoding = 3 if "f" in kind else 1
    data = samples.astype(kind).tobytes()
    if kind == "<i3":
        raise AssertionError("NumPy has no 24 bits")
    width = np.dtype(kind).itemsize
    form = struct.pack("<HHIIHH", encoding, channels, rate, 0, 0, 8 * width)
    odd = b"LIST\x03\0\0\0abc\0"
    body = b"WAVEfmt " + struct.pack("<I", len(form)) + form + odd
    return b"RIFF\0\0\0\0" + body + b"data" + struct.pack("<I", len(data)) + data


def of_file(library: Library, model: Handle, path: Path) -> list[dict[str, Any]]:
    heard = Heard()
    library.call("transcribe_file", model, str(path).encode(), None, heard.callback(), None, None)
    return heard.segments


@pytest.mark.parametrize(
    ("kind", "channels"), [("<f4", 1), ("<f8", 2), ("<i2", 1), ("<i2", 3), ("<i4", 1), ("u1", 2)]
)
def test_wav_files_are_read(
    library: Library,
    model: Handle,
    known: SpeechModel,
    tmp_path: Path,
    kind: str,
    channels: int,
) -> None:
    samples = noise(3 * channels, 7)
    if np.dtype(kind).kind == "i":
        samples = np.round(samples * 2.0 ** (8 * np.dtype(kind).itemsize - 2))
    elif kind == "u1":
        samples = np.round(samples * 100 + 128).clip(0, 255)
    path = tmp_path / "speech.wav"
    path.write_bytes(wav(samples, channels=channels, kind=kind))
    found = of_file(library, model, path)
    assert found
    assert_same(found, by_python(known, load_audio(path)).segments)


@pytest.mark.parametrize("size", [0, 0x7FFF_F000, 0xFFFF_FFDB])
def test_a_size_that_a_program_did_not_know_is_the_rest_of_the_file(
    library: Library, model: Handle, known: SpeechModel, tmp_path: Path, size: int
) -> None:
    data = bytearray(wav(noise(3, 7)))
    place = data.index(b"data") + 4
    data[place : place + 4] = size.to_bytes(4, "little")
    path = tmp_path / "speech.wav"
    path.write_bytes(data)
    expected = by_python(known, load_audio(wav(noise(3, 7)))).segments
    assert_same(of_file(library, model, path), expected)


def test_three_bytes_are_a_sample(
    library: Library, model: Handle, known: SpeechModel, tmp_path: Path
) -> None:
    wide = np.round(noise(3, 8) * 2.0**22).astype("<i4")
    data = wide.view(np.uint8).reshape(-1, 4)[:, :3].tobytes()
    form = struct.pack("<HHIIHH", 1, 1, 16_000, 48_000, 3, 24)
    head = b"RIFF\0\0\0\0WAVEfmt " + struct.pack("<I", 16) + form
    path = tmp_path / "speech.wav"
    path.write_bytes(head + b"data" + struct.pack("<I", len(data)) + data)
    assert_same(of_file(library, model, path), by_python(known, load_audio(path)).segments)


def test_other_files_are_refused(library: Library, model: Handle, tmp_path: Path) -> None:
    whole = wav(noise(1))
    path = tmp_path / "speech.wav"
    for data, status, why in (
        (b"fLaC" + whole, UNSUPPORTED, "no WAV file.*ffmpeg"),
        (wav(noise(1), rate=8_000), UNSUPPORTED, "8000 Hz.*ffmpeg -i FILE -ar 16000"),
        (
            whole.replace(struct.pack("<HH", 3, 1), struct.pack("<HH", 7, 1), 1),
            UNSUPPORTED,
            "encod",
        ),
        (whole[:-8], FILE, "is cut off"),
        (whole[:30], FILE, "cut off"),
        (wav(np.array([np.nan, 0], np.float32)), ARGUMENT, "finite"),
        (wav(np.array([300, 0], np.float32)), ARGUMENT, "divide 16-bit"),
    ):
        path.write_bytes(data)
        with pytest.raises(CError, match=why) as refused:
            of_file(library, model, path)
        assert refused.value.status == status
    with pytest.raises(CError, match=r"missing\.wav"):
        of_file(library, model, tmp_path / "missing.wav")


def test_arguments_are_checked(library: Library, model: Handle) -> None:
    samples = noise(1)
    bad = (ctypes.c_float * 1)(-1.0)
    for options, why in (
        ({"language": b"xx"}, "'xx'; this model knows en, zh, de, es, haw"),
        ({"task": b"sing"}, "'sing'"),
        ({"temperatures": bad, "n_temperatures": 1}, "temperatures"),
        ({"n_temperatures": 1}, "temperatures is null"),
        ({"best_of": 65}, "best_of is 65"),
        ({"prompt": b"word " * 40}, "prompt has"),
    ):
        with pytest.raises(CError, match=why) as refused:
            transcribe(library, model, samples, **options)
        assert refused.value.status == ARGUMENT
    with pytest.raises(CError, match="no samples"):
        transcribe(library, model, noise(0))
    with pytest.raises(CError, match="callback is null"):
        library.call("transcribe", model, *of(samples), None, None, None, None)


def test_a_model_of_text_hears_nothing(library: Library) -> None:
    model = loaded(library, EMBER)
    with pytest.raises(CError, match="model of text") as refused:
        transcribe(library, model, noise(1))
    assert refused.value.status == UNSUPPORTED
    library.call("close_model", model)


class Stream:
    """A transcription of samples as they come."""

    def __init__(self, library: Library, model: Handle, **options: Any) -> None:
        self.heard = Heard()
        self._library = library
        self._callback = self.heard.callback()
        given = TranscribeOptions(**options)
        self.handle = library.new(
            "open_transcription", model, ctypes.byref(given), self._callback, None
        )

    def hear(self, samples: Samples) -> None:
        self._library.call("hear", self.handle, *of(samples))

    def finish(self) -> TranscriptionStats:
        stats = TranscriptionStats()
        self._library.call("finish_transcription", self.handle, ctypes.byref(stats))
        return stats

    def close(self) -> None:
        self._library.call("close_transcription", self.handle)


def test_samples_may_come_piece_by_piece(
    library: Library, model: Handle, known: SpeechModel
) -> None:
    samples = noise(15, 4)
    whole: list[dict[str, Any]] | None = None
    for size in (16_000 * 15, 1_000, 7_777):
        stream = Stream(library, model)
        for begin in range(0, len(samples), size):
            stream.hear(np.ascontiguousarray(samples[begin : begin + size]))
        stats = stream.finish()
        assert (stats.finish, stats.audio_seconds) == (STOP, 15)
        assert stats.n_segments == len(stream.heard.segments)
        whole = whole or stream.heard.segments
        for mine, theirs in zip(stream.heard.segments, whole, strict=True):
            assert (mine["start"], mine["end"], mine["tokens"]) == (
                theirs["start"], theirs["end"], theirs["tokens"],
            )  # fmt: skip
        with pytest.raises(CError, match="is over"):
            stream.hear(samples)
        stream.close()
    # One window has one spectrogram, however it came.
    short = noise(5, 6)
    stream = Stream(library, model, language=b"en")
    stream.hear(short[:30_000].copy())
    stream.hear(short[30_000:].copy())
    stream.finish()
    expected = by_python(known, short, language="en").segments
    first = [each for each in expected if each.seek == 0]
    assert_same(stream.heard.segments[: len(first)], tuple(first))
    stream.close()


def test_a_callback_ends_a_transcription(library: Library, model: Handle) -> None:
    heard, stats = Heard(most=1), TranscriptionStats()
    library.call(
        "transcribe", model, *of(noise(20)), None, heard.callback(), None, ctypes.byref(stats)
    )
    assert (len(heard.segments), stats.finish) == (1, CANCELLED)


def test_another_thread_cancels(library: Library, model: Handle) -> None:
    stream = Stream(library, model)
    begun = threading.Event()
    stream.heard.on_segment = begun.set
    thread = threading.Thread(target=stream.hear, args=(noise(600),))
    thread.start()
    assert begun.wait(60)
    with pytest.raises(CError) as refused:
        stream.hear(noise(1))
    assert refused.value.status == BUSY
    library.call("cancel_transcription", stream.handle)
    thread.join(60)
    assert not thread.is_alive()
    assert stream.finish().finish == CANCELLED
    assert len(stream.heard.segments) < 100
    stream.close()
    with pytest.raises(CError, match="akunu_transcription is closed") as closed:
        stream.finish()
    assert closed.value.status == HANDLE


@pytest.mark.real
def test_real_speech_is_that_of_the_package(library: Library) -> None:
    models, speech = os.environ.get("AKUNU_REAL_MODELS"), os.environ.get("AKUNU_REAL_SPEECH")
    if not models or not speech:
        pytest.skip("AKUNU_REAL_MODELS or AKUNU_REAL_SPEECH is not set")
    path = Path(models) / "whisper-tiny.en"
    recordings = sorted(Path(speech).glob("conf-*.wav"))[:8]
    pause = np.zeros(8_000, np.float32)
    parts = [part for each in recordings for part in (load_audio(each), pause)]
    model = loaded(library, path)
    with akunu.load_whisper(path, threads=2, device="cpu") as known:
        for samples in (load_audio(Path(speech) / "conf-adminmenu-162.wav"), np.concatenate(parts)):
            found, _ = transcribe(library, model, samples)
            assert_same(found, by_python(known, samples).segments)
            assert len(found) > 2
    library.call("close_model", model)
