"""GGUF's block formats in NumPy: numbers into blocks, for tests, benchmarks and synthetic models.

    blocks = quantize("q4_k", values)      # float [n, k], k a multiple of the format's block
    blocks.data                            # uint8 [n, row_bytes], as the file has it
    blocks.values                          # float64 [n, k], what the blocks stand for, exact

In every format a weight is `d * scale * (code - offset) + m * minimum`: `d` and `m` are halves, one
or both per block; `scale` and `minimum` are small whole numbers per group of 16 or 32 weights, and
1 in formats without them; the sign of the minimum belongs to the format. `Blocks` holds these
parts, so a test can set each of them.

The bytes are those of ggml; tests/kernels/test_block_formats.py holds them to the `gguf` package's
dequantisation. `quantize` is a plain rounding to the nearest code, coarser than llama.cpp's search
for the best scales.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockFormat:
    """What a format's parts may be, and how they lie in its bytes."""

    name: str
    number: int  # the tensor type in GGUF
    block: int  # weights per block
    block_bytes: int
    group: int  # weights that share a scale (and minimum)
    levels: int  # codes are 0 .. levels - 1
    offset: int  # what is subtracted from a code
    scales: tuple[int, int] = (1, 1)  # the smallest and the largest
    minima: tuple[int, int] = (0, 0)
    minimum_sign: int = 0  # 0: the format has none
    pack: Callable[[Blocks], list[Array]]  # the parts of a block in order, uint8 [n, blocks, bytes]

    @property
    def bits_per_weight(self) -> float:
        return 8 * self.block_bytes / self.block


@dataclass(slots=True)
class Blocks:
    """Rows of a format as parts, whole or as bytes."""

    format: BlockFormat
    codes: Array  # uint8 [n, k]
    d: Array  # float16 [n, k / block]
    scale: Array  # int [n, k / group]
    m: Array  # float16 [n, k / block]; 0 without minima
    minimum: Array  # int [n, k / group]; 0 without minima

    @property
    def scales(self) -> Array:
        """`d * scale` for each weight, float64 [n, k], exact."""
        return self._spread(self.d, self.scale)

    @property
    def minima(self) -> Array:
        """What is added to each weight's product, float64 [n, k], exact."""
        if self.format.minimum_sign == 0:
            return np.zeros(self.codes.shape)
        return self.format.minimum_sign * self._spread(self.m, self.minimum)

    @property
    def values(self) -> Array:
        """The weights, float64 [n, k], exact; a float32 of them is gguf's."""
        with np.errstate(invalid="ignore"):  # a scale may be infinite
            product = self.scales * (self.codes.astype(np.float64) - self.format.offset)
            return product + self.minima if self.format.minimum_sign else product

    @property
    def data(self) -> Array:
        """The bytes, uint8 [n, row_bytes]."""
        parts = self.format.pack(self)
        joined = np.concatenate(parts, axis=2)
        assert joined.shape[2] == self.format.block_bytes
        return np.ascontiguousarray(joined.reshape(len(joined), -1))

    def codes_in(self, *shape: int) -> Array:
        """Codes as [n, blocks, *shape]."""
        return self.codes.reshape(len(self.codes), -1, *shape)

    def grouped(self, numbers: Array) -> Array:
        """Numbers per group as uint8 [n, blocks, groups]."""
        per_block = self.format.block // self.format.group
        return numbers.reshape(len(numbers), -1, per_block).astype(np.int64).astype(np.uint8)

    def _spread(self, half: Array, whole: Array) -> Array:
        weights = self.format.block
        per_weight = np.repeat(half.astype(np.float64), weights, axis=1)
        with np.errstate(invalid="ignore"):  # infinity times 0
            return per_weight * np.repeat(whole.astype(np.float64), self.format.group, axis=1)


# --- Bytes ----------------------------------------------------------------------------------------


def _half(numbers: Array) -> Array:
    n, blocks = numbers.shape
    return np.ascontiguousarray(numbers.astype(np.float16)).view(np.uint8).reshape(n, blocks, 2)


def _joined(fields: Array, bits: int) -> Array:
    """[..., fields, bytes] to [..., bytes]: the first field in the lowest bits."""
    shifts = (bits * np.arange(fields.shape[-2], dtype=np.uint8))[:, None]
    return np.bitwise_or.reduce(fields.astype(np.uint8) << shifts, axis=-2)


def _flat(parts: Array) -> Array:
    """[n, blocks, ...] to [n, blocks, bytes]."""
    return parts.reshape(*parts.shape[:2], -1)


def _nibbles_of_32(b: Blocks) -> Array:
    return _joined(b.codes_in(2, 16) & 15, 4)


def _fifth_bits_of_32(b: Blocks) -> Array:
    return np.packbits(b.codes_in(32) >> 4, axis=-1, bitorder="little")


def _six_bit_scales(b: Blocks) -> Array:
    """The 12 bytes of Q4_K and Q5_K."""
    scale, minimum = b.grouped(b.scale), b.grouped(b.minimum)
    first = scale[..., :4] | scale[..., 4:] >> 4 << 6
    second = minimum[..., :4] | minimum[..., 4:] >> 4 << 6
    third = (scale[..., 4:] & 15) | (minimum[..., 4:] & 15) << 4
    return np.concatenate([first, second, third], axis=-1)


def _scales_q3_k(b: Blocks) -> Array:
    six = b.grouped(b.scale + 32)
    low = _joined((six & 15).reshape(*six.shape[:2], 2, 8), 4)
    high = _joined((six >> 4).reshape(*six.shape[:2], 4, 4), 2)
    return np.concatenate([low, high], axis=-1)


def _two_bits(b: Blocks, shift: int) -> Array:
    return _flat(_joined(b.codes_in(2, 4, 32) >> shift & 3, 2))


def _nibbles_of_64(b: Blocks) -> Array:
    return _flat(_joined(b.codes_in(4, 2, 32) & 15, 4))


def _one_bit(b: Blocks, shift: int) -> Array:
    return _joined(b.codes_in(8, 32) >> shift & 1, 1)


FORMATS: dict[str, BlockFormat] = {
    made.name: made
    for made in (
        BlockFormat(
            name="q4_0", number=2, block=32, block_bytes=18, group=32, levels=16, offset=8,
            pack=lambda b: [_half(b.d), _nibbles_of_32(b)],
        ),
        BlockFormat(
            name="q4_1", number=3, block=32, block_bytes=20, group=32, levels=16, offset=0,
            minima=(1, 1), minimum_sign=1,
            pack=lambda b: [_half(b.d), _half(b.m), _nibbles_of_32(b)],
        ),
        BlockFormat(
            name="q5_0", number=6, block=32, block_bytes=22, group=32, levels=32, offset=16,
            pack=lambda b: [_half(b.d), _fifth_bits_of_32(b), _nibbles_of_32(b)],
        ),
        BlockFormat(
            name="q5_1", number=7, block=32, block_bytes=24, group=32, levels=32, offset=0,
            minima=(1, 1), minimum_sign=1,
            pack=lambda b: [_half(b.d), _half(b.m), _fifth_bits_of_32(b), _nibbles_of_32(b)],
        ),
        BlockFormat(
            name="q8_0", number=8, block=32, block_bytes=34, group=32, levels=256, offset=128,
            pack=lambda b: [_half(b.d), b.codes_in(32) ^ np.uint8(128)],
        ),
        BlockFormat(
            name="q2_k", number=10, block=256, block_bytes=84, group=16, levels=4, offset=0,
            scales=(0, 15), minima=(0, 15), minimum_sign=-1,
            pack=lambda b: [
                b.grouped(b.scale) | b.grouped(b.minimum) << 4,
                _two_bits(b, 0), _half(b.d), _half(b.m),
            ],
        ),
        BlockFormat(
            name="q3_k", number=11, block=256, block_bytes=110, group=16, levels=8, offset=4,
            scales=(-32, 31),
            pack=lambda b: [_one_bit(b, 2), _two_bits(b, 0), _scales_q3_k(b), _half(b.d)],
        ),
        BlockFormat(
            name="q4_k", number=12, block=256, block_bytes=144, group=32, levels=16, offset=0,
            scales=(0, 63), minima=(0, 63), minimum_sign=-1,
            pack=lambda b: [_half(b.d), _half(b.m), _six_bit_scales(b), _nibbles_of_64(b)],
        ),
        BlockFormat(
            name="q5_k", number=13, block=256, block_bytes=176, group=32, levels=32, offset=0,
            scales=(0, 63), minima=(0, 63), minimum_sign=-1,
            pack=lambda b: [
                _half(b.d), _half(b.m), _six_bit_scales(b), _one_bit(b, 4), _nibbles_of_64(b),
            ],
        ),
        BlockFormat(
            name="q6_k", number=14, block=256, block_bytes=210, group=16, levels=64, offset=32,
            scales=(-128, 127),
            pack=lambda b: [
                _flat(_joined(b.codes_in(2, 2, 64) & 15, 4)),
                _two_bits(b, 4), b.grouped(b.scale), _half(b.d),
            ],
        ),
    )
}  # fmt: skip


# --- Numbers --------------------------------------------------------------------------------------


def make_blocks(
    name: str,
    codes: Array,
    d: Array,
    *,
    scale: Array | None = None,
    m: Array | None = None,
    minimum: Array | None = None,
) -> Blocks:
    """Blocks of these parts; what is left out is 1 where it is a scale, and else 0."""
    made = FORMATS[name]
    n, k = codes.shape
    groups = (n, k // made.group)
    if m is None:
        m = np.zeros(d.shape)
    has_minima = made.minimum_sign != 0
    return Blocks(
        format=made,
        codes=codes.astype(np.uint8),
        d=d.astype(np.float16),
        scale=np.ones(groups, np.int64) if scale is None else scale,
        m=m.astype(np.float16),
        minimum=np.full(groups, int(has_minima), np.int64) if minimum is None else minimum,
    )


def random_blocks(name: str, n: int, k: int, rng: np.random.Generator, size: float = 1.0) -> Blocks:
    """Every part anywhere in its range; weights of about `size`, some blocks 0 or subnormal."""
    made = FORMATS[name]
    groups = (n, k // made.group)
    halves = (n, k // made.block)
    largest = max(abs(end) for end in made.scales)
    reach = max(made.offset, made.levels - 1 - made.offset)
    d = rng.uniform(0.2, 1.5, halves) * size / (largest * reach)
    d *= rng.choice([1, -1], halves)
    m = rng.uniform(0.2, 1.5, halves) * size / max(made.minima[1], 1) / 2
    m *= rng.choice([1, -1], halves)
    for part in (d, m):
        part[rng.random(halves) < 0.05] = 0
        part[rng.random(halves) < 0.05] = 3 * 2.0**-24  # a subnormal half
    return make_blocks(
        name,
        rng.integers(0, made.levels, (n, k)),
        d,
        scale=rng.integers(made.scales[0], made.scales[1] + 1, groups),
        m=m if made.minimum_sign else None,
        minimum=rng.integers(made.minima[0], made.minima[1] + 1, groups),
    )


def quantize(name: str, values: Array) -> Blocks:
    """Values [n, k] as blocks, each code the nearest to its value."""
    made = FORMATS[name]
    n, k = values.shape
    if k % made.block:
        raise ValueError(f"rows of {k} weights; {name} needs a multiple of {made.block}")
    x = values.astype(np.float64).reshape(n, k // made.group, made.group)
    if made.minimum_sign == 0:
        wanted = _at_largest(x, axis=2) / -made.offset
        lowest = np.zeros(wanted.shape)
    else:
        lowest = np.minimum(x.min(axis=2), 0)
        wanted = (np.maximum(x.max(axis=2), 0) - lowest) / (made.levels - 1)
    d, scale = _two_levels(made, wanted, made.scales)
    m, minimum = _two_levels(made, made.minimum_sign * lowest, made.minima)
    blocks = make_blocks(name, np.zeros((n, k)), d, scale=scale, m=m, minimum=minimum)
    step = blocks.scales
    exact = np.divide(values - blocks.minima, step, out=np.zeros((n, k)), where=step != 0)
    blocks.codes = np.clip(np.rint(exact) + made.offset, 0, made.levels - 1).astype(np.uint8)
    return blocks


def _at_largest(x: Array, axis: int) -> Array:
    """The number with the largest magnitude, with its sign."""
    index = np.abs(x).argmax(axis=axis, keepdims=True)
    return np.take_along_axis(x, index, axis=axis).squeeze(axis)


def _two_levels(made: BlockFormat, wanted: Array, allowed: tuple[int, int]) -> tuple[Array, Array]:
    """A half per block and a whole number per group, whose products are near `wanted`."""
    low, high = allowed
    per_block = wanted.reshape(len(wanted), -1, made.block // made.group)
    if low == high:  # no small numbers in this format
        return per_block[..., 0] if high else np.zeros(per_block.shape[:2]), np.full(
            wanted.shape, high
        )
    unit = _at_largest(per_block, axis=2) / (low if low < 0 else high)
    half = unit.astype(np.float16).astype(np.float64)[..., None]
    whole = np.divide(per_block, half, out=np.zeros(per_block.shape), where=half != 0)
    return half[..., 0], np.clip(np.rint(whole), low, high).astype(np.int64).reshape(wanted.shape)
