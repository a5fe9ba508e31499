"""A model's outline: a file of its size with its true header and, for the weights, holes.

The engine opens it like the model and decides the same: whether the model can be loaded, and how
much memory it needs. Range requests fetch only the header, some megabytes, and the factors of RoPE,
which a load reads as well.

From a directory, files without weights are fetched whole, and the header of each safetensors file
with its length.

GGUF's layout is: magic, version, counts, then keys with values, then the tensors' names,
shapes and places (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from akunu.errors import ModelFormatError

Read = Callable[[int, int], bytes]
"""`read(start, length)`: this many bytes of the file, fewer at its end."""

_FIRST_BYTES = 1 << 20
_MOST_BYTES = 1 << 28  # of a header; vocabularies take some megabytes
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_STRING, _ARRAY = 8, 9
_VERSIONS = (b"\2\0\0\0", b"\3\0\0\0")
_READ_AT_LOAD = "rope_freqs.weight"
_NUMBER_BYTES = {0: 4, 1: 2, 30: 2}  # F32, F16, BF16


@dataclass(slots=True)
class _Header:
    """What is fetched of a file so far, from its beginning."""

    read: Read
    size: int
    shown: str
    data: bytearray = field(default_factory=bytearray)
    position: int = 0

    def take(self, n_bytes: int) -> int:
        """Return where the next `n_bytes` bytes begin, fetched; they are after us then."""
        start, end = self.position, self.position + n_bytes
        if end > min(self.size, _MOST_BYTES):
            raise ModelFormatError(
                f"{self.shown}: its header is wrong at byte {start}, where {n_bytes} bytes "
                f"should follow in a file of {self.size}"
            )
        while len(self.data) < end:  # ever more at a time: a vocabulary comes in a few requests
            wanted = max(_FIRST_BYTES, len(self.data), end - len(self.data))
            more = self.read(len(self.data), min(wanted, self.size - len(self.data)))
            if not more:
                raise ModelFormatError(
                    f"{self.shown} ends at byte {len(self.data)}; the server announced {self.size}"
                )
            self.data += more
        self.position = end
        return start

    def number(self, form: str) -> int:
        start = self.take(struct.calcsize(form))
        value: int = struct.unpack_from(form, self.data, start)[0]
        return value

    def string(self) -> bytes:
        length = self.number("<Q")
        start = self.take(length)
        return bytes(self.data[start : start + length])

    def skip_value(self, kind: int, depth: int = 0) -> None:
        if kind in _SIZES:
            self.take(_SIZES[kind])
        elif kind == _STRING:
            self.take(self.number("<Q"))
        elif kind == _ARRAY and depth < 4:
            inner, count = self.number("<I"), self.number("<Q")
            if inner in _SIZES:
                self.take(_SIZES[inner] * count)
            else:
                for _ in range(count):
                    self.skip_value(inner, depth + 1)
        else:
            raise ModelFormatError(
                f"{self.shown}: its header has a value of type {kind} at byte {self.position}, "
                "which GGUF does not have"
            )


def write_headers(read: Read, size: int, path: Path, shown: str) -> int:
    """Write the outline of a file of `size` bytes; return how many bytes were fetched.

    Only the first bytes are written of a file that is not GGUF in a version that akunu knows: the
    engine's error names its kind by them. Raises ModelFormatError for a header that contradicts
    itself.
    """
    header = _Header(read, size, shown)
    if path.suffix in (".json", ".jinja", ".model"):
        header.take(size)  # of a directory
    header.position = 0
    header.take(min(size, 8))
    extra: list[tuple[int, int]] = []
    if header.data[:4] == b"GGUF" and bytes(header.data[4:8]) in _VERSIONS:
        extra = _walk(header)
    elif path.name.endswith(".safetensors") and size >= 8:
        header.position = 0
        header.take(min(header.number("<Q"), size - 8))
    fetched = len(header.data)
    with path.open("wb") as file:
        file.write(header.data)
        for start, length in extra:
            if start + length <= size and start + length > len(header.data):
                file.seek(start)
                file.write(read(start, length))
                fetched += length
        file.truncate(size)
    return fetched


def _walk(header: _Header) -> list[tuple[int, int]]:
    """Go through a header to its end; return where the bytes are that a load reads besides."""
    n_tensors, n_keys = header.number("<Q"), header.number("<Q")
    alignment = 32
    for _ in range(n_keys):
        key = header.string()
        kind = header.number("<I")
        start = header.position
        header.skip_value(kind)
        if key == b"general.alignment" and kind == 4:
            alignment = max(1, struct.unpack_from("<I", header.data, start)[0])
    wanted = []
    for _ in range(n_tensors):
        name = header.string()
        shape = [header.number("<Q") for _ in range(min(header.number("<I"), 8))]
        kind, offset = header.number("<I"), header.number("<Q")
        if name == _READ_AT_LOAD.encode() and kind in _NUMBER_BYTES:
            wanted.append((offset, math.prod(shape) * _NUMBER_BYTES[kind]))
    begin = -(-header.position // alignment) * alignment
    return [(begin + offset, length) for offset, length in wanted]
