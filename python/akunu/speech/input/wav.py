"""WAV files without any package: PCM of 8, 16, 24 and 32 bits, and floating point."""

from __future__ import annotations

import struct
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from akunu.errors import AudioError

_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE
_UNKNOWN_SIZE = 0x7FFF0000  # or more, or 0: programs write it that do not know what will follow
_FRAMES_AT_ONCE = 1 << 18


@dataclass(frozen=True, slots=True)
class WavFormat:
    """How the samples of a file lie."""

    encoding: int
    channels: int
    rate: int
    bytes_per_sample: int

    @property
    def is_known(self) -> bool:
        """Whether `read_wav` can read such samples."""
        widths = {_PCM: (1, 2, 3, 4), _FLOAT: (4, 8)}.get(self.encoding, ())
        return self.bytes_per_sample in widths


def read_format(file: BinaryIO, name: str) -> tuple[WavFormat, int | None]:
    """Read a file up to its samples; return their format and bytes (None: up to the end)."""
    file.seek(12)  # RIFF, size, WAVE
    found: WavFormat | None = None
    while True:
        header = file.read(8)
        if len(header) < 8:
            raise AudioError(
                f"{name} ends before its samples: it is cut off, or it is not a WAV file"
            )
        kind, size = header[:4], int.from_bytes(header[4:], "little")
        if kind == b"data":
            if found is None:
                raise AudioError(f"{name} has samples before their format")
            return found, None if size == 0 or size >= _UNKNOWN_SIZE else size
        if kind == b"fmt ":
            found = _format_of(file.read(size), name)
            file.seek(size % 2, 1)
        else:
            file.seek(size + size % 2, 1)


def _format_of(chunk: bytes, name: str) -> WavFormat:
    if len(chunk) < 16:
        raise AudioError(f"{name} has an incomplete header: it is cut off")
    encoding, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", chunk)
    if encoding == _EXTENSIBLE and len(chunk) >= 26:
        encoding = int.from_bytes(chunk[24:26], "little")
    if channels == 0 or rate == 0:
        raise AudioError(f"{name} says that it has {channels} channels at {rate} Hz")
    return WavFormat(encoding, channels, rate, (bits + 7) // 8)


def read_wav(
    file: BinaryIO, form: WavFormat, size: int | None, name: str
) -> Iterator[NDArray[np.float32]]:
    """Yield the samples as float32 [n, channels]; AudioError where the file is cut off.

    Where only a part of the last sample is missing, that is a warning.
    """
    frame = form.channels * form.bytes_per_sample
    left = size
    while left is None or left > 0:
        wanted = _FRAMES_AT_ONCE * frame
        data = file.read(wanted if left is None else min(wanted, left))
        if left is not None and len(data) < min(wanted, left):
            assert size is not None
            missing = left - len(data)
            if missing >= frame:
                raise AudioError(
                    f"{name} is cut off: {missing / frame / form.rate:.2f} of its "
                    f"{size / frame / form.rate:.2f} seconds are missing"
                )
            warnings.warn(f"{name}: the last sample is incomplete and was dropped", stacklevel=2)
        whole = len(data) - len(data) % frame
        if whole == 0:
            return
        yield _samples_of(data[:whole], form).reshape(-1, form.channels)
        left = None if left is None else left - len(data)


def _samples_of(data: bytes, form: WavFormat) -> NDArray[np.float32]:
    if form.encoding == _FLOAT:
        return np.frombuffer(data, f"<f{form.bytes_per_sample}").astype(np.float32)
    if form.bytes_per_sample == 1:  # the one width without a sign
        return (np.frombuffer(data, np.uint8).astype(np.float32) - 128) / np.float32(128)
    if form.bytes_per_sample == 3:  # as the upper three bytes of four
        wide = np.zeros((len(data) // 3, 4), np.uint8)
        wide[:, 1:] = np.frombuffer(data, np.uint8).reshape(-1, 3)
        return wide.view("<i4")[:, 0].astype(np.float32) / np.float32(2**31)
    full = np.float32(2 ** (8 * form.bytes_per_sample - 1))
    return np.frombuffer(data, f"<i{form.bytes_per_sample}").astype(np.float32) / full
