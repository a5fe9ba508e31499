"""matmul, and with it the tile loop under every matmul: against float64, and bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
import reference as ref
from harness import (
    On,
    Run,
    assert_same_bits,
    assert_within,
    make_step,
    pack_params,
    plain_step,
    poisoned,
    row_class_of,
    run,
)
from largest_weight import largest_weight
from tables import table

FORMATS = ref.ALL_FORMATS
# n, k: below, at and beside every tile and lane count; k is rounded up to whole blocks.
SHAPES = [(1, 1), (3, 7), (5, 33), (13, 64), (48, 100), (200, 96), (250, 416), (7, 1000)]


def fit(format_name: str, k: int) -> int:
    block = 1 if format_name in ref.FLOAT_FORMATS else ref.FORMATS[format_name].block
    return -(-k // block) * block


def multiply(target, weight, activation, step, *, threads=1, row_class="", **part):
    n, k = weight.values.shape
    out = poisoned((len(activation.data), n))
    on = On(target, threads, activation.kind, row_class=row_class)
    statuses = run(
        "matmul",
        [activation.data, weight, out],
        pack_params("matmul", n, k),
        step,
        on,
        **part,
    )
    assert not statuses
    return out


@table(
    {"n, k": SHAPES},
    format_name=FORMATS,
    rows=[1, 2, 3, 16, 17, 70],
    functions=("format_name", "rows"),
)
def test_agrees_with_float64(target, rng, format_name, n, k, rows):
    k = fit(format_name, k)
    weight = ref.random_weight(format_name, n, k, rng)
    x = rng.standard_normal((rows, k))
    x[rng.random((rows, k)) < 0.05] = 0
    x[0] *= 1e-30  # a row of its own scale
    activation = ref.make_activation(target.kind_of(format_name, row_class_of(rows)), x)
    expected, bound = ref.matmul(weight, activation, target.device)
    out = multiply(target, weight, activation, plain_step(rows))
    assert_within(out, expected, bound)


# Of these formats a device may have larger tiles, for rows of whole windows of 256 weights.
LARGE_TILES = ["q4_0", "q8_0", "q4_k", "q6_k", "f16", "bf16"]


@table(format_name=LARGE_TILES)
def test_large_tiles_agree_with_float64_and_keep_bits(target, rng, format_name):
    n, k, rows = 140, 768, 270
    weight = ref.random_weight(format_name, n, k, rng)
    kind = target.kind_of(format_name, "many")
    activation = ref.make_activation(kind, rng.standard_normal((rows, k)))
    step = plain_step(rows)
    expected, bound = ref.matmul(weight, activation, target.device)
    together = multiply(target, weight, activation, step)
    assert_within(together, expected, bound)
    for first_row, n_rows in [(0, 1), (131, 130), (269, 1)]:
        part = multiply(
            target, weight, activation, step,
            row_class="many", first_row=first_row, n_rows=n_rows,
        )  # fmt: skip
        own = slice(first_row, first_row + n_rows)
        assert_same_bits(part[own], together[own])


@table(
    {"n, k": [(37, 4096), (70, 5152)]},
    format_name=FORMATS,
    on_change={"format_name": ref.FAMILIES},
)
def test_a_long_row_has_the_same_bits_alone_and_together(target, rng, format_name, n, k):
    """Devices may have other kernels for long rows."""
    k = fit(format_name, k)
    weight = ref.random_weight(format_name, n, k, rng)
    kind = target.kind_of(format_name, "few")
    activation = ref.make_activation(kind, rng.standard_normal((16, k)))
    expected, bound = ref.matmul(weight, activation, target.device)
    step = plain_step(16)
    together = multiply(target, weight, activation, step, row_class="few")
    assert_within(together, expected, bound)
    for first_row, n_rows in [(0, 1), (11, 1), (3, 2), (5, 8), (2, 9)]:
        row_class = "single" if n_rows == 1 else "few"
        rows = slice(first_row, first_row + n_rows)
        part = multiply(
            target, weight, activation, step,
            row_class=row_class, first_row=first_row, n_rows=n_rows,
        )  # fmt: skip
        assert_same_bits(part[rows], together[rows])


@table(format_name=FORMATS, rows=[5, 21])
def test_the_largest_weights(target, rng, format_name, rows):
    """Halves of 65504, all signs; codes, scales and minima at both ends of their range."""
    n, k, kind = 9, fit(format_name, 128), target.kind_of(format_name, row_class_of(rows))
    signs = rng.choice([-1.0, 1.0], (n, k))
    if format_name in ref.FLOAT_FORMATS:
        weight = ref.pack_weight(format_name, signs * (65504.0 if format_name == "f16" else 1e30))
    else:
        # Where weights are rounded to F16, they are numbers that it has.
        most = 65000.0 if ref.is_streamed(format_name, k) else np.inf
        weight = largest_weight(format_name, n, k, rng, most)
    # Codes of +127 and -127 only: the products at which an int16 pair sum is tightest.
    activation = ref.make_activation(kind, rng.choice([-2.0, 2.0], (rows, k)))
    activation.data[0] = ref.make_activation(kind, np.full((1, k), 2.0)).data
    activation.values[0] = 2.0
    expected, bound = ref.matmul(weight, activation, target.device)
    assert_within(multiply(target, weight, activation, plain_step(rows)), expected, bound)


@table(format_name=FORMATS, rows=[3, 21])
def test_zeros_give_zeros(target, format_name, rows):
    n, k, kind = 11, fit(format_name, 64), target.kind_of(format_name, row_class_of(rows))
    if format_name in ref.FLOAT_FORMATS:
        weight = ref.pack_weight(format_name, np.zeros((n, k)))
    else:
        made = ref.FORMATS[format_name]
        # Where no code is 0, a scale is.
        zero, one = made.code_of_zero, np.ones((n, k // made.block))
        codes, d = (np.zeros((n, k)), 0 * one) if zero is None else (np.full((n, k), zero), one)
        weight = ref.block_weight(ref.make_blocks(format_name, codes, d))
    activation = ref.make_activation(kind, np.ones((rows, k)))
    assert (multiply(target, weight, activation, plain_step(rows)) == 0).all()
    activation = ref.make_activation(kind, np.zeros((rows, k)))
    assert (multiply(target, weight, activation, plain_step(rows)) == 0).all()


@pytest.mark.kind("q8_32")
@table(format_name=ref.BLOCK_FORMATS)
def test_a_row_that_is_not_a_number_stays_one(target, rng, format_name):
    k = fit(format_name, 64)
    weight = ref.random_weight(format_name, 6, k, rng)
    activation = ref.make_activation("q8_32", rng.standard_normal((2, k)))
    activation.data[1, k : k + 4] = np.float32(np.nan).reshape(1).view(np.uint8)
    out = multiply(target, weight, activation, plain_step(2))
    assert np.isfinite(out[0]).all()
    assert np.isnan(out[1]).all()


@table({"row_class, rows": [("few", 16), ("many", 141)]}, format_name=FORMATS)
def test_rows_have_the_same_bits_alone_and_together(target, rng, format_name, row_class, rows):
    n, k = 203, fit(format_name, 600)  # of a matrix unit, two parts of k
    weight = ref.random_weight(format_name, n, k, rng)
    kind = target.kind_of(format_name, row_class)
    activation = ref.make_activation(kind, rng.standard_normal((rows, k)))
    step = plain_step(rows)
    together = multiply(target, weight, activation, step, row_class=row_class)
    for first_row, n_rows in [(0, 1), (9, 1), (1, 2), (13, 3), (0, 16), (77, 16), (77, 64)]:
        if first_row + n_rows > rows:
            continue
        # One row of few is the business of the `single` kernel.
        row_class_of_part = "single" if (row_class, n_rows) == ("few", 1) else row_class
        part = multiply(
            target, weight, activation, step,
            row_class=row_class_of_part, first_row=first_row, n_rows=n_rows,
        )  # fmt: skip
        own = slice(first_row, first_row + n_rows)
        assert_same_bits(part[own], together[own])
        outside = np.delete(part, np.arange(rows)[own], axis=0)
        assert (outside.view(np.uint8) == 0xFF).all(), "wrote rows that are not its own"


@table(format_name=["q4_0", "q8_0", "q4_k", "q5_k", "q6_k", "f16"], rows=[17, 40, 150])
def test_few_rows_are_as_many_as_one_likes(target, rng, format_name, rows):
    """The output matrix meets all rows that are scored as rows of the class `few`."""
    n, k = 70, 512
    weight = ref.random_weight(format_name, n, k, rng)
    kind = target.kind_of(format_name, "few")
    x = rng.standard_normal((rows, k))
    together = multiply(
        target, weight, ref.make_activation(kind, x), plain_step(rows), row_class="few"
    )
    for first in range(0, rows, 16):
        part = ref.make_activation(kind, x[first : first + 16])
        expected, bound = ref.matmul(weight, part, target.device)
        n_rows = len(expected)
        out = multiply(target, weight, part, plain_step(n_rows), row_class="few")
        assert_within(out, expected, bound)
        assert_same_bits(together[first : first + n_rows], out)


@table(format_name=FORMATS, threads=[2, 3, 16], on_change={"format_name": ref.FAMILIES})
def test_threads_change_no_bit(target, rng, format_name, threads):
    n, k, rows = 500, 256, 67
    weight = ref.random_weight(format_name, n, k, rng)
    kind = target.kind_of(format_name, row_class_of(rows))
    activation = ref.make_activation(kind, rng.standard_normal((rows, k)))
    step = plain_step(rows)
    alone = multiply(target, weight, activation, step)
    assert_same_bits(multiply(target, weight, activation, step, threads=threads), alone)


@table(format_name=FORMATS, row_class=["single", "many"])
def test_weights_need_no_alignment(target, rng, format_name, row_class):
    """A mapped file aligns a tensor to what its numbers need, not to what a register needs."""
    n, k = 10, fit(format_name, 96)
    weight = ref.random_weight(format_name, n, k, rng)
    kind = target.kind_of(format_name, row_class)
    activation = ref.make_activation(kind, rng.standard_normal((1, k)))
    step = plain_step(1)
    expected = multiply(target, weight, activation, step, row_class=row_class)
    offset = 4 if format_name == "f32" else 2
    room = np.zeros(weight.data.size + offset, np.uint8)
    room[offset:] = weight.data.ravel()
    weight.data = room[offset:]
    assert_same_bits(multiply(target, weight, activation, step, row_class=row_class), expected)


@pytest.mark.kind("bf16")
@table(format_name=[*ref.BLOCK_FORMATS, "f16", "bf16"], bad=[np.nan, np.inf])
def test_what_is_not_finite_stays_in_its_row(target, rng, format_name, bad):
    n, k, kind = 40, fit(format_name, 96), target.kind_of(format_name, "many")
    weight = ref.random_weight(format_name, n, k, rng)
    x = rng.standard_normal((3, k))
    clean = multiply(target, weight, ref.make_activation(kind, x), plain_step(3))
    x[1, 40] = bad
    out = multiply(target, weight, ref.make_activation(kind, x), plain_step(3))
    assert_same_bits(out[[0, 2]], clean[[0, 2]])
    assert not np.isfinite(out[1][weight.values[:, 40] != 0]).any()


@pytest.mark.kind("q16_32")
@table({"format_name, steps": [("f16", 4), ("bf16", 32)]})
def test_weights_near_the_largest_are_not_rounded(target, rng, format_name, steps):
    """Of 11 bits down to a quarter of the largest, of 8 bits down to a 32nd: so these are exact."""
    n, k, rows = 37, 64, 9
    magnitude = np.exp2(-rng.integers(0, np.log2(steps) + 1, (n, k))) * rng.uniform(1, 1.99, (n, k))
    magnitude[:, ::32] = 1.75
    weight = ref.pack_weight(format_name, magnitude * rng.choice([-1, 1], (n, k)))
    activation = ref.make_activation("q16_32", rng.integers(-7, 8, (rows, k)))
    out = multiply(target, weight, activation, plain_step(rows), row_class="many")
    assert_same_bits(out, (activation.values @ weight.values.T).astype(np.float32))


@pytest.mark.kind("q16_32")
@table(
    {
        "format_name, bad": [
            ("f16", np.nan),
            ("f16", -np.inf),
            ("bf16", np.inf),
            ("bf16", np.nan),
            ("bf16", -(2.0**117)),
        ]
    },
    rows=[1, 9],
)
def test_a_weight_without_a_code_is_not_hidden(target, rng, format_name, bad, rows):
    n, k = 20, 80
    values = rng.standard_normal((n, k))
    values[7, 70] = bad
    weight = ref.pack_weight(format_name, values)
    activation = ref.make_activation("q16_32", rng.standard_normal((rows, k)))
    out = multiply(target, weight, activation, plain_step(rows), row_class="many")
    assert np.isnan(out[:, 7]).all()
    assert np.isfinite(np.delete(out, 7, axis=1)).all()


@pytest.mark.kind("q16_32")
@table(bad=[np.nan, np.inf])
def test_an_input_that_is_not_finite_stays_in_its_row(target, rng, bad):
    weight = ref.random_weight("f16", 20, 80, rng)
    x = rng.standard_normal((6, 80))
    x[2, 70] = bad
    activation = ref.make_activation("q16_32", x)
    out = multiply(target, weight, activation, plain_step(6), row_class="many")
    assert np.isnan(out[2]).all()
    assert np.isfinite(np.delete(out, 2, axis=0)).all()


def test_head_rows_are_indexed_by_themselves(target, rng):
    """The head's matmul covers head rows 2 and 3 of a step of five rows."""
    weight = ref.random_weight("f32", 4, 8, rng)
    activation = ref.make_activation("f32", rng.standard_normal((5, 8)))
    step = make_step([Run(0, 0, 5)])
    expected, bound = ref.matmul(weight, activation, target.device)
    out = multiply(target, weight, activation, step, first_row=2, n_rows=2, extent="head_rows")
    assert_within(out[2:4], expected[2:4], bound[2:4])
