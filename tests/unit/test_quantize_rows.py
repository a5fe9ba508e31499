"""`_core.quantize`: blocks that the `gguf` package reads, and how far they are from the numbers."""

from __future__ import annotations

from typing import Any

import gguf
import numpy as np
import pytest
from gguf.quants import dequantize
from numpy.typing import NDArray

from akunu import _core
from akunu.errors import ArgumentError
from lines import each_line

Array = NDArray[Any]
BLOCKS = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K",
          "IQ4_NL", "IQ4_XS", "MXFP4"]  # fmt: skip
FLOATS = ["F32", "F16", "BF16"]

# The mean square that is left of normal numbers, as a share of theirs: what rounding to the nearest
# of so many numbers leaves at best (Max, 1960).
LLOYD_MAX = {4: 0.1175, 8: 0.03454, 16: 0.01154, 32: 0.003495, 64: 0.001041}
LEVELS = {"Q4_0": 16, "Q4_1": 16, "Q5_0": 32, "Q5_1": 32, "Q2_K": 4, "Q3_K": 8, "Q4_K": 16,
          "Q5_K": 32, "Q6_K": 64, "IQ4_NL": 16, "IQ4_XS": 16}  # fmt: skip


def normal(rows: int = 64, k: int = 512) -> Array:
    return np.random.default_rng(0).normal(0.0, 0.02, (rows, k)).astype(np.float32)


def quantised(values: Array, to: str, **options: Any) -> Array:
    return _core.quantize(
        "w", np.ascontiguousarray(values).view(np.uint8).reshape(-1), "F32", values.shape, to,
        **options,
    )  # fmt: skip


def read_by_gguf(blocks: Array, values: Array, type_name: str) -> Array:
    kind = gguf.GGMLQuantizationType[type_name]
    block, size = gguf.GGML_QUANT_SIZES[kind]
    rows, k = values.shape
    return np.asarray(dequantize(blocks.reshape(rows, k // block * size), kind)).reshape(rows, k)


def error_of(blocks: Array, values: Array, type_name: str) -> float:
    exact = values.astype(np.float64)
    left = read_by_gguf(blocks, values, type_name).astype(np.float64) - exact
    return float((left**2).sum() / (exact**2).sum())


@each_line("type_name", LEVELS)
def test_what_is_left_of_normal_numbers_is_near_the_least_possible(type_name: str) -> None:
    values = normal()
    assert error_of(quantised(values, type_name), values, type_name) < (
        1.1 * LLOYD_MAX[LEVELS[type_name]]
    )


@each_line("type_name", ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"])
@each_line("is_weighted", [False, True])
def test_a_block_has_the_same_bytes_beside_others_and_alone(
    type_name: str, is_weighted: bool
) -> None:
    # Eight are searched at once: 19 leave three over. Some are flat, or nothing but zeros.
    values = normal(3, 32 * 19)
    values[0, :64], values[1, 32:64] = 0.0, 0.25
    blocks = values.reshape(-1, 32)
    importance = np.arange(1, 33, dtype=np.float32) if is_weighted else None
    given = {} if importance is None else {"importance": np.tile(importance, 19)}
    alone = {} if importance is None else {"importance": importance}
    expected = quantised(blocks, type_name, **alone)
    np.testing.assert_array_equal(quantised(values, type_name, **given), expected)


@each_line("type_name", BLOCKS)
def test_our_numbers_and_the_gguf_packages_are_the_same(type_name: str) -> None:
    values = normal()
    blocks = quantised(values, type_name)
    ours = _core.dequantize("w", blocks, type_name, values.shape)
    np.testing.assert_array_equal(ours, read_by_gguf(blocks, values, type_name))


@each_line("type_name", ["Q8_0", "Q4_0", "Q5_0", "IQ4_NL", "MXFP4"])
def test_numbers_that_blocks_hold_exactly_come_back(type_name: str) -> None:
    """Multiples of a power of two with the outermost code in every block."""
    codes = {
        "Q8_0": np.arange(-127, 128), "Q4_0": np.arange(-8, 8), "Q5_0": np.arange(-16, 16),
        "IQ4_NL": np.array(
            [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113]
        ),
        "MXFP4": np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.5, -1, -1.5, -2, -3, -4, -6]),
    }[type_name]  # fmt: skip
    values = np.random.default_rng(1).choice(codes, (8, 256)).astype(np.float32) / 64
    values[:, ::32] = codes[np.argmax(np.abs(codes))] / 64
    np.testing.assert_array_equal(
        read_by_gguf(quantised(values, type_name), values, type_name), values
    )


@pytest.mark.parametrize("type_name", FLOATS)
def test_floats_are_rounded_to_the_nearest(type_name: str) -> None:
    values = np.concatenate(
        [
            normal(4, 256),
            np.float32([[1e-7, -6e-8, 65504, 1 + 2**-11, 1 + 3 * 2**-11, 0, -0.0, 5e-8] * 32]),
        ]
    )
    got = quantised(values, type_name)
    if type_name == "BF16":
        expected = read_by_gguf(
            gguf.quants.quantize(values, gguf.GGMLQuantizationType.BF16), values, "BF16"
        )
        np.testing.assert_array_equal(read_by_gguf(got, values, "BF16"), expected)
    else:
        dtype = {"F32": np.float32, "F16": np.float16}[type_name]
        np.testing.assert_array_equal(got.view(dtype).reshape(values.shape), values.astype(dtype))


@each_line("type_name", BLOCKS)
def test_columns_that_count_more_have_smaller_errors(type_name: str) -> None:
    values = normal()
    importance = np.where(np.arange(values.shape[1]) % 4 == 0, 100.0, 0.01).astype(np.float32)
    plain = read_by_gguf(quantised(values, type_name), values, type_name) - values
    weighed = (
        read_by_gguf(quantised(values, type_name, importance=importance), values, type_name)
        - values
    )
    assert (importance * weighed**2).sum() < (importance * plain**2).sum()


@each_line("type_name", BLOCKS)
def test_the_bytes_do_not_depend_on_the_threads(type_name: str) -> None:
    values = np.tile(normal(), (8, 1))
    np.testing.assert_array_equal(
        quantised(values, type_name), quantised(values, type_name, threads=3)
    )


@each_line("type_name", BLOCKS)
@each_line("number", [0.0, 1.0, -1.0, 6e-8, 1e-30])
def test_rows_of_one_number_stay_near_to_it(type_name: str, number: float) -> None:
    values = np.full((2, 256), number, np.float32)
    got = read_by_gguf(quantised(values, type_name), values, type_name)
    # A scale is a half: below 6e-8 there is none.
    np.testing.assert_allclose(got, values, rtol=0.05, atol=1e-6)


def test_importance_of_nothing_is_as_none_and_of_matrices_one_after_another() -> None:
    values = normal(4, 256)
    blocks = quantised(values, "Q4_K", importance=np.zeros(256, np.float32))
    np.testing.assert_array_equal(blocks, quantised(values, "Q4_K"))
    rng = np.random.default_rng(2)
    both = rng.random((2, 256), np.float32)
    together = quantised(values, "Q4_K", importance=both).reshape(4, -1)
    for matrix in range(2):
        rows = slice(2 * matrix, 2 * matrix + 2)
        alone = quantised(values[rows], "Q4_K", importance=both[matrix])
        np.testing.assert_array_equal(together[rows], alone.reshape(2, -1))


@pytest.mark.parametrize(("number", "word"), [(np.nan, "not a number"), (np.inf, "infinite")])
def test_what_is_no_number_is_refused_by_tensor_row_and_column(number: float, word: str) -> None:
    values = normal(4, 256)
    values[2, 17] = number
    with pytest.raises(ArgumentError, match=f"w, row 2: column 17 is {word}"):
        quantised(values, "Q4_K", threads=2)


@each_line("type_name", ["F16", "Q8_0", "Q4_1", "Q4_K", "Q6_K", "IQ4_XS"])
def test_numbers_without_a_scale_are_refused(type_name: str) -> None:
    values = np.full((1, 256), 1e30, np.float32)
    values[:, ::2] = -1e30
    with pytest.raises(
        ArgumentError, match=f"row 0: it has numbers that are too large for {type_name}"
    ):
        quantised(values, type_name)


def test_the_error_is_that_of_the_blocks() -> None:
    values = normal()
    data = values.view(np.uint8).reshape(-1)
    importance = np.random.default_rng(3).random(values.shape[1], np.float32)
    squares, whole = _core.quantization_error(
        "w", data, "F32", values.shape, "Q4_K", importance=importance, threads=2
    )
    blocks = quantised(values, "Q4_K", importance=importance)
    exact = values.astype(np.float64)
    left = read_by_gguf(blocks, values, "Q4_K") - exact
    assert squares == pytest.approx(float((importance * left**2).sum()), rel=1e-6)
    assert whole == pytest.approx(float((importance * exact**2).sum()), rel=1e-6)


def test_sizes_that_contradict_each_other_are_refused() -> None:
    data = np.zeros(4 * 256 * 4, np.uint8)
    for shape, message in (((4, 250), "no whole blocks"), ((5, 256), "bytes are not its 5 rows")):
        with pytest.raises(ArgumentError, match=message):
            _core.quantize("w", data, "F32", shape, "Q4_K")
    for importance, message in ((np.ones(100), "importance has 100"), (-np.ones(256), "negative")):
        with pytest.raises(ArgumentError, match=message):
            _core.quantize(
                "w", data, "F32", (4, 256), "Q4_K", importance=importance.astype(np.float32)
            )
    with pytest.raises(ArgumentError, match="Q8_1 can be neither read nor written"):
        _core.quantize("w", data, "F32", (4, 256), "Q8_1")
    with pytest.raises(ArgumentError, match="no tensor type 'Q4_Q'"):
        _core.quantize("w", data, "F32", (4, 256), "Q4_Q")
