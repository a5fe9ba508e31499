"""Weights of several planes, bound at slots of their own: MLX's affine groups, and its mxfp4.

What one is, MLX's documentation of `quantize` says: weight = scale * code + bias for each group,
codes packed into words of 32 bits from the lowest bit on.
"""

from __future__ import annotations

import itertools
import zlib

import numpy as np
import pytest
import reference as ref
from expert_cases import make_routes
from harness import (
    On,
    Run,
    assert_same_bits,
    assert_within,
    make_step,
    pack_params,
    plain_step,
    poisoned,
    run,
)
from tables import table

from akunu import ArgumentError, _core

GROUP = 64
BITS = (4, 8)
PARTS = ("codes", "scales", "biases")
ALL_BITS = (2, 3, 4, 5, 6, 8)
GROUPS = (32, 64, 128)
SCALES = ("f16", "bf16", "f32")
# Bits, group and type of scales, by the name of the format.
FORMATS = {
    f"mlx{bits}_{group}" + ("" if scale == "f16" else f"_{scale}"): (bits, group, scale)
    for bits, group, scale in itertools.product(ALL_BITS, GROUPS, SCALES)
}


def stored(values: np.ndarray, scale: str) -> tuple[np.ndarray, np.ndarray]:
    """Numbers as a plane has them, and what is left of them as float32."""
    if scale == "bf16":
        halves = (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        return halves, (halves.astype(np.uint32) << 16).view(np.float32)
    rounded = values.astype(np.float16 if scale == "f16" else np.float32)
    return rounded, rounded.astype(np.float32)


def packed(codes: np.ndarray, bits: int) -> np.ndarray:
    """Codes as a stream of bits in words, the lowest bit first."""
    stream = np.unpackbits(codes.astype(np.uint8)[..., None], axis=-1, bitorder="little")
    flat = np.ascontiguousarray(stream[..., :bits]).reshape(len(codes), -1)
    return np.packbits(flat, axis=-1, bitorder="little").view(np.uint32)


def mlx_weight(
    bits: int,
    n: int,
    k: int,
    rng: np.random.Generator,
    group: int = GROUP,
    scale: str = "f16",
    codes: np.ndarray | None = None,
) -> ref.Weight:
    """Random codes, scales and biases of both signs, some scales 0; `data` is a list of parts."""
    if codes is None:
        codes = rng.integers(0, 2**bits, (n, k), np.uint32)
    scales, biases = (rng.standard_normal((n, k // group)) * size for size in (2.0**-bits, 0.5))
    scales[rng.random(scales.shape) < 0.1] = 0
    parts = [stored(scales, scale), stored(biases, scale)]
    by_weight = [np.repeat(values, group, axis=1) for _, values in parts]
    values = by_weight[0] * codes.astype(np.float32) + by_weight[1]  # in float32, as mlx has it
    name = f"mlx{bits}_{group}" + ("" if scale == "f16" else f"_{scale}")
    return ref.Weight(
        name,
        [packed(codes, bits), *(part for part, _ in parts)],  # type: ignore[arg-type]
        values.astype(np.float64),
        (np.abs(by_weight[0] * codes) + np.abs(by_weight[1])).astype(np.float64),
        group,
    )


FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])


def mxfp4_weight(n: int, k: int, rng: np.random.Generator, exponents: np.ndarray) -> ref.Weight:
    """Random codes; `exponents` uint8 [n, k / 32]. As whole numbers codes are 0 to 24, less 12."""
    codes = rng.integers(0, 16, (n, k), np.uint32)
    scale = np.repeat(np.ldexp(1.0, exponents.astype(np.int32) - 127), 32, axis=1)
    scale[np.repeat(exponents == 255, 32, axis=1)] = np.nan
    values = FP4[codes] * scale
    parts = [packed(codes, 4), exponents]
    return ref.Weight("mlx_mxfp4", parts, values, np.abs(values) + 12 * scale, 32)  # type: ignore[arg-type]


def multiply(target, weight, x, *, row_class=""):
    out = poisoned((len(x.data), len(weight.values)))
    on = On(target, 2, x.kind, row_class=row_class)
    run(
        "matmul",
        [x.data, weight, out],
        pack_params("matmul", *weight.values.shape),
        plain_step(len(x.data)),
        on,
    )
    return out


def rows_of(target, rng, n, k):
    """Input rows in the kind that the device wants beside these formats."""
    return ref.make_activation(target.kind_of("mlx4_64"), rng.standard_normal((n, k)))


# What `mlx.core.quantize` (0.32) made of the sines of 0 to 63, rounded to half precision: codes,
# scale and bias; and the CRC-32 of what its `dequantize` gives back as float32.
MADE_BY_MLX = {
    2: ("827ff447bfe00bfdd11ff9827ff447bf", -0.5, 0xB94CC61B),
    3: ("035633505d217407cc5ea09a41e80a993b603503d5154257", -0.333251953125, 0x4DC22F10),
    5: (
        "7004c73f2d20e59f1330f5731706f45e92c0f6b707a0fbf50a64fe0e8570fcd30254fe3801533f6f",
        -0.0625,
        0xA35BC54B,
    ),
    6: (
        "5f316c768f2e8004fbb0042c686f6b43f1e5fb780417edb30ef0b0fe6c0508b9"
        "e75e316c777f2ac004fb6f042c686f6b",
        -0.032257080078125,
        0x26B5364F,
    ),
    4: (
        "1761ec2940eb4b20e96c11d78d02c5ae03a3ce0582dd1761ec2940eb4b30e96c",
        -0.142822265625,
        0x9F385D9,
    ),
    8: (
        "7f140c6ddff9a22c014bc4fec34a012ca4f9de6c0b1580eaf2901e065dd3fcb2"
        "39003cb5fdd159052093f3e97d130c6fe1f8a02a024dc6fec148012ea6fadd6a",
        -0.00787353515625,
        0x6A6EB701,
    ),
}


@table(bits=MADE_BY_MLX)
def test_what_mlx_wrote_is_read_as_mlx_reads_it(target, bits):
    codes, scale, checksum = MADE_BY_MLX[bits]
    data = [np.frombuffer(bytes.fromhex(codes), np.uint32), np.float16([scale]), np.float16([1])]
    table = ref.Weight(f"mlx{bits}_64", data, np.zeros((1, 64)), np.zeros((1, 64)), GROUP)  # type: ignore[arg-type]
    out = poisoned((1, 64))
    log = np.zeros((1, 1), np.uint32)
    params = pack_params("embed", 64, 1, 1, 1.0, 0)
    run("embed", [log, table, out], params, make_step([Run(0, 0, 1)]), On(target))
    assert zlib.crc32(out.tobytes()) == checksum
    assert np.abs(out[0] - np.sin(np.arange(64))).max() <= -scale


def test_what_mlx_wrote_in_mxfp4_is_read_as_mlx_reads_it(target):
    codes = "5016ed5a36ec3c56ea1d56d09e65d2be64b4de6295de5016ed5a36ec3c56ea1d"
    data = [np.frombuffer(bytes.fromhex(codes), np.uint32), np.uint8([0x7D, 0x7D])]
    table = ref.Weight("mlx_mxfp4", data, np.zeros((1, 64)), np.zeros((1, 64)), 32)  # type: ignore[arg-type]
    out = poisoned((1, 64))
    log = np.zeros((1, 1), np.uint32)
    params = pack_params("embed", 64, 1, 1, 1.0, 0)
    run("embed", [log, table, out], params, make_step([Run(0, 0, 1)]), On(target))
    assert out[0, :8].tolist() == [0, 0.75, 1, 0.125, -0.75, -1, -0.25, 0.75]
    assert zlib.crc32(out.tobytes()) == 0x5BE5A602


@table(
    bits=ALL_BITS,
    group=GROUPS,
    scale=SCALES,
    rows=[1, 5, 20],
    functions=("bits", "scale", "rows"),
)
def test_a_matmul_in_each_format_agrees_with_float64(target, rng, bits, group, scale, rows):
    weight = mlx_weight(bits, 9, 3 * 128, rng, group, scale)
    x = rows_of(target, rng, rows, 3 * 128)
    expected, bound = ref.matmul(weight, x, target.device)
    assert_within(multiply(target, weight, x), expected, bound)


@table({"n, k": [(1, 32), (9, 288), (37, 320)]}, rows=[1, 5, 20])
def test_a_matmul_in_mxfp4_agrees_with_float64(target, rng, n, k, rows):
    weight = mxfp4_weight(n, k, rng, rng.integers(118, 126, (n, k // 32), np.uint8))
    x = rows_of(target, rng, rows, k)
    expected, bound = ref.matmul(weight, x, target.device)
    assert_within(multiply(target, weight, x), expected, bound)


def test_scales_of_mxfp4_are_powers_of_two_and_the_last_is_no_number(target, rng):
    # Of sums of whole numbers those beyond 2^100 would not be numbers.
    exponents = np.repeat(np.uint8([*range(227), 255])[:, None], 2, axis=1)
    weight = mxfp4_weight(228, 64, rng, exponents)
    x = ref.make_activation(target.kind_of(weight.format), np.eye(3, 64) * 0.25)
    out = multiply(target, weight, x)
    expected = (0.25 * weight.values[:, :3].T).astype(np.float32)
    assert np.array_equal(out, expected, equal_nan=True)


@table(name=FORMATS)
def test_embed_gives_each_weight_as_float32_has_it(target, rng, name):
    bits, group, scale = FORMATS[name]
    table = mlx_weight(bits, 11, 3 * 128, rng, group, scale)
    log = rng.permutation(11).astype(np.uint32)[None]
    out = poisoned((11, 3 * 128))
    step = make_step([Run(0, 0, 11)])
    run("embed", [log, table, out], pack_params("embed", 384, 11, 11, 2.0, 0), step, On(target, 2))
    assert_same_bits(out, table.values.astype(np.float32)[log[0]] * np.float32(2))


@table({"n, k": [(1, 64), (11, 448), (70, 192)]}, bits=BITS, rows=[1, 3, 16, 70])
def test_matmul_agrees_with_float64(target, rng, bits, n, k, rows):
    weight = mlx_weight(bits, n, k, rng)
    x = rows_of(target, rng, rows, k)
    expected, bound = ref.matmul(weight, x, target.device)
    assert target.kind_of(weight.format) == target.kind_of(weight.format, "many") == x.kind
    assert_within(multiply(target, weight, x), expected, bound)


@table(bits=ALL_BITS, rows=[1, 7, 70], functions=("bits", "rows"))
def test_codes_and_inputs_at_their_ends_fit_the_sums(target, rng, bits, rows):
    """As int16, inputs are up to 2^13 in size, and as two bytes up to 64."""
    codes = np.zeros((40, 256), np.uint32)
    codes[::2] = 2**bits - 1
    codes[1::4, ::2] = 2**bits - 1
    weight = mlx_weight(bits, 40, 256, rng, codes=codes)
    ends = np.array([8192, 8127, 8128, 8063, 64, 63, 0]) * 2.0**-11
    signs = np.where(np.arange(rows)[:, None] % 3, 1, rng.choice([-1, 1], (rows, 256)))
    numbers = rng.choice(ends, (rows, 256)) * signs
    numbers[:, ::32] = 8191.5 * 2.0**-11  # below 4: the scale is 2^-11, and the code 8192
    x = ref.make_activation(target.kind_of(weight.format), numbers)
    expected, bound = ref.matmul(weight, x, target.device)
    assert_within(multiply(target, weight, x), expected, bound)


@table(bits=BITS)
def test_a_row_alone_has_the_bits_that_it_has_among_others(target, rng, bits):
    weight = mlx_weight(bits, 33, 192, rng)
    x = rows_of(target, rng, 16, 192)
    together = multiply(target, weight, x, row_class="few")
    for r in (0, 7, 15):
        alone = ref.Activation(x.kind, x.data[r : r + 1], x.values[r : r + 1])
        assert_same_bits(multiply(target, weight, alone), together[r : r + 1])


@table(rows=[2, 20], formats=[(4, 8), (8, 4, 4)])
def test_each_weight_of_a_group_has_planes_of_its_own(target, rng, formats, rows):
    """Query, key and value of a model are in formats of their own; biases of the matmul are beside
    those of the weights."""
    ns = (40, 16, 24)[: len(formats)]
    weights = [mlx_weight(bits, n, 128, rng) for bits, n in zip(formats, ns, strict=True)]
    x = rows_of(target, rng, rows, 128)
    outs = [poisoned((rows, n)) for n in ns]
    added = [rng.standard_normal(n).astype(np.float32) for n in ns]

    def three(values):
        return [*values, None][:3]

    run(
        "matmul_group",
        [x.data, *three(weights), *three(added), *three(outs)],
        pack_params("matmul_group", 128, *ns, *([0] * (3 - len(ns)))),
        plain_step(rows),
        On(target, 2, x.kind),
    )
    for weight, bias, out in zip(weights, added, outs, strict=True):
        assert_same_bits(out, multiply(target, weight, x) + bias)


@table(bits=ALL_BITS, scale=SCALES, rows=[1, 6, 20], functions=("bits", "scale", "rows"))
def test_a_group_in_each_format_is_its_matmuls(target, rng, bits, scale, rows):
    weights = [mlx_weight(bits, n, 128, rng, GROUP, scale) for n in (40, 24)]
    x = rows_of(target, rng, rows, 128)
    outs = [poisoned((rows, len(weight.values))) for weight in weights]
    operands = [x.data, *weights, None, None, None, None, *outs]
    params = pack_params("matmul_group", 128, 40, 24, 0)
    run("matmul_group", operands, params, plain_step(rows), On(target, 2, x.kind))
    for weight, out in zip(weights, outs, strict=True):
        assert_same_bits(out, multiply(target, weight, x))


@table(bits=ALL_BITS, scale=SCALES, rows=[1, 6, 50], functions=("bits", "scale", "rows"))
def test_experts_in_each_format_agree_with_float64(target, rng, bits, scale, rows):
    n_experts, n, k = 3, 40, 128
    weight = mlx_weight(bits, n_experts * n, k, rng, GROUP, scale)
    check_experts(target, rng, weight, n_experts, rows)


@table(rows=[1, 6, 50], functions=("rows",))
def test_experts_in_mxfp4_agree_with_float64(target, rng, rows):
    weight = mxfp4_weight(3 * 40, 128, rng, rng.integers(118, 126, (3 * 40, 4), np.uint8))
    check_experts(target, rng, weight, 3, rows)


def check_experts(target, rng, weight, n_experts, rows):
    n, k = len(weight.values) // n_experts, weight.values.shape[1]
    x = rows_of(target, rng, rows, k)
    routes = make_routes(rng, rows, n_experts, 1, "even")
    out = poisoned((rows, n))
    params = pack_params("expert_matmul", n, k, n_experts, 1, 1)
    operands = [x.data, weight, routes, None, out]
    run("expert_matmul", operands, params, plain_step(rows), On(target, 2, x.kind))
    own = routes["expert"] * n + np.arange(n)
    expected, bound = (np.take_along_axis(each, own, 1) for each in ref.matmul(weight, x))
    assert_within(out, expected, bound)


def test_matmul_add_adds_to_what_is_there(target, rng):
    weight = mlx_weight(4, 20, 128, rng)
    x, data = rows_of(target, rng, 5, 128), rng.standard_normal((5, 20)).astype(np.float32)
    expected = data + multiply(target, weight, x)
    run(
        "matmul_add", [x.data, weight, data], pack_params("matmul_add", 20, 128), plain_step(5),
        On(target, 2, x.kind),
    )  # fmt: skip
    assert_same_bits(data, expected)


@table(part=range(3))
def test_a_part_of_another_size_is_named(target, rng, part):
    weight = mlx_weight(4, 6, 128, rng)
    weight.data[part] = weight.data[part][:-1]
    where = ["bytes, expected", "bytes in part 1, expected", "bytes in part 2, expected"][part]
    with pytest.raises(ArgumentError, match=rf"mlx4_64 \[6, 128\]\) has \d+ {where} rows of"):
        multiply(target, weight, rows_of(target, rng, 1, 128))


def test_no_operand_lies_where_planes_are():
    """Slots 14 to 22: three for each of three weights (plane_slot of core/operation.h)."""
    assert max(len(operation["operands"]) for operation in _core.operations()) <= 14
    slots = [
        14 + 3 * weight + plane - 1 for weight, plane in itertools.product(range(3), (1, 2, 3))
    ]
    assert slots == list(range(14, 23))
