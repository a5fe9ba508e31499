"""Numbers of a directory's tensors as plain floats: MLX's groups expanded, halves widened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]

_ROWS_BYTES: Final = 1 << 24  # of float32 that are expanded at a time
_FP4: Final = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
_MXFP4_GROUP: Final = 32


def as_floats(data: Bytes, type_name: str) -> Floats:
    """Return numbers in F32, F16 or BF16 as float32."""
    if type_name == "F32":
        return data.view(np.float32)
    if type_name == "F16":
        return data.view(np.float16).astype(np.float32)
    return (data.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def as_bytes(values: Floats, type_name: str) -> Bytes:
    """Return float32 as F32, F16 or BF16, rounded to the nearest, ties to even.

    >>> as_bytes(np.array([1.0], np.float32), "BF16").tolist()
    [128, 63]
    """
    if type_name == "F32":
        return np.ascontiguousarray(values).view(np.uint8).reshape(-1)
    if type_name == "F16":
        return values.astype(np.float16).view(np.uint8).reshape(-1)
    bits = np.ascontiguousarray(values).view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return rounded.astype(np.uint16).view(np.uint8).reshape(-1)


def codes_of(words: Bytes, bits: int, rows: int) -> NDArray[np.uint8]:
    """Return MLX's codes, [rows, k]: one after the other from the lowest bit on.

    >>> codes_of(np.array([0x21, 0x43], np.uint8), 4, 1).tolist()
    [[1, 2, 3, 4]]
    """
    words = words.reshape(rows, -1)
    if bits == 8:
        return words
    if bits in (2, 4):
        shifts = np.arange(0, 8, bits, dtype=np.uint8)
        codes = words[:, :, None] >> shifts & np.uint8((1 << bits) - 1)
        return codes.astype(np.uint8, copy=False).reshape(rows, -1)
    single = np.unpackbits(words, axis=1, bitorder="little").reshape(rows, -1, bits)
    codes = np.zeros(single.shape[:2], np.uint8)
    for bit in range(bits):
        codes |= single[:, :, bit] << np.uint8(bit)
    return codes


def expand_affine(
    parts: Sequence[Bytes], shape: tuple[int, int], mlx: tuple[int, int, str]
) -> Bytes:
    """Return MLX's groups, code times scale plus bias, as numbers in the format of the scales."""
    bits, group, scale_type = mlx
    codes, scales, biases = parts
    return _by_rows(
        shape,
        scale_type,
        lambda some, n: (
            codes_of(_rows(codes, some, shape[0]), bits, n).reshape(n, -1, group)
            * as_floats(_rows(scales, some, shape[0]), scale_type).reshape(n, -1, 1)
            + as_floats(_rows(biases, some, shape[0]), scale_type).reshape(n, -1, 1)
        ),
    )


def expand_mxfp4(parts: Sequence[Bytes], shape: tuple[int, int]) -> Bytes:
    """Return MLX's mxfp4 as BF16, which holds each of its numbers."""
    codes, scales = parts

    def numbers(some: slice, n: int) -> Floats:
        code = codes_of(_rows(codes, some, shape[0]), 4, n)
        signed: Floats = np.where(code & 8, -_FP4[code & 7], _FP4[code & 7])
        power = np.exp2(_rows(scales, some, shape[0]).astype(np.float32) - 127)
        return signed.reshape(n, -1, _MXFP4_GROUP) * power.reshape(n, -1, 1)

    return _by_rows(shape, "BF16", numbers)


def _by_rows(shape: tuple[int, int], type_name: str, numbers: Any) -> Bytes:
    """Expand some rows at a time, so that little more than the result is in memory."""
    rows, k = shape
    size = k * (4 if type_name == "F32" else 2)
    result = np.empty((rows, size), np.uint8)
    step = max(_ROWS_BYTES // (4 * k), 1)
    for first in range(0, rows, step):
        some = slice(first, min(first + step, rows))
        n = some.stop - some.start
        values = numbers(some, n).astype(np.float32, copy=False).reshape(n, k)
        result[some] = as_bytes(values, type_name).reshape(n, size)
    return result.reshape(-1)


def _rows(part: Bytes, some: slice, rows: int) -> Bytes:
    return np.ascontiguousarray(part.reshape(rows, -1)[some]).reshape(-1)
