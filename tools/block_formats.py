"""GGUF's block formats in NumPy: numbers into blocks, for tests, benchmarks and synthetic models.

    blocks = quantize("q4_k", values)      # float [n, k], k a multiple of the format's block
    blocks.data                            # uint8 [n, row_bytes], as the file has it
    blocks.values                          # float64 [n, k], what the blocks stand for, exact

In every format a weight is `d * unit * scale * value + m * minimum`, where `value` is
`code - offset` or what a table has for the code: `d` and `m` are halves, one or both per block;
`scale` and `minimum` are small whole numbers per group of 16 or 32 weights, and 1 in formats
without them; `unit` and the sign of the minimum belong to the format. `Blocks` holds these parts,
so a test can set each of them.

Some formats do not hold any number in some part: MXFP4 has powers of two for `d`, NVFP4 a scale of
eight bits and no `d`, the IQ2 and IQ3 formats have eight or four neighbouring codes in one row of a
grid. `fit` gives the nearest that they hold; `make_blocks` calls it.

The bytes are those of ggml; tests/kernels/test_block_formats.py holds them to the `gguf` package's
dequantisation. `quantize` is a plain rounding to the nearest code, coarser than llama.cpp's search
for the best scales.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def as_they_are(parts: Array) -> Array:
    return parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """What a format holds that is nearest to a part."""

    d: Callable[[Array], Array] = lambda d: d.astype(np.float16)
    scale: Callable[[Array], Array] = as_they_are
    values: Callable[[Array], Array] = as_they_are  # [n, k] of the codes, whole numbers


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
    table: tuple[int, ...] = ()  # values of the codes, where they are not code - offset
    unit: float = 1.0
    d: float | None = None  # of formats that store none
    fit: Fit = field(default_factory=lambda: Fit())
    pack: Callable[[Blocks], list[Array]]  # the parts of a block in order, uint8 [n, blocks, bytes]

    @property
    def values(self) -> Array:
        """What each code stands for."""
        return np.array(self.table) if self.table else np.arange(self.levels) - self.offset

    @property
    def code_of_zero(self) -> int | None:
        """The code of 0, where one has it and it may be the code of every weight."""
        codes = np.flatnonzero(self.values == 0)
        return int(codes[0]) if len(codes) and self.fit.values is as_they_are else None

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
        """`d * unit * scale` for each weight, float64 [n, k], exact."""
        return self.format.unit * self._spread(self.d, self.scale)

    @property
    def multiples(self) -> Array:
        """What the scales multiply, float64 [n, k]."""
        return self.format.values.astype(np.float64)[self.codes]

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
            product = self.scales * self.multiples
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


def _low_and_high(b: Blocks, *shape: int) -> Array:
    """Nibbles: of the last axis but one of `shape`, each two are in one byte."""
    return _flat(_joined(b.codes_in(*shape) & 15, 4))


def _scales_iq4_xs(b: Blocks) -> list[Array]:
    six = b.grouped(b.scale + 32)
    shifts = 2 * np.arange(8, dtype=np.uint16)
    high = np.bitwise_or.reduce((six.astype(np.uint16) >> 4) << shifts, axis=-1)[..., None]
    return [high.view(np.uint8), _joined((six & 15).reshape(*six.shape[:2], 4, 2, 1), 4)[..., 0]]


def _power_of_two(d: Array) -> Array:
    """MXFP4's scales: 2^-128 to 2^127."""
    return np.exp2(np.clip(np.rint(np.log2(np.maximum(np.abs(d), 2.0**-128))), -128, 127))


def _exponent(b: Blocks) -> Array:
    return (np.log2(b.d.astype(np.float64)) + 128).astype(np.uint8)[..., None]


def _four_bits(scale: Array) -> Array:
    """NVFP4's scales in units of 2^-10: those with four bits, up to 14 * 2^14."""
    whole = np.clip(np.rint(np.abs(scale)), 0, 14 << 14).astype(np.int64)
    shift = np.maximum(np.frexp(whole)[1] - 4, 0)
    return whole >> shift << shift


def _e4m3(b: Blocks) -> Array:
    exponent = np.maximum(np.frexp(b.scale)[1] - 3, 0)
    mantissa = (b.scale >> np.maximum(exponent - 1, 0)) & 7
    return (exponent << 3 | mantissa).reshape(len(b.scale), -1, 4).astype(np.uint8)


def _odd(scale: Array) -> Array:
    return scale.astype(np.int64) | 1


class _Grid:
    """A grid of the gguf package: rows of magnitudes. Signs are apart, in XXS and XS an even number
    of each eight."""

    def __init__(self, name: str, *, even: bool) -> None:
        quant = getattr(gguf.quants, name)
        quant.init_grid()
        self.rows = quant.grid.reshape(quant.grid_shape).astype(np.float32)
        self.even = even
        self._order = np.argsort(self._keys(self.rows))

    @staticmethod
    def _keys(rows: Array) -> Array:
        return rows.astype(np.int64) @ 64 ** np.arange(rows.shape[-1], dtype=np.int64)

    def fit(self, values: Array) -> Array:
        """Each row the nearest of the grid, with its signs; of an odd number one turns."""
        wanted = values.reshape(-1, self.rows.shape[1]).astype(np.float32)
        nearest = np.empty(len(wanted), np.int64)
        squares = (self.rows**2).sum(axis=1)
        for first in range(0, len(wanted), 256):  # so few that distances stay in a cache
            distances = np.abs(wanted[first : first + 256]) @ (-2 * self.rows.T)
            distances += squares
            nearest[first : first + 256] = distances.argmin(axis=1)
        signs = np.where(wanted < 0, -1, 1).reshape(-1, 8)
        if self.even:
            odd = np.flatnonzero((signs < 0).sum(axis=1) % 2)
            signs[odd, np.abs(wanted).reshape(-1, 8)[odd].argmin(axis=1)] *= -1
        return (self.rows[nearest].reshape(-1, 8) * signs).reshape(values.shape).astype(np.int64)

    def indices(self, b: Blocks) -> Array:
        """uint16 [n, blocks, rows]."""
        keys = self._keys(np.abs(b.multiples).reshape(-1, self.rows.shape[1]))
        known = self._keys(self.rows)[self._order]
        found = self._order[np.searchsorted(known, keys)]
        return found.astype(np.uint16).reshape(len(b.codes), -1, 256 // self.rows.shape[1])

    @staticmethod
    def signs(b: Blocks) -> Array:
        """uint8 [n, blocks, 32]: a bit for each of eight."""
        negative = b.multiples.reshape(len(b.codes), -1, 32, 8) < 0
        return np.packbits(negative, axis=-1, bitorder="little")[..., 0]

    def sevens_and_scale(self, b: Blocks) -> Array:
        """[n, blocks, 8, 4] bytes: four times seven signs, and four bits of the scale."""
        seven = (self.signs(b) & 127).reshape(len(b.codes), -1, 8, 4).astype(np.uint32)
        scale = (b.grouped(b.scale) >> 1).astype(np.uint32)
        word = np.bitwise_or.reduce(seven << np.array([0, 7, 14, 21], np.uint32), axis=-1)
        return (word | scale << 28)[..., None].view(np.uint8)

    @staticmethod
    def four_bit_scales(b: Blocks) -> Array:
        small = b.grouped(b.scale) >> 1
        return _joined(small.reshape(*small.shape[:2], -1, 2, 1), 4)[..., 0]


_GRIDS = {
    name: _Grid(name.upper(), even=name.startswith(("iq2_x", "iq3_x")))
    for name in ("iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s")
}


def _iq2_xxs(b: Blocks) -> list[Array]:
    grid = _GRIDS["iq2_xxs"]
    rows = grid.indices(b).astype(np.uint8).reshape(len(b.codes), -1, 8, 4)
    return [_half(b.d), _flat(np.concatenate([rows, grid.sevens_and_scale(b)], axis=-1))]


def _iq2_xs(b: Blocks) -> list[Array]:
    grid = _GRIDS["iq2_xs"]
    rows = grid.indices(b) | (grid.signs(b) & 127).astype(np.uint16) << 9
    return [_half(b.d), rows.view(np.uint8), grid.four_bit_scales(b)]


def _iq2_s(b: Blocks) -> list[Array]:
    grid = _GRIDS["iq2_s"]
    rows = grid.indices(b)
    high = _joined((rows >> 8).reshape(*rows.shape[:2], 8, 4, 1), 2)[..., 0]
    return [
        _half(b.d), rows.astype(np.uint8), grid.signs(b), high, grid.four_bit_scales(b),
    ]  # fmt: skip


def _iq3_xxs(b: Blocks) -> list[Array]:
    grid = _GRIDS["iq3_xxs"]
    return [_half(b.d), grid.indices(b).astype(np.uint8), _flat(grid.sevens_and_scale(b))]


def _iq3_s(b: Blocks) -> list[Array]:
    grid = _GRIDS["iq3_s"]
    rows = grid.indices(b)
    high = np.packbits((rows >> 8).reshape(*rows.shape[:2], 8, 8), axis=-1, bitorder="little")
    return [
        _half(b.d), rows.astype(np.uint8), high[..., 0], grid.signs(b), grid.four_bit_scales(b),
    ]  # fmt: skip


_CURVE = gguf.quants.IQ4_NL.kvalues
_FP4 = gguf.quants.MXFP4.kvalues

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
        BlockFormat(
            name="iq4_nl", number=20, block=32, block_bytes=18, group=32, levels=16, offset=0,
            table=_CURVE,
            pack=lambda b: [_half(b.d), _nibbles_of_32(b)],
        ),
        BlockFormat(
            name="iq4_xs", number=23, block=256, block_bytes=136, group=32, levels=16, offset=0,
            table=_CURVE, scales=(-32, 31),
            pack=lambda b: [_half(b.d), *_scales_iq4_xs(b), _low_and_high(b, 8, 2, 16)],
        ),
        BlockFormat(
            name="mxfp4", number=39, block=32, block_bytes=17, group=32, levels=16, offset=0,
            table=_FP4, fit=Fit(d=_power_of_two),
            pack=lambda b: [_exponent(b), _nibbles_of_32(b)],
        ),
        BlockFormat(
            name="nvfp4", number=40, block=64, block_bytes=36, group=16, levels=16, offset=0,
            table=_FP4, scales=(0, 14 << 14), d=2.0**-10, fit=Fit(scale=_four_bits),
            pack=lambda b: [_e4m3(b), _low_and_high(b, 4, 2, 8)],
        ),
        BlockFormat(
            name="iq2_xxs", number=16, block=256, block_bytes=66, group=32, levels=87, offset=43,
            scales=(1, 31), unit=1 / 8, fit=Fit(scale=_odd, values=_GRIDS["iq2_xxs"].fit),
            pack=_iq2_xxs,
        ),
        BlockFormat(
            name="iq2_xs", number=17, block=256, block_bytes=74, group=16, levels=87, offset=43,
            scales=(1, 31), unit=1 / 8, fit=Fit(scale=_odd, values=_GRIDS["iq2_xs"].fit),
            pack=_iq2_xs,
        ),
        BlockFormat(
            name="iq2_s", number=22, block=256, block_bytes=82, group=16, levels=87, offset=43,
            scales=(1, 31), unit=1 / 8, fit=Fit(scale=_odd, values=_GRIDS["iq2_s"].fit),
            pack=_iq2_s,
        ),
        BlockFormat(
            name="iq3_xxs", number=18, block=256, block_bytes=98, group=32, levels=125, offset=62,
            scales=(1, 31), unit=1 / 4, fit=Fit(scale=_odd, values=_GRIDS["iq3_xxs"].fit),
            pack=_iq3_xxs,
        ),
        BlockFormat(
            name="iq3_s", number=21, block=256, block_bytes=110, group=32, levels=31, offset=15,
            scales=(1, 31), unit=1.0, fit=Fit(scale=_odd, values=_GRIDS["iq3_s"].fit),
            pack=_iq3_s,
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
    codes = codes.astype(np.uint8)
    if made.fit.values is not as_they_are:
        codes = (made.fit.values(made.values[codes]) + made.offset).astype(np.uint8)
    scale = np.ones(groups, np.int64) if scale is None else scale
    return Blocks(
        format=made,
        codes=codes,
        d=made.fit.d(d if made.d is None else np.full(d.shape, made.d)),
        scale=made.fit.scale(scale),
        m=m.astype(np.float16),
        minimum=np.full(groups, int(has_minima), np.int64) if minimum is None else minimum,
    )


def random_blocks(name: str, n: int, k: int, rng: np.random.Generator, size: float = 1.0) -> Blocks:
    """Every part anywhere in its range; weights of about `size`, some blocks 0 or subnormal."""
    made = FORMATS[name]
    groups = (n, k // made.group)
    halves = (n, k // made.block)
    largest = max(abs(end) for end in made.scales)
    reach = np.abs(made.values).max()
    d = rng.uniform(0.2, 1.5, halves) * size / (largest * reach * made.unit)
    d *= rng.choice([1, -1], halves)
    m = rng.uniform(0.2, 1.5, halves) * size / max(made.minima[1], 1) / 2
    m *= rng.choice([1, -1], halves)
    for part in (d, m):
        part[rng.random(halves) < 0.05] = 0
        part[rng.random(halves) < 0.05] = 3 * 2.0**-24  # a subnormal half
    scale = rng.integers(made.scales[0], made.scales[1] + 1, groups)
    if made.d is not None:
        scale = rng.uniform(0.2, 1.5, groups) * size / (reach * made.d)
        scale[rng.random(groups) < 0.05] = 0
        scale[rng.random(groups) < 0.05] = 3  # a subnormal number
    return make_blocks(
        name,
        rng.integers(0, made.levels, (n, k)),
        d,
        scale=scale,
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
        wanted = _at_largest(x, axis=2) / (made.values.min() * made.unit)
        if made.scales[0] >= 0 and made.scales[1] > 1:
            wanted = np.abs(wanted)  # scales have no sign
        lowest = np.zeros(wanted.shape)
    else:
        lowest = np.minimum(x.min(axis=2), 0)
        wanted = (np.maximum(x.max(axis=2), 0) - lowest) / (made.levels - 1)
    d, scale = _two_levels(made, wanted, made.scales)
    m, minimum = _two_levels(made, made.minimum_sign * lowest, made.minima)
    blocks = make_blocks(name, np.zeros((n, k)), d, scale=scale, m=m, minimum=minimum)
    step = blocks.scales
    exact = np.divide(values - blocks.minima, step, out=np.zeros((n, k)), where=step != 0)
    if made.fit.values is not as_they_are:
        blocks.codes = (made.fit.values(exact) + made.offset).astype(np.uint8)
    elif made.table:
        blocks.codes = np.abs(exact[..., None] - made.values).argmin(axis=2).astype(np.uint8)
    else:
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
    if made.d is not None:
        return np.full(per_block.shape[:2], made.d), np.rint(wanted / made.d)
    unit = _at_largest(per_block, axis=2) / (low if low < 0 else high)
    half = unit.astype(np.float16).astype(np.float64)[..., None]
    whole = np.divide(per_block, half, out=np.zeros(per_block.shape), where=half != 0)
    return half[..., 0], np.clip(np.rint(whole), low, high).astype(np.int64).reshape(wanted.shape)
