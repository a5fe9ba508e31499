"""Audio from wherever it is, as float32 samples at 16 kHz."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from akunu.common.checks import integer
from akunu.errors import AkunuError, ArgumentError, AudioError, AudioFileError
from akunu.speech.input.decoders import decode
from akunu.speech.mel import SAMPLE_RATE

AudioSource: TypeAlias = (
    "str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO | NDArray[Any]"
)
Channels: TypeAlias = Literal["mix", "apart"]

_MAX_CHANNELS = 32
_LOUDEST = 16.0
"""Floating-point samples lie within -1 and 1; beyond this they are surely 16-bit numbers."""


def load_audio(
    source: AudioSource,
    *,
    sample_rate: int | None = None,
    channels: Channels = "mix",
    max_seconds: float | None = None,
) -> NDArray[np.float32]:
    """Return the samples of `source` at 16 kHz, float32, whatever they were before.

    `source` is the path of a file, its bytes, a binary file object, or samples in an array, [n] or
    [n, channels]: floating-point numbers within -1 and 1, or integers. Files may be WAV (which
    needs nothing more), FLAC, MP3, Ogg with Vorbis or Opus (`akunu[audio]`), M4A, WebM and videos
    (`akunu[av]`); another rate than 16 kHz needs `akunu[audio]`.

    `sample_rate`: of an array; 16,000 if not given. `channels`: "mix" returns their mean, [n];
    "apart" returns [channels, n]. `max_seconds`: longer audio is an AudioError before it is read
    to its end.

    Raises AudioError for files that are cut off, of an unknown format or without samples, and for
    NaN and infinite samples; AudioFileError, an OSError, for those that cannot be opened;
    ArgumentError for arguments; AkunuError where a package is missing.

    >>> load_audio(np.zeros((8_000, 2), np.int16), sample_rate=16_000).shape
    (8000,)
    """
    if channels not in ("mix", "apart"):
        raise ArgumentError(f'channels must be "mix" or "apart", not {channels!r}')
    if hasattr(source, "__array__") and not isinstance(source, (bytes, bytearray, memoryview)):
        array = _array_blocks(source)
        rate = integer("sample_rate", SAMPLE_RATE if sample_rate is None else sample_rate, 1, 10**7)
        return _collected([array], rate, channels, "the array", max_seconds)
    if sample_rate is not None:
        raise ArgumentError("sample_rate is for arrays; a file has its own")
    file, name, is_ours = _opened(source)
    try:
        decoded = decode(file, name)
        return _collected(decoded.blocks, decoded.rate, channels, name, max_seconds)
    finally:
        if is_ours:
            file.close()


def _opened(source: object) -> tuple[BinaryIO, str, bool]:
    """Return a file that can seek from its beginning, its name in messages, whether to close it."""
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        try:
            return open(path, "rb"), os.path.basename(path), True
        except (OSError, ValueError) as error:  # a null character
            told = AudioFileError(f"{path}: {getattr(error, 'strerror', error)}")
            told.errno = getattr(error, "errno", None)
            raise told from None
    if isinstance(source, (bytes, bytearray, memoryview)):
        return io.BytesIO(source), "the audio", True
    if not hasattr(source, "read"):
        raise ArgumentError(
            "audio must be a path, bytes, a binary file or an array of samples, "
            f"not {type(source).__name__}"
        )
    stream = cast(BinaryIO, source)
    data = stream.read()
    if not isinstance(data, bytes):
        raise ArgumentError("audio must come from a file that was opened in binary mode")
    name = getattr(stream, "name", None)
    return io.BytesIO(data), os.path.basename(name) if isinstance(name, str) else "the audio", True


def _array_blocks(source: object) -> NDArray[np.float32]:
    array = np.asarray(source)
    if array.ndim not in (1, 2):
        raise ArgumentError(f"samples must be [n] or [n, channels], not {list(array.shape)}")
    if array.ndim == 2 and not 1 <= array.shape[1] <= _MAX_CHANNELS:
        raise ArgumentError(
            f"samples must be [n, channels], and these would have {array.shape[1]} channels: "
            "transpose them if they are [channels, n]"
        )
    frames = array.reshape(-1, 1) if array.ndim == 1 else array
    if array.dtype.kind == "f":
        return frames.astype(np.float32)
    if array.dtype.kind == "i":
        return frames.astype(np.float32) / np.float32(2.0 ** (8 * array.dtype.itemsize - 1))
    if array.dtype == np.uint8:
        return (frames.astype(np.float32) - 128) / np.float32(128)
    raise ArgumentError(f"samples must be floating-point numbers or integers, not {array.dtype}")


def _collected(
    blocks: Iterable[NDArray[np.float32]],
    rate: int,
    channels: Channels,
    name: str,
    max_seconds: float | None,
) -> NDArray[np.float32]:
    checked = _checked(blocks, rate, channels, name, max_seconds)
    parts = list(checked if rate == SAMPLE_RATE else _resampled(checked, rate))
    if not parts:
        raise AudioError(f"{name} holds no samples")
    whole = np.concatenate(parts)
    return np.ascontiguousarray(whole.T) if channels == "apart" else whole[:, 0].copy()


def _checked(
    blocks: Iterable[NDArray[np.float32]],
    rate: int,
    channels: Channels,
    name: str,
    max_seconds: float | None,
) -> Iterator[NDArray[np.float32]]:
    """Yield blocks [n, channels], mixed to one channel where that is requested."""
    n = 0
    for block in blocks:
        if len(block) == 0:
            continue
        finite = np.isfinite(block).all(axis=1)
        if not finite.all():
            at = int(np.argmin(finite))
            raise AudioError(
                f"{name}: sample {n + at} is {block[at].max()}: samples must be finite numbers"
            )
        loudest = float(np.abs(block).max())
        if loudest > _LOUDEST:
            raise AudioError(
                f"{name} has the sample {loudest:g}, and they should lie within -1 and 1: divide "
                "16-bit numbers by 32768, or give them as integers"
            )
        n += len(block)
        if max_seconds is not None and n > max_seconds * rate:
            raise AudioError(f"{name} is longer than the {max_seconds:g} seconds that are allowed")
        yield block.mean(axis=1, keepdims=True, dtype=np.float32) if channels == "mix" else block


def _resampled(blocks: Iterable[NDArray[np.float32]], rate: int) -> Iterator[NDArray[np.float32]]:
    try:
        import soxr
    except ImportError:
        raise AkunuError(
            f"audio at {rate} Hz must become audio at {SAMPLE_RATE} Hz, which needs soxr: "
            "pip install 'akunu[audio]', or '.[audio]' in a clone"
        ) from None
    stream: Any = None
    nothing = np.zeros((0, 1), np.float32)
    for block in blocks:
        if stream is None:
            nothing = np.zeros((0, block.shape[1]), np.float32)
            stream = soxr.ResampleStream(rate, SAMPLE_RATE, block.shape[1], dtype="float32")
        yield stream.resample_chunk(np.ascontiguousarray(block))
    if stream is not None:
        yield stream.resample_chunk(nothing, last=True)
