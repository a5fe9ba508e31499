"""GGUF files byte by byte, independent of our reader and of the `gguf` package."""

from __future__ import annotations

import struct


def string(text: str | bytes) -> bytes:
    raw = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(raw)) + raw


def u32(number: int) -> bytes:
    return struct.pack("<I", number)


def u64(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}Q", *numbers)


def value(key: str | bytes, value_type: int, payload: bytes) -> bytes:
    return string(key) + u32(value_type) + payload


def tensor(
    name: str | bytes,
    dims: list[int],
    tensor_type: int = 0,
    offset: int = 0,
    n_dims: int | None = None,
) -> bytes:
    count = len(dims) if n_dims is None else n_dims
    return string(name) + u32(count) + u64(*dims) + u32(tensor_type) + u64(offset)


def file_of(
    values: list[bytes] | None = None,
    tensors: list[bytes] | None = None,
    data: bytes = b"",
    *,
    version: int = 3,
    n_values: int | None = None,
    n_tensors: int | None = None,
    alignment: int = 32,
) -> bytes:
    values, tensors = values or [], tensors or []
    n_values = len(values) if n_values is None else n_values
    n_tensors = len(tensors) if n_tensors is None else n_tensors
    head = b"GGUF" + u32(version) + u64(n_tensors, n_values) + b"".join(values + tensors)
    return head + bytes(-len(head) % alignment) + data if data else head
