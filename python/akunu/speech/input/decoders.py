"""Files of many formats as blocks of samples: WAV by ourselves, others by soundfile or PyAV."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from akunu.errors import AkunuError, AudioError
from akunu.speech.input.wav import read_format, read_wav

_SECONDS_AT_ONCE = 10
_LOST_SECONDS = 0.15
"""How much shorter than its container says a stream may be: containers round."""
_SOUNDFILE_BEGINNINGS = (b"RIFF", b"RF64", b"fLaC", b"OggS", b"ID3", b"FORM", b".snd", b"caff")


@dataclass(frozen=True, slots=True)
class Decoded:
    """Blocks of samples, float32 [n, channels]."""

    rate: int
    blocks: Iterator[NDArray[np.float32]]


def decode(file: BinaryIO, name: str) -> Decoded:
    """Return the samples of a seekable file, which are read as blocks are taken.

    Raises AudioError, now or from the blocks, for what is not audio, or is cut off; AkunuError
    where a package is missing.
    """
    beginning = file.read(12)
    file.seek(0)
    if not beginning:
        raise AudioError(f"{name} is empty")
    if beginning[:4] == b"RIFF" and beginning[8:12] == b"WAVE":
        form, size = read_format(file, name)
        if form.is_known:
            return Decoded(form.rate, read_wav(file, form, size, name))
        file.seek(0)
    if beginning[:4] == b"OggS":
        _check_last_page(file, name)
    if _is_for_soundfile(beginning):
        soundfile = _imported("soundfile")
        if soundfile is not None:
            return _by_soundfile(soundfile, file, name)
        if _imported("av") is None:
            raise _missing(name, "soundfile", "audio")
    av = _imported("av")
    if av is None:
        raise _missing(
            name,
            "PyAV",
            "av",
            "it is not a WAV, FLAC, MP3 or Ogg file. If it is M4A, WebM or a video, reading it",
        )
    return _by_av(av, file, name)


def _is_for_soundfile(beginning: bytes) -> bool:
    is_mpeg = beginning[0] == 0xFF and len(beginning) > 1 and beginning[1] & 0xE6 == 0xE2
    return is_mpeg or beginning.startswith(_SOUNDFILE_BEGINNINGS)


def _imported(module: str) -> Any:
    try:
        return __import__(module)
    except ImportError:
        return None


def _missing(name: str, package: str, extra: str, why: str = "reading it") -> AkunuError:
    return AkunuError(
        f"{name}: {why} needs {package}, which is not installed: pip install 'akunu[{extra}]' "
        f"('.[{extra}]' in a clone), or convert the file to WAV"
    )


def _by_soundfile(soundfile: Any, file: BinaryIO, name: str) -> Decoded:
    try:
        sound = soundfile.SoundFile(file)
    except soundfile.LibsndfileError as error:
        raise AudioError(f"{name} cannot be read as audio: {_said(error)}") from None
    return Decoded(sound.samplerate, _soundfile_blocks(soundfile, sound, name))


def _soundfile_blocks(soundfile: Any, sound: Any, name: str) -> Iterator[NDArray[np.float32]]:
    with sound:
        expected, read = sound.frames, 0
        while True:
            try:
                block = sound.read(
                    _SECONDS_AT_ONCE * sound.samplerate, dtype="float32", always_2d=True
                )
            except soundfile.LibsndfileError as error:
                seconds = read / sound.samplerate
                raise AudioError(
                    f"{name} cannot be read beyond {seconds:.2f} s: {_said(error)}"
                ) from None
            if len(block) == 0:
                break
            read += len(block)
            yield block
        if read < expected:
            raise AudioError(
                f"{name} is cut off: it has {read / sound.samplerate:.2f} of its "
                f"{expected / sound.samplerate:.2f} seconds"
            )


def _said(error: Exception) -> str:
    return str(getattr(error, "error_string", error)).rstrip(". ")


def _check_last_page(file: BinaryIO, name: str) -> None:
    """Refuse an Ogg file whose last page is not whole: libsndfile would leave it out silently."""
    end = file.seek(0, io.SEEK_END)
    file.seek(max(0, end - (1 << 17)))  # a page is at most 65,307 bytes
    tail = file.read()
    file.seek(0)
    at = tail.rfind(b"OggS")
    page = tail[at:] if at >= 0 else b""
    n_segments = page[26] if len(page) > 26 else 0
    whole = 27 + n_segments + sum(page[27 : 27 + n_segments])
    if len(page) < whole:
        raise AudioError(f"{name} is cut off: its last page is not whole")


def _by_av(av: Any, file: BinaryIO, name: str) -> Decoded:
    try:
        container = av.open(file, metadata_errors="replace")
    except (av.error.FFmpegError, ValueError):
        raise AudioError(
            f"{name} is not audio or video in a known format, or it is cut off"
        ) from None
    if not container.streams.audio:
        container.close()
        raise AudioError(f"{name} has no sound: a {container.format.long_name} without audio")
    stream = container.streams.audio[0]
    stream.thread_type = "AUTO"
    rate = stream.rate
    if not rate:
        container.close()
        raise AudioError(f"{name} does not have a sample rate")
    return Decoded(rate, _av_blocks(av, container, stream, name))


def _av_blocks(av: Any, container: Any, stream: Any, name: str) -> Iterator[NDArray[np.float32]]:
    with closing(container):
        to_floats = av.AudioResampler(format="fltp", layout=stream.layout, rate=stream.rate)
        expected = _seconds_said(container, stream)
        read = 0
        try:
            for frame in container.decode(stream):
                for made in to_floats.resample(frame):
                    block = made.to_ndarray().T
                    read += len(block)
                    yield block
            for made in to_floats.resample(None):
                block = made.to_ndarray().T
                read += len(block)
                yield block
        except av.error.FFmpegError as error:
            raise AudioError(
                f"{name} cannot be read beyond {read / stream.rate:.2f} s: {error.strerror}"
            ) from None
        if read / stream.rate < expected - _LOST_SECONDS:
            raise AudioError(
                f"{name} is cut off: it has {read / stream.rate:.2f} of its {expected:.2f} seconds"
            )


def _seconds_said(container: Any, stream: Any) -> float:
    """How long the sound should be; the container of a video says how long the pictures are."""
    if stream.duration and stream.time_base:
        return float(stream.duration * stream.time_base)
    if container.duration and len(container.streams) == 1:
        return float(container.duration) / 1e6
    return 0.0
