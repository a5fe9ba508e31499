"""Random tensors in GGUF's number formats, spread like a trained model's.

A value is normal, with a standard deviation that the caller gives. Quantised blocks are drawn as
such, not quantised: each weight's code comes from the distribution that codes of normal values
have, and scales vary from block to block. So gigabytes take seconds, and the spread of what the
blocks mean is exact by construction.

Random bits come from NumPy's SFC64, whose stream is fixed for ever (that of `numpy.random`'s
distributions is not), and everything after them is a table or integer arithmetic: the same seed
gives the same bytes on every machine.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from functools import cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray
from tools.make_synthetic import tables
from tools.make_synthetic.recipes import BLOCK_SIZES

Bytes = NDArray[np.uint8]

_WEIGHTS_AT_ONCE = 1 << 22


class Stream:
    """Random bits, a stream of its own for each seed and name."""

    def __init__(self, seed: int, name: str) -> None:
        self._bits = np.random.SFC64(np.random.SeedSequence([seed, zlib.crc32(name.encode())]))

    def bytes(self, *shape: int) -> Bytes:
        """Uniform bytes of that shape."""
        count = int(np.prod(shape))
        drawn = self._bits.random_raw(-(-count // 8)).astype("<u8", copy=False)
        return drawn.view(np.uint8)[:count].reshape(shape)

    def pairs(self, count: int) -> NDArray[np.uint16]:
        """Uniform 16-bit numbers."""
        return self.bytes(2 * count).view("<u2")


@cache
def _quantiles(count: int) -> NDArray[np.float64]:
    """`count` values that are spread like one normal value each as likely as the next."""
    normal = NormalDist()
    below = [normal.inv_cdf((i + 0.5) / count) for i in range(count // 2)]
    return np.array(below + [-value for value in reversed(below)])


@cache
def _codes(levels: int, centre: float, sigmas: float = 2.4) -> Bytes:
    """256 codes, 0 to levels - 1, of a normal value whose `sigmas` fill the range."""
    half = max(centre, levels - 1 - centre)
    codes = np.rint(_quantiles(256) / sigmas * half + centre)
    return np.clip(codes, 0, levels - 1).astype(np.uint8)


@cache
def _block_sizes() -> NDArray[np.float64]:
    """256 factors around 1 by which the spread of weights varies from block to block."""
    factors = np.exp(0.2 * _quantiles(256))
    return factors / np.sqrt(np.mean(factors**2))


def _mean_square(table: NDArray[np.generic], centre: float = 0.0) -> float:
    return float(np.mean((table.astype(np.float64) - centre) ** 2))


def _halves(random: Bytes, unit: float, *, signed: bool = False) -> Bytes:
    """Block scales as bytes of float16, `[n, 2]`: about `unit` each, of either sign if `signed`."""
    table = unit * _block_sizes()
    if signed:
        table = np.where(np.arange(256) * 167 % 256 < 128, table, -table)
    return table.astype("<f2")[random].view(np.uint8).reshape(-1, 2)


def _nibbles(codes: Bytes) -> Bytes:
    """`[n, m, 2, w]` codes of four bits to `[n, m * w]`: the first of two in the low half."""
    packed = codes[:, :, 0] & 15
    packed |= codes[:, :, 1] << 4
    return packed.reshape(len(codes), -1)


def _bits(planes: Bytes) -> Bytes:
    """`[n, 8, w]` bits to `[n, w]` bytes; plane i becomes bit i."""
    packed = planes[:, 0].copy()
    for i in range(1, 8):
        packed |= planes[:, i] << i
    return packed


def _crumbs(codes: Bytes) -> Bytes:
    """`[n, m, 4, w]` codes of two bits to `[n, m * w]`."""
    packed = codes[:, :, 0].copy()
    for i in range(1, 4):
        packed |= codes[:, :, i] << (2 * i)
    return packed.reshape(len(codes), -1)


def _f32(stream: Stream, n: int, std: float) -> Bytes:
    # The sum of two normal values is normal; each has 16 random bits.
    coarse = (0.8 * std * _quantiles(65536)).astype("<f4")
    fine = (0.6 * std * _quantiles(65536)).astype("<f4")
    values = coarse[stream.pairs(n)]
    values += fine[stream.pairs(n)]
    return values.view(np.uint8).reshape(n, 4)


def _f16(stream: Stream, n: int, std: float) -> Bytes:
    table = (std * _quantiles(65536)).astype("<f2")
    return table[stream.pairs(n)].view(np.uint8).reshape(n, 2)


def _bf16(stream: Stream, n: int, std: float) -> Bytes:
    bits = (std * _quantiles(65536)).astype("<f4").view("<u4")
    table = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2")  # to nearest, ties to even
    return table[stream.pairs(n)].view(np.uint8).reshape(n, 2)


def _q8_0(stream: Stream, n: int, std: float) -> Bytes:
    table = _codes(255, 127.0).astype(np.int16) - 127  # -128 does not occur in real files
    unit = std / np.sqrt(_mean_square(table))
    codes = table.astype(np.int8).view(np.uint8)[stream.bytes(n, 32)]
    return np.concatenate([_halves(stream.bytes(n), unit), codes], axis=1)


def _simple(stream: Stream, n: int, std: float, *, bits: int, with_minimum: bool) -> Bytes:
    """Q4_0, Q4_1, Q5_0 and Q5_1: 32 codes, a scale and perhaps a minimum."""
    levels = 1 << bits
    # Without a minimum, the code in the middle is 0, and the largest value decides the sign.
    centre = (levels - 1) / 2 if with_minimum else levels / 2
    table = _codes(levels, centre)
    unit = std / np.sqrt(_mean_square(table, centre))
    random = stream.bytes(n)
    parts = [_halves(random, unit, signed=not with_minimum)]
    if with_minimum:
        parts.append(_halves(random, -unit * centre))
    codes = table[stream.bytes(n, 32)]
    if bits == 5:
        parts.append(np.packbits(codes >> 4, axis=1, bitorder="little"))
    parts.append(_nibbles(codes.reshape(n, 1, 2, 16)))
    return np.concatenate(parts, axis=1)


# Sub-scales of a K block; each of 256 is as likely as the next.
_SCALES_OF_6_BITS = (np.arange(256) % 32 + 28).astype(np.uint8)  # 28 to 59
_SCALES_OF_4_BITS = (np.arange(256) % 8 + 7).astype(np.uint8)  # 7 to 14
_STEPS = np.array([-1, 0, 0, 1], np.int8)  # what a minimum is off its scale


def _with_minima(
    stream: Stream, n: int, std: float, *, bits: int, scales: Bytes, step: int, n_scales: int
) -> tuple[Bytes, Bytes, Bytes, Bytes]:
    """Parts of Q2_K, Q4_K and Q5_K: d and dmin, scales, minima, codes.

    A weight is d * scale * code - dmin * minimum. With minimum = scale and dmin = d * (the middle
    code), it is centred; minima are a step off that, as they are in real files.
    """
    levels = 1 << bits
    centre = (levels - 1) / 2
    table = _codes(levels, centre)
    spread = _mean_square(scales) * _mean_square(table, centre)
    spread += _mean_square(_STEPS * step) * centre**2
    unit = std / np.sqrt(spread)
    random = stream.bytes(n)
    halves = np.concatenate([_halves(random, unit), _halves(random, unit * centre)], axis=1)
    drawn = stream.bytes(n, n_scales)
    # The low bits of a byte choose the scale, and its high bits, which no scale needs, the step.
    scale = scales[drawn]
    minimum = scale + (_STEPS[drawn >> 6] * np.int8(step)).view(np.uint8)
    return halves, scale, minimum, table[stream.bytes(n, 256)]


def _pack_6_bits(scale: Bytes, minimum: Bytes) -> Bytes:
    """Eight scales and eight minima of six bits to twelve bytes."""
    first, last = slice(0, 4), slice(4, 8)
    return np.concatenate(
        [
            scale[:, first] | scale[:, last] >> 4 << 6,
            minimum[:, first] | minimum[:, last] >> 4 << 6,
            scale[:, last] & 15 | minimum[:, last] << 4,
        ],
        axis=1,
    )


def _q2_k(stream: Stream, n: int, std: float) -> Bytes:
    halves, scale, minimum, codes = _with_minima(
        stream, n, std, bits=2, scales=_SCALES_OF_4_BITS, step=1, n_scales=16
    )
    return np.concatenate(
        [scale | minimum << 4, _crumbs(codes.reshape(n, 2, 4, 32)), halves], axis=1
    )


def _q3_k(stream: Stream, n: int, std: float) -> Bytes:
    # 32 is 0; scales have either sign.
    scales = np.concatenate([np.arange(128) % 16, np.arange(128) % 16 + 48]).astype(np.uint8)
    table = _codes(8, 4.0)
    unit = std / np.sqrt(_mean_square(scales, 32) * _mean_square(table, 4))
    half = _halves(stream.bytes(n), unit)
    scale = scales[stream.bytes(n, 16)]
    low = scale[:, :8] & 15 | scale[:, 8:] << 4
    quarters = scale.reshape(n, 4, 4) >> 4
    high = quarters[:, 0] | quarters[:, 1] << 2 | quarters[:, 2] << 4 | quarters[:, 3] << 6
    codes = table[stream.bytes(n, 256)]
    return np.concatenate(
        [
            _bits(codes.reshape(n, 8, 32) >> 2),
            _crumbs(codes.reshape(n, 2, 4, 32) & 3),
            low,
            high,
            half,
        ],
        axis=1,
    )


def _q4_k(stream: Stream, n: int, std: float) -> Bytes:
    halves, scale, minimum, codes = _with_minima(
        stream, n, std, bits=4, scales=_SCALES_OF_6_BITS, step=3, n_scales=8
    )
    packed = _pack_6_bits(scale, minimum)
    return np.concatenate([halves, packed, _nibbles(codes.reshape(n, 4, 2, 32))], axis=1)


def _q5_k(stream: Stream, n: int, std: float) -> Bytes:
    halves, scale, minimum, codes = _with_minima(
        stream, n, std, bits=5, scales=_SCALES_OF_6_BITS, step=3, n_scales=8
    )
    packed = _pack_6_bits(scale, minimum)
    fifth = _bits(codes.reshape(n, 8, 32) >> 4)
    return np.concatenate([halves, packed, fifth, _nibbles(codes.reshape(n, 4, 2, 32))], axis=1)


def _q6_k(stream: Stream, n: int, std: float) -> Bytes:
    scales = np.concatenate([np.arange(128) % 64 + 64, np.arange(128) % 64 - 127]).astype(np.int8)
    table = _codes(64, 32.0)
    unit = std / np.sqrt(_mean_square(scales) * _mean_square(table, 32))
    half = _halves(stream.bytes(n), unit)
    scale = scales.view(np.uint8)[stream.bytes(n, 16)]
    codes = table[stream.bytes(n, 256)]
    return np.concatenate(
        [
            # Weights i and i + 64 of each 128 share a byte.
            _nibbles(codes.reshape(n, 2, 2, 64)),
            _crumbs(codes.reshape(n, 2, 4, 32) >> 4),
            scale,
            half,
        ],
        axis=1,
    )


_Draw = Callable[[Stream, int, float], Bytes]
_DRAWS: dict[str, _Draw] = {
    "F32": _f32,
    "F16": _f16,
    "BF16": _bf16,
    "Q4_0": lambda *a: _simple(*a, bits=4, with_minimum=False),
    "Q4_1": lambda *a: _simple(*a, bits=4, with_minimum=True),
    "Q5_0": lambda *a: _simple(*a, bits=5, with_minimum=False),
    "Q5_1": lambda *a: _simple(*a, bits=5, with_minimum=True),
    "Q8_0": _q8_0,
    "Q2_K": _q2_k,
    "Q3_K": _q3_k,
    "Q4_K": _q4_k,
    "Q5_K": _q5_k,
    "Q6_K": _q6_k,
}


def blocks(number_format: str, stream: Stream, n: int, std: float) -> Bytes:
    """`n` blocks of random weights, `[n, bytes of a block]`."""
    if number_format in _DRAWS:
        return _DRAWS[number_format](stream, n, std)
    return tables.draw(number_format, stream, n, std)


def matrix(number_format: str, stream: Stream, rows: int, k: int, std: float) -> Iterator[Bytes]:
    """A matrix as pieces of its bytes, a few megabytes each."""
    left = rows * k // BLOCK_SIZES[number_format]
    at_once = _WEIGHTS_AT_ONCE // BLOCK_SIZES[number_format]
    while left > 0:
        n = min(left, at_once)
        yield blocks(number_format, stream, n, std)
        left -= n


def norm(stream: Stream, k: int) -> Bytes:
    """Weights of a norm, float32: normal around 1, all positive."""
    return (1 + 0.15 * _quantiles(65536)).astype("<f4")[stream.pairs(k)].view(np.uint8)
