"""Random blocks of the formats whose codes are places in a table, or rows of a grid.

Of a table, codes are drawn as those of normal values are spread; of a grid, every row is as likely
as the next, with any signs, so values are spread as the grid is. Tables and grids are those of the
`gguf` package.
"""

from __future__ import annotations

from functools import cache
from statistics import NormalDist
from typing import Protocol

import gguf
import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

TABLE_FORMATS = ("IQ4_NL", "IQ4_XS", "MXFP4", "NVFP4")
GRID_FORMATS = ("IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S")


class Bits(Protocol):
    """Where random bytes come from."""

    def bytes(self, *shape: int) -> Bytes: ...


@cache
def _normal() -> NDArray[np.float64]:
    """256 values that are spread like one normal value each as likely as the next."""
    normal = NormalDist()
    below = [normal.inv_cdf((i + 0.5) / 256) for i in range(128)]
    return np.array(below + [-value for value in reversed(below)])


@cache
def _codes(name: str, reach: float) -> tuple[Bytes, float]:
    """256 codes of normal values, `reach` of the table for one standard deviation, and the root of
    the mean square of what they stand for."""
    table = np.array(getattr(gguf.quants, name).kvalues, np.float64)
    codes = np.abs(_normal()[:, None] * reach - table).argmin(axis=1).astype(np.uint8)
    return codes, float(np.sqrt(np.mean(table[codes] ** 2)))


def _nibbles(codes: Bytes, apart: int) -> Bytes:
    """`[n, m]` codes to bytes; each two that share one are `apart` weights apart."""
    pairs = codes.reshape(len(codes), -1, 2, apart)
    return (pairs[:, :, 0] | pairs[:, :, 1] << 4).reshape(len(codes), -1)


@cache
def _factors() -> NDArray[np.float64]:
    """256 factors by which the spread of weights varies from block to block."""
    factors = np.exp(0.2 * _normal())
    spread: NDArray[np.float64] = factors / np.sqrt(np.mean(factors**2))
    return spread


def _halves(random: Bytes, unit: float) -> Bytes:
    return (unit * _factors()).astype("<f2")[random].view(np.uint8).reshape(-1, 2)


def _iq4_nl(bits: Bits, n: int, std: float) -> Bytes:
    codes, spread = _codes("IQ4_NL", 45.0)
    half = _halves(bits.bytes(n), std / spread)
    return np.concatenate([half, _nibbles(codes[bits.bytes(n, 32)], 16)], axis=1)


# Scales of IQ4_XS; 32 is 0, and they have either sign.
_SIX_BITS = np.concatenate([np.arange(128) % 16, np.arange(128) % 16 + 48]).astype(np.uint8)


def _iq4_xs(bits: Bits, n: int, std: float) -> Bytes:
    codes, spread = _codes("IQ4_NL", 45.0)
    scales = np.sqrt(np.mean((_SIX_BITS.astype(np.float64) - 32) ** 2))
    half = _halves(bits.bytes(n), std / (spread * scales))
    scale = _SIX_BITS[bits.bytes(n, 8)]
    high = (scale.astype(np.uint16) >> 4 << 2 * np.arange(8, dtype=np.uint16)).sum(axis=1)
    low = (scale[:, 0::2] & 15) | scale[:, 1::2] << 4
    nibbles = _nibbles(codes[bits.bytes(n, 256)], 16)
    return np.concatenate(
        [half, high.astype("<u2").view(np.uint8).reshape(n, 2), low, nibbles], axis=1
    )


def _mxfp4(bits: Bits, n: int, std: float) -> Bytes:
    codes, spread = _codes("MXFP4", 4.5)
    # Two powers of two, as often as their mean square wants it.
    square = (std / spread) ** 2
    below = int(np.floor(np.log2(square) / 2))
    share = (square / 4.0**below - 1) / 3  # of the larger one
    exponents = np.where(np.arange(256) < round(256 * share), below + 1, below) + 128
    exponent = exponents.astype(np.uint8)[bits.bytes(n)].reshape(n, 1)
    return np.concatenate([exponent, _nibbles(codes[bits.bytes(n, 32)], 16)], axis=1)


def _nvfp4(bits: Bits, n: int, std: float) -> Bytes:
    codes, spread = _codes("MXFP4", 4.5)
    scales = gguf.quants.NVFP4.fp32_to_ue4m3((2 * std / spread * _factors()).astype(np.float32))
    scale = scales.astype(np.uint8)[bits.bytes(n, 4)]
    return np.concatenate([scale, _nibbles(codes[bits.bytes(n, 64)], 8)], axis=1)


# What a grid's format multiplies 2 s + 1 with, and where in a block its scales of four bits are: in
# the top bits of every eighth byte behind signs, or in bytes of their own, which may be any.
_UNITS = {"IQ2_XXS": 1 / 8, "IQ2_XS": 1 / 8, "IQ2_S": 1 / 8, "IQ3_XXS": 1 / 4, "IQ3_S": 1.0}


def _grid(name: str, bits: Bits, n: int, std: float) -> Bytes:
    """All bits of a block but those of its half are as good as any other."""
    quant = getattr(gguf.quants, name)
    quant.init_grid()
    scales = np.sqrt(np.mean((2 * np.arange(16) + 1.0) ** 2))
    spread = np.sqrt(np.mean(quant.grid.astype(np.float64) ** 2)) * scales * _UNITS[name]
    n_bytes = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]][1]
    half = _halves(bits.bytes(n), std / float(spread))
    return np.concatenate([half, bits.bytes(n, n_bytes - 2)], axis=1)


_DRAWS = {"IQ4_NL": _iq4_nl, "IQ4_XS": _iq4_xs, "MXFP4": _mxfp4, "NVFP4": _nvfp4}


def draw(name: str, bits: Bits, n: int, std: float) -> Bytes:
    """`n` blocks of random weights, `[n, bytes of a block]`."""
    return _DRAWS[name](bits, n, std) if name in _DRAWS else _grid(name, bits, n, std)
