"""Tensors as directories have them quantised: MLX's groups, mxfp4 and FP8, and their numbers.

Each function takes a tensor's name and numbers, and returns the parts that are stored and the
numbers that those stand for.
"""

from __future__ import annotations

from collections.abc import Callable

import hf_directory
import numpy as np
from numpy.typing import NDArray

# name of a tensor -> its parts: name, format, shape, bytes; and what they stand for
Parts = dict[str, tuple[str, tuple[int, ...], bytes]]
Quantise = Callable[[str, NDArray[np.float32]], tuple[Parts, NDArray[np.float32]]]


def packed(codes: NDArray[np.uint32], bits: int) -> NDArray[np.uint32]:
    """Codes as MLX packs them: a stream of bits in words, the lowest bit first."""
    stream = np.unpackbits(codes.astype(np.uint8)[..., None], axis=-1, bitorder="little")
    flat = np.ascontiguousarray(stream[..., :bits]).reshape(len(codes), -1)
    result: NDArray[np.uint32] = np.packbits(flat, axis=-1, bitorder="little").view(np.uint32)
    return result


def affine(
    name: str, data: NDArray[np.float32], bits: int, group: int, scale: str
) -> tuple[Parts, NDArray[np.float32]]:
    """Quantise as MLX's documentation says: weight = scale * code + bias, by group."""
    n, k = data.shape
    grouped = data.reshape(n, k // group, group)
    low, high = grouped.min(-1), grouped.max(-1)
    numbers = [kept((high - low) / (2**bits - 1), scale), kept(low, scale)]
    scales, biases = (each[:, :, None] for each in numbers)
    codes = np.clip(np.rint((grouped - biases) / scales), 0, 2**bits - 1)
    values = (scales * codes.astype(np.float32) + biases).reshape(n, k)
    stem = name.removesuffix(".weight")
    words = packed(codes.astype(np.uint32).reshape(n, k), bits)
    parts: Parts = {
        name: ("U32", words.shape, words.tobytes()),
        f"{stem}.scales": (scale, numbers[0].shape, hf_directory.stored(numbers[0], scale)),
        f"{stem}.biases": (scale, numbers[1].shape, hf_directory.stored(numbers[1], scale)),
    }
    return parts, values


def kept(values: NDArray[np.float32], scale: str) -> NDArray[np.float32]:
    """What is left of numbers in a format."""
    if scale == "BF16":
        halves = np.frombuffer(hf_directory.stored(values, scale), np.uint16)
        return (halves.astype(np.uint32) << 16).view(np.float32).reshape(values.shape)
    kind = np.float16 if scale == "F16" else np.float32
    return values.astype(kind).astype(np.float32)


def fp8_values() -> NDArray[np.float32]:
    """The numbers of the 256 bytes: sign, exponent with a bias of 7, three bits of mantissa."""
    codes = np.arange(256)
    exponent, mantissa = codes >> 3 & 15, codes & 7
    size = np.where(
        exponent == 0, mantissa / 8 * 2.0**-6, (1 + mantissa / 8) * 2.0 ** (exponent - 7.0)
    )
    values = np.where(codes >> 7, -size, size)
    values[[0x7F, 0xFF]] = np.nan
    return values.astype(np.float32)


def fp8(name: str, data: NDArray[np.float32]) -> tuple[Parts, NDArray[np.float32]]:
    """FP8 with a scale for each row; what is expanded is rounded to BF16."""
    table = fp8_values()
    order = np.argsort(np.nan_to_num(table, nan=np.inf), kind="stable")[:254]
    scale = (np.abs(data).max(1, keepdims=True) / np.float32(448)).astype(np.float32)
    places = np.searchsorted(table[order], data / scale).clip(0, 253)
    codes = order[places].astype(np.uint8)
    parts: Parts = {
        name: ("F8_E4M3", data.shape, codes.tobytes()),
        name.replace("weight", "weight_scale"): ("F32", scale.shape, scale.tobytes()),
    }
    return parts, kept(table[codes] * scale, "BF16")


FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)


def mxfp4(name: str, data: NDArray[np.float32]) -> tuple[Parts, NDArray[np.float32]]:
    """Floats of four bits with a power of two for each 32."""
    n, k = data.shape
    grouped = data.reshape(n, k // 32, 32)
    exponents = np.ceil(np.log2(np.abs(grouped).max(-1) / 6)).astype(np.int32)
    scales = np.exp2(exponents.astype(np.float32))[:, :, None]
    sizes = np.abs(grouped / scales)
    places = np.abs(sizes[..., None] - FP4).argmin(-1)
    values = (np.sign(grouped) * FP4[places] * scales).reshape(n, k).astype(np.float32)
    words = packed((places + 8 * (grouped < 0)).astype(np.uint32).reshape(n, k), 4)
    parts: Parts = {
        name: ("U32", words.shape, words.tobytes()),
        name.replace(".weight", ".scales"): (
            "U8",
            exponents.shape,
            (exponents + 127).astype(np.uint8).tobytes(),
        ),
    }
    return parts, values
