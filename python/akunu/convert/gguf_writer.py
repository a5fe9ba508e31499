"""GGUF files: values and tensors into bytes, in the layout of docs/reference/model-files.md."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from akunu import _core
from akunu.common.metadata import raw_bytes

_VERSION: Final = 3
_ARRAY: Final = 9
_UINT32: Final = 4
_FLOAT32: Final = 6
_BOOLEAN: Final = 7
_STRING: Final = 8
_NUMBERS: Final = {"int32": 5, "float32": _FLOAT32, "bool": _BOOLEAN}

KeyValue: TypeAlias = "str | bool | int | float | list[str] | NDArray[Any]"
"""What a key may have, as `Value.of_any` takes it."""


@dataclass(frozen=True, slots=True)
class Value:
    """A key and its value, encoded."""

    key: str
    encoded: bytes
    """The number of its type, and its bytes."""

    @classmethod
    def copied(cls, file: _core.GgufFile, key: str) -> Value:
        """Take a value as it lies in another file; KeyError where there is none."""
        kind, is_array, count, data = file.raw(key)
        if is_array:
            return cls(key, struct.pack("<IIQ", _ARRAY, kind, count) + data)
        if kind == _STRING:
            return cls(key, struct.pack("<IQ", kind, len(data)) + data)
        return cls(key, struct.pack("<I", kind) + data)

    @classmethod
    def of(cls, key: str, value: str | bool | int | float) -> Value:
        """Encode a string, a truth value, an unsigned integer of 32 bits or a float.

        >>> Value.of("general.file_type", 15).encoded.hex()
        '040000000f000000'
        """
        if isinstance(value, bool):
            return cls(key, struct.pack("<I?", _BOOLEAN, value))
        if isinstance(value, int):
            return cls(key, struct.pack("<II", _UINT32, value))
        if isinstance(value, float):
            return cls(key, struct.pack("<If", _FLOAT32, value))
        return cls(key, struct.pack("<I", _STRING) + _string(value))

    @classmethod
    def of_numbers(cls, key: str, values: NDArray[Any]) -> Value:
        """Encode an array of int32, float32 or bool, or the only number of one without dimensions.

        >>> Value.of_numbers("x", np.array([True])).encoded.hex()
        '0900000007000000010000000000000001'
        """
        kind = _NUMBERS[values.dtype.name]
        if values.ndim == 0:
            return cls(key, struct.pack("<I", kind) + values.tobytes())
        return cls(key, struct.pack("<IIQ", _ARRAY, kind, len(values)) + values.tobytes())

    @classmethod
    def of_any(cls, key: str, value: KeyValue) -> Value:
        """Encode a value of any of these kinds."""
        if isinstance(value, np.ndarray):
            return cls.of_numbers(key, value)
        if isinstance(value, list):
            return cls.of_strings(key, value)
        return cls.of(key, value)

    @classmethod
    def of_strings(cls, key: str, values: Sequence[str]) -> Value:
        """Encode an array of strings."""
        head = struct.pack("<IIQ", _ARRAY, _STRING, len(values))
        return cls(key, head + b"".join(map(_string, values)))


@dataclass(frozen=True, slots=True)
class TensorPlan:
    """What a file says of a tensor before its data."""

    name: str
    shape: tuple[int, ...]
    """In NumPy's order: the last dimension is contiguous."""
    type_name: str

    @property
    def k(self) -> int:
        """Numbers of a row."""
        return self.shape[-1] if self.shape else 1

    @property
    def rows(self) -> int:
        """How many rows there are, in all matrices together."""
        rows = 1
        for n in self.shape[:-1]:
            rows *= n
        return rows

    @property
    def size(self) -> int:
        """Bytes of its data."""
        _, block, block_bytes = _core.gguf_block(self.type_name)
        return self.rows * (self.k // block) * block_bytes


class GgufLayout:
    """Where everything lies in a file that is to be written."""

    def __init__(
        self, values: Iterable[Value], tensors: Sequence[TensorPlan], *, alignment: int = 32
    ) -> None:
        """Lay out a file; `tensors` in the order of their data."""
        self.tensors = list(tensors)
        self.alignment = alignment
        listed = list(values)
        parts = [b"GGUF", struct.pack("<IQQ", _VERSION, len(self.tensors), len(listed))]
        parts += [_string(value.key) + value.encoded for value in listed]
        offset = 0
        for tensor in self.tensors:
            number, _, _ = _core.gguf_block(tensor.type_name)
            dims = tuple(reversed(tensor.shape))
            parts.append(_string(tensor.name))
            parts.append(struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, number, offset))
            offset += tensor.size + self._gap(tensor.size)
        head = b"".join(parts)
        self.head = head + bytes(self._gap(len(head)))
        """Everything before the data."""
        self.size = len(self.head) + offset
        """Bytes of the whole file."""

    def write_tensor(self, file: BinaryIO, tensor: TensorPlan, data: NDArray[np.uint8]) -> None:
        """Write a tensor's data and what fills up to the next one; tensors come in their order."""
        if data.nbytes != tensor.size:
            raise ValueError(f"{tensor.name} has {data.nbytes} bytes, not {tensor.size}")
        file.write(np.ascontiguousarray(data).data)
        file.write(bytes(self._gap(tensor.size)))

    def _gap(self, size: int) -> int:
        return -size % self.alignment


def _string(text: str) -> bytes:
    data = raw_bytes(text)
    return struct.pack("<Q", len(data)) + data
