"""The blocks that the other tests are made of, against the gguf package's dequantisation."""

from __future__ import annotations

import itertools

import gguf
import numpy as np
import pytest
from reference import BLOCK_FORMATS, extreme_blocks, random_blocks
from tables import table
from tools.block_formats import FORMATS, make_blocks, quantize


def assert_equals_gguf(blocks):
    """Bit for bit: d, scale and code multiply exactly, and a minimum is added with one rounding."""
    kind = gguf.GGMLQuantizationType(blocks.format.number)
    with np.errstate(all="ignore"):
        expected = gguf.quants.dequantize(blocks.data, kind)
        values = blocks.values.astype(np.float32)
    assert np.array_equal(values, expected, equal_nan=True)
    number = ~np.isnan(values)
    assert (np.signbit(values) == np.signbit(expected))[number & (values != 0)].all()


@table(name=BLOCK_FORMATS)
def test_sizes_and_numbers_are_gguf_s(name):
    made = FORMATS[name]
    kind = gguf.GGMLQuantizationType(made.number)
    assert kind.name.lower() == name
    assert gguf.GGML_QUANT_SIZES[kind] == (made.block, made.block_bytes)


@table(name=BLOCK_FORMATS)
def test_random_blocks_have_gguf_s_values(name, rng):
    assert_equals_gguf(random_blocks(name, 31, 3 * 256, rng))


@table(name=BLOCK_FORMATS)
def test_extreme_blocks_have_gguf_s_values(name):
    blocks = extreme_blocks(name)
    made = blocks.format
    assert_equals_gguf(blocks)
    # All of it is there: both ends of every part, and every kind of half.
    assert {0, made.levels - 1} <= set(np.unique(blocks.codes))
    assert set(made.scales) <= set(np.unique(blocks.scale))
    assert set(made.minima) <= set(np.unique(blocks.minimum))
    if made.fit.d is FORMATS["q4_0"].fit.d and made.d is None:
        assert {0.0, 2.0**-24, 65504.0, -65504.0, np.inf} <= set(np.unique(blocks.d).tolist())


@pytest.mark.slow  # of the reference, not of a kernel
@table(name=[name for name in BLOCK_FORMATS if not name.startswith(("iq2", "iq3"))])
def test_every_bit_of_a_code_has_its_place(name):
    """One weight of a block differs from 1 at a time."""
    made = FORMATS[name]
    kind = gguf.GGMLQuantizationType(made.number)
    scale = np.full((1, made.block // made.group), made.scales[1])

    def dequantised(codes):
        blocks = make_blocks(name, codes, np.ones((1, 1)), scale=scale)
        assert_equals_gguf(blocks)
        return gguf.quants.dequantize(blocks.data, kind)

    ones = np.ones((1, made.block), np.uint8)
    unchanged = dequantised(ones)
    for i, bit in itertools.product(range(made.block), range(made.levels.bit_length() - 1)):
        codes = ones.copy()
        codes[0, i] ^= 1 << bit
        assert np.flatnonzero(dequantised(codes) != unchanged).tolist() == [i]


@table(name=BLOCK_FORMATS)
def test_quantize_takes_the_nearest_code(name, rng):
    made = FORMATS[name]
    values = rng.standard_normal((5, 512)) * rng.uniform(0.01, 10, (5, 1))
    blocks = quantize(name, values)
    assert_equals_gguf(blocks)
    error = np.abs(blocks.values - values)
    if (
        made.fit.values is not FORMATS["q4_0"].fit.values
    ):  # rows of a grid: a third of what is there
        assert (error**2).mean() < 0.15 * (values**2).mean()
        return
    step = np.abs(blocks.scales)
    if made.table:
        distances = np.abs(values[..., None] - blocks.scales[..., None] * made.values)
        assert (error <= distances.min(axis=2) * 1.0000001).all()
        assert (error**2).mean() < 0.02 * (values**2).mean()
        return
    inside = (blocks.codes > 0) & (blocks.codes < made.levels - 1)
    assert (error <= step * 0.5000001)[inside].all()
    # At the ends of the range a value may lie beyond; not by much, or the scale would be too small.
    assert error.max() <= 1.7 * step.max()
    assert not quantize(name, np.zeros((1, 256))).values.any()
