"""embed: the float32 that gguf gives a weight, and one rounding for the scale."""

from __future__ import annotations

import gguf
import numpy as np
import reference as ref
from harness import ACTIVE, On, Run, assert_same_bits, make_step, pack_params, poisoned, run
from tables import table

LOG_STRIDE = 40


def embed(target, table, log, step, scale, dim, *, threads=2, vectors=None):
    out = poisoned((len(step.rows), dim))
    statuses = run(
        "embed",
        [log, table, out, vectors],
        pack_params("embed", dim, len(table.values), log.shape[1], scale, 0),
        step,
        On(target, threads),
    )
    return out, statuses


@table(format_name=ref.ALL_FORMATS, scale=[1.0, 11.3137085])
def test_takes_the_row_of_the_token_at_the_row_s_position(target, rng, format_name, scale):
    block = ref.FORMATS[format_name].block if format_name in ref.FORMATS else 1
    vocab_size, dim = 50, 512 if block > 32 else 96
    table = ref.random_weight(format_name, vocab_size, dim, rng)
    log = rng.integers(0, vocab_size, (2, LOG_STRIDE)).astype(np.uint32)
    step = make_step([Run(1, 30, 3), Run(0, 0, 1)])
    out, statuses = embed(target, table, log, step, scale, dim)
    tokens = [log[1, 30], log[1, 31], log[1, 32], log[0, 0]]
    expected = table.values.astype(np.float32)[tokens] * np.float32(scale)
    assert not statuses
    assert_same_bits(out, expected)


@table(format_name=["f32", "bf16", "q8_0", "q4_k"])
def test_a_token_behind_a_table_that_ends_before_the_vocabulary_has_the_first_row(
    target, rng, format_name
):
    dim = 256
    table = ref.random_weight(format_name, 9, dim, rng)
    log = np.array([[0, 8, 9, 11, 12]], np.uint32)
    step = make_step([Run(0, 0, 5)])
    out = poisoned((5, dim))
    params = pack_params("embed", dim, 12, log.shape[1], 1.0, 9)
    statuses = run("embed", [log, table, out], params, step, On(target, 2))
    assert_same_bits(out[:4], table.values.astype(np.float32)[[0, 8, 0, 0]])
    assert not out[4].any()
    assert statuses == {4: (2, 4, 12)}


@table(format_name=ref.BLOCK_FORMATS)
def test_extreme_blocks_are_gguf_s_bit_for_bit(target, format_name):
    """Halves at their ends, infinite and NaN; codes, scales and minima at theirs."""
    blocks = ref.extreme_blocks(format_name)
    kind = gguf.GGMLQuantizationType(blocks.format.number)
    with np.errstate(all="ignore"):
        expected = gguf.quants.dequantize(blocks.data, kind)
        table = ref.block_weight(blocks)
    n = len(expected)
    log = np.arange(n, dtype=np.uint32)[None]
    step = make_step([Run(0, 0, n)], max_positions=n)
    out, _ = embed(target, table, log, step, 1.0, 256)
    np.testing.assert_array_equal(np.isnan(out), np.isnan(expected))
    number = ~np.isnan(expected)
    assert_same_bits(out[number], expected[number])


@table(format_name=ref.TABLE_FORMATS)
def test_any_bytes_are_gguf_s_bit_for_bit(target, rng, format_name):
    """Every byte of these formats means something, also every scale and every exponent."""
    made = ref.FORMATS[format_name]
    n, dim = 256, 256
    data = rng.integers(0, 256, (n, dim // made.block * made.block_bytes)).astype(np.uint8)
    data[:, 0] = np.arange(n)  # of mxfp4 the exponent, of nvfp4 a scale
    with np.errstate(all="ignore"):
        expected = gguf.quants.dequantize(data, gguf.GGMLQuantizationType(made.number))
    table = ref.Weight(format_name, data, expected, expected, 32)
    log = np.arange(n, dtype=np.uint32)[None]
    out, _ = embed(target, table, log, make_step([Run(0, 0, n)], max_positions=n), 1.0, dim)
    np.testing.assert_array_equal(np.isnan(out), np.isnan(expected))
    number = ~np.isnan(expected) & ~((out == 0) & (expected == 0))
    assert_same_bits(out[number], expected.astype(np.float32)[number])


def test_every_finite_bfloat16_is_exact(target):
    values = (np.arange(2**16, dtype=np.uint32) << 16).view(np.float32)
    values = np.where(np.isfinite(values), values, 0).reshape(256, 256)
    table = ref.float_weight("bf16", values)
    log = np.arange(256, dtype=np.uint32)[None]
    out, _ = embed(target, table, log, make_step([Run(0, 0, 256)]), 1.0, 256)
    assert_same_bits(out, values)


@table(format_name=["f16", "bf16"], dim=[1, 7, 33])
def test_dim_needs_no_multiple(target, rng, format_name, dim):
    table = ref.random_weight(format_name, 4, dim, rng)
    log = np.array([[3, 1]], np.uint32)
    out, _ = embed(target, table, log, make_step([Run(0, 0, 2)]), 1.0, dim)
    assert_same_bits(out, table.values.astype(np.float32)[[3, 1]])


@table(threads=[1, 3])
def test_a_token_outside_the_vocabulary_gives_zeros_and_ends_its_row(target, rng, threads):
    table = ref.random_weight("f32", 8, 32, rng)
    log = np.array([[3, 8, 0xFFFFFFFF, 5]], np.uint32)
    step = make_step([Run(0, 0, 4)])
    out, statuses = embed(target, table, log, step, 1.0, 32, threads=threads)
    assert statuses == {1: (2, 1, 8), 2: (2, 2, 0xFFFFFFFF)}
    assert step.rows["flags"].tolist() == [ACTIVE, 0, 0, ACTIVE]
    assert (out[[1, 2]] == 0).all()
    assert_same_bits(out[[0, 3]], table.values.astype(np.float32)[[3, 5]])


def test_an_inactive_row_s_token_is_nobody_s_error(target, rng):
    table = ref.random_weight("f32", 8, 32, rng)
    step = make_step([Run(0, 0, 1)])
    step.rows["flags"] = 0
    _, statuses = embed(target, table, np.array([[99]], np.uint32), step, 1.0, 32)
    assert not statuses


@table(threads=[1, 3], format_name=["f32", "bf16", "q8_0", "q4_k"])
def test_rows_of_an_image_have_their_vectors_as_they_are(target, rng, format_name, threads):
    dim = 272 if format_name in ("f32", "bf16") else 256
    table = ref.random_weight(format_name, 9, dim, rng)
    step = make_step([Run(0, 0, 2), Run(0, 2, 5, is_image=True), Run(0, 7, 1)])
    # What the log has for an image is not looked at.
    log = np.array([[3, 8, 99, 99, 1, 0xFFFFFFFF, 99, 5]], np.uint32)
    vectors = rng.standard_normal((8, dim)).astype(np.float32)
    vectors[2, 1], vectors[3, 2], vectors[4, dim - 1] = np.nan, np.inf, -0.0
    vectors[[0, 1, 7]] = np.nan  # nor what stands there for other rows
    out, statuses = embed(target, table, log, step, 11.5, dim, threads=threads, vectors=vectors)
    assert not statuses
    assert_same_bits(out[2:7], vectors[2:7])
    expected = table.values.astype(np.float32)[[3, 8, 5]] * np.float32(11.5)
    assert_same_bits(out[[0, 1, 7]], expected)


@table(dim=[1, 7, 33])
def test_a_vector_needs_no_multiple(target, rng, dim):
    table = ref.random_weight("f32", 4, dim, rng)
    step = make_step([Run(0, 0, 1), Run(0, 1, 2, is_image=True)])
    vectors = rng.standard_normal((3, dim)).astype(np.float32)
    log = np.zeros((1, 3), np.uint32)
    out, _ = embed(target, table, log, step, 2.0, dim, vectors=vectors)
    assert_same_bits(out[1:], vectors[1:])
    assert_same_bits(out[:1], table.values.astype(np.float32)[:1] * np.float32(2))
