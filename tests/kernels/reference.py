"""What every operation means: NumPy in float64, from the same rounded inputs as the kernel's.

Each function returns the exact result and a bound on the error of a float32 evaluation, derived
from the number of roundings that a term passes through. UNIT is half a unit in the last place.
"""

from __future__ import annotations

import itertools
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
from remembered import remembered
from rounded_inputs import (
    ON_WARPGROUPS,
    error_on_streams,
    is_streamed,
    rounding_on_warpgroups,
)
from tools.block_formats import FORMATS, Blocks, make_blocks, random_blocks

UNIT = 2.0**-24
TINY = 2.0**-149  # the smallest float32: results below the normal numbers are rounded to it
LANES = 8

Array = np.ndarray


def growth(roundings: float) -> float:
    """The relative error of a term after so many roundings."""
    return roundings * UNIT / (1 - roundings * UNIT)


# --- Formats --------------------------------------------------------------------------------------


FLOAT_FORMATS = ("f32", "f16", "bf16")
BLOCK_FORMATS = tuple(FORMATS)
ALL_FORMATS = FLOAT_FORMATS + BLOCK_FORMATS
# One of each family of kernels: where a test is not about formats, the others run nightly.
FAMILIES = ("f16", "q4_0", "q8_0", "q4_k", "q6_k", "iq4_nl", "iq2_s")
# Codes are places in a table, or rows of a grid.
TABLE_FORMATS = tuple(name for name in FORMATS if name.startswith(("iq", "mxfp", "nvfp")))


@dataclass
class Weight:
    """A weight as the file has it (`data`), and its values."""

    format: str
    data: Array  # uint8 [n, row_bytes]
    values: Array  # float64 [n, k]
    # What a product adds in float32 before anything cancels: codes and minima go apart.
    magnitude: Array  # float64 [n, k]
    block: int  # weights that take one float addition together


def to_bfloat16(values: Array) -> Array:
    """The nearest bfloat16 (half to even) as uint16; one NaN of all."""
    bits = values.astype(np.float32).view(np.uint32)
    nearest = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), nearest)


def float_weight(format_name: str, values: Array) -> Weight:
    """Values rounded to f32, f16 or bf16."""
    if format_name == "bf16":
        stored = to_bfloat16(values)
        exact = from_bfloat16(stored)
    else:
        stored = values.astype(np.float32 if format_name == "f32" else np.float16)
        exact = stored.astype(np.float64)
    data = np.ascontiguousarray(stored).view(np.uint8).reshape(len(values), -1)
    return Weight(format_name, data, exact, np.abs(exact), 1)


def block_weight(blocks: Blocks) -> Weight:
    """Blocks as a weight."""
    magnitude = np.abs(blocks.scales * blocks.multiples) + np.abs(blocks.minima)
    return Weight(blocks.format.name, blocks.data, blocks.values, magnitude, 32)


def pack_weight(format_name: str, parts: Array | tuple[Array, Array]) -> Weight:
    """From values, or from (d [n, blocks], codes [n, k]); codes of q8_0 are -128..127."""
    if format_name in FLOAT_FORMATS:
        assert isinstance(parts, np.ndarray)
        return float_weight(format_name, parts)
    d, codes = parts
    return block_weight(make_blocks(format_name, codes + 128 * (format_name == "q8_0"), d))


@remembered
def random_weight(format_name: str, n: int, k: int, rng: np.random.Generator) -> Weight:
    """Weights of the usual size, with scales that are zero, subnormal or negative in between."""
    if format_name in FLOAT_FORMATS:
        values = rng.standard_normal((n, k)) / np.sqrt(k)
        values[rng.random((n, k)) < 0.02] = 0
        values[rng.random((n, k)) < 0.02] *= 2.0**-20
        return float_weight(format_name, values)
    return block_weight(random_blocks(format_name, n, k, rng, size=4 / np.sqrt(k)))


@remembered
def extreme_blocks(format_name: str) -> Blocks:
    """256 weights a row: every pair of halves, with codes, scales and minima at their ends."""
    made = FORMATS[format_name]
    halves = [0.0, -0.0, 2.0**-24, -(2.0**-24), 2.0**-14, 1.0, 65504.0, -65504.0, np.inf, np.nan]
    if format_name == "mxfp4":
        halves = [2.0**-128, 2.0**-127, 2.0**-126, 1.0, 2.0**126, 2.0**127]
    elif made.d is not None:
        halves = [made.d]
    cases = list(itertools.product(halves, halves if made.minimum_sign else [0.0], range(4)))
    groups = 256 // made.group
    d, m = (np.repeat([[case[i]] for case in cases], 256 // made.block, axis=1) for i in (0, 1))
    which = np.array([case[2] for case in cases])[:, None]
    column, group = np.arange(256)[None, :], np.arange(groups)[None, :]
    # All codes 0, all at the top, both in turns, each code after the other.
    top = made.levels - 1
    each = (37 * column + np.arange(len(cases))[:, None]) % made.levels
    codes = np.choose(which, [0 * column, 0 * column + top, column % 2 * top, each])

    def ends(low: int, high: int) -> Array:
        # Both ends in both orders, then everything between.
        between = low + group * (7 if high < 1000 else 5477) % (high - low + 1)
        choices = [0 * group + high, 0 * group + low, np.where(group % 2, low, high), between]
        return np.choose(which, choices)

    return make_blocks(
        format_name, codes, d, scale=ends(*made.scales), m=m, minimum=ends(*made.minima)
    )


# --- Activation kinds -----------------------------------------------------------------------------


@dataclass
class Activation:
    """Rows in an activation kind: the bytes, and the values they stand for."""

    kind: str
    data: Array  # float32 [rows, k], uint8 (q8_32, q16_32) or uint16 (bf16...) [rows, bytes or so]
    values: Array  # float64 [rows, k]


def activation_array(kind: str, rows: int, k: int) -> Array:
    """A poisoned output of that kind."""
    if kind == "f32":
        out = np.empty((rows, k), np.float32)
    elif kind == "bf16":
        out = np.empty((rows, bf16_width(k)), np.uint16)
    elif kind == "bf16_pair":
        out = np.empty((rows, 32 * (-(-k // 32) * 2 + 1)), np.uint16)
    elif kind == "q16_32":
        out = np.empty((rows, -(-k // 32) * 68), np.uint8)
    else:
        out = np.empty((rows, k + k // 32 * 8), np.uint8)
    out.view(np.uint8)[...] = 0xFF
    return out


def bf16_width(k: int) -> int:
    """Numbers of a row of bf16: an odd number of lines of 32."""
    return 32 * (-(-k // 32) | 1)


def from_bfloat16(stored: Array) -> Array:
    """float64 of bfloat16 as uint16."""
    return (stored.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def nearest_bfloat16(values: Array) -> Array:
    """float64 of the bfloat16 next to float32s."""
    return from_bfloat16(to_bfloat16(values))


def pair_bfloat16(x: Array) -> Array:
    """float32 [...] as two bfloat16 [..., 2]: the nearest one, and that of what is left."""
    first = to_bfloat16(x)
    with np.errstate(invalid="ignore"):
        rest = (x.astype(np.float32) - from_bfloat16(first)).astype(np.float32)
    return np.stack([first, to_bfloat16(np.where(np.isfinite(rest), rest, 0))], axis=-1)


def split_bf16_pair(data: Array, k: int) -> tuple[Array, Array]:
    """The first and the second numbers of rows of bf16_pair, float64 [rows, k] each."""
    lines = data[:, :-32].reshape(len(data), -1, 2, 32).swapaxes(1, 2).reshape(len(data), 2, -1)
    numbers = from_bfloat16(lines)
    return numbers[:, 0, :k], numbers[:, 1, :k]


def split_q8_32(data: Array, k: int) -> tuple[Array, Array, Array]:
    """int8 q [rows, k], float32 scale [rows, k / 32], int16 sum [rows, k / 16]."""
    groups = k // 32
    q = np.ascontiguousarray(data[:, :k]).view(np.int8)
    scale = np.ascontiguousarray(data[:, k : k + 4 * groups]).view(np.float32)
    total = np.ascontiguousarray(data[:, k + 4 * groups :]).view(np.int16)
    return q, scale, total


def quantize_q8_32(x: Array) -> Activation:
    """The rounding of docs/kernels.md, in float32 step by step."""
    x = x.astype(np.float32)
    rows, k = x.shape
    groups = x.reshape(rows, k // 32, 32)
    with np.errstate(all="ignore"):
        scale = np.abs(groups).max(axis=2) / np.float32(127)
        reciprocal = np.float32(1) / scale
    usable = np.isfinite(reciprocal)
    scale = np.where(usable, scale, np.float32(0))
    factor = np.where(usable, reciprocal, np.float32(0))
    q = np.rint(groups * factor[..., None]).astype(np.int8)
    total = q.reshape(rows, k // 16, 16).sum(axis=2, dtype=np.int16)
    data = np.concatenate(
        [q.reshape(rows, k).view(np.uint8), scale.view(np.uint8), total.view(np.uint8)], axis=1
    )
    values = (q.astype(np.float64) * scale.astype(np.float64)[..., None]).reshape(rows, k)
    return Activation("q8_32", np.ascontiguousarray(data), values)


def split_q16_32(data: Array, k: int) -> tuple[Array, Array]:
    """int16 q [rows, groups, 32] and float32 scale [rows, groups]."""
    groups = -(-k // 32)
    q = np.ascontiguousarray(data[:, : 64 * groups]).view(np.int16)
    scale = np.ascontiguousarray(data[:, 64 * groups :]).view(np.float32)
    return q.reshape(len(data), groups, 32), scale


def round_q16_32(x: Array) -> tuple[Array, Array]:
    """Whole float64 [rows, groups, 32], and float64 [rows, groups] that they are to be scaled with.

    Zeros fill the last group up. One that holds what is not finite has a scale that is no number.
    """
    rows, k = x.shape
    groups = np.pad(x, ((0, 0), (0, -k % 32))).reshape(rows, -1, 32)
    largest = np.abs(groups).max(axis=2)
    finite = np.isfinite(largest)
    exponent = np.frexp(np.where(finite, largest, 1))[1] - 1
    scale = 2.0 ** (np.maximum(np.where(largest == 0, -126, exponent), -114) - 12)
    q = np.rint(np.where(finite[..., None], groups, 0) / scale[..., None])
    return q, np.where(finite, scale, np.nan)


def make_activation(kind: str, x: Array) -> Activation:
    if kind == "q8_32":
        return quantize_q8_32(x)
    if kind == "q16_32":
        q, scale = round_q16_32(x.astype(np.float32).astype(np.float64))
        parts = q.astype(np.int16).reshape(len(x), -1), scale.astype(np.float32)
        data = np.concatenate([part.view(np.uint8) for part in parts], axis=1)
        values = (q * scale[..., None]).reshape(len(x), -1)[:, : x.shape[1]]
        return Activation(kind, np.ascontiguousarray(data), values)
    if kind == "bf16":
        data = np.zeros((len(x), bf16_width(x.shape[1])), np.uint16)
        data[:, : x.shape[1]] = to_bfloat16(x)
        return Activation(kind, data, from_bfloat16(data[:, : x.shape[1]]))
    if kind == "bf16_pair":
        rows, k = x.shape
        lines = np.zeros((rows, -(-k // 32), 2, 32), np.uint16)
        numbers = pair_bfloat16(np.pad(x, ((0, 0), (0, -k % 32))))
        lines[...] = numbers.reshape(rows, -1, 32, 2).swapaxes(2, 3)
        data = np.pad(lines.reshape(rows, -1), ((0, 0), (0, 32)))
        first, second = split_bf16_pair(data, k)
        return Activation(kind, data, first + second)
    stored = np.ascontiguousarray(x.astype(np.float32))
    return Activation("f32", stored, stored.astype(np.float64))


def assert_activation(kind: str, actual: Array, expected: Array, bound: Array) -> None:
    """`actual` is kind(expected), where `expected` is known to `bound` before that rounding."""
    if kind == "f32":
        error = np.abs(actual.astype(np.float64) - expected)
        assert (error <= bound).all(), f"worst error / bound: {np.nanmax(error / bound)}"
        return
    rows, k = expected.shape
    if kind == "bf16":
        slack = np.broadcast_to(bound, expected.shape)
        low, high = nearest_bfloat16(expected - slack), nearest_bfloat16(expected + slack)
        stored = from_bfloat16(actual[:, :k])
        assert ((stored >= low) & (stored <= high)).all()
        assert (actual[:, k:] == 0).all(), "a row ends with zeros"
        return
    if kind == "bf16_pair":
        first, second = split_bf16_pair(actual, k)
        # Half a unit in the last place of the second number, which is at most 2^-9 of the first.
        slack = bound + np.abs(expected) * 2.0**-17 + 2.0**-126
        assert (np.abs(first + second - expected) <= slack).all()
        assert (np.abs(second) <= np.abs(first) * 2.0**-8).all(), "the first one is the nearest"
        for numbers in split_bf16_pair(actual, -(-k // 32) * 32):
            assert (numbers[:, k:] == 0).all(), "lines end with zeros"
        assert (actual[:, -32:] == 0).all(), "a row ends with zeros"
        return
    if kind == "q16_32":
        q, scale = split_q16_32(actual, k)
        near = np.stack([np.abs(expected) - bound, np.abs(expected) + bound])
        low, high = (round_q16_32(np.maximum(each, 0))[1] for each in near)
        assert ((scale >= low) & (scale <= high)).all(), "the largest number's power of two"
        assert (np.frexp(scale)[0] == 0.5).all(), "a power of two"
        values = (q * scale.astype(np.float64)[..., None]).reshape(rows, -1)
        half_a_code = np.repeat(scale.astype(np.float64), 32, axis=1) / 2
        slack = bound + half_a_code[:, :k] * (1 + 2.0**-40)
        assert (np.abs(values[:, :k] - expected) <= slack).all(), "a code is off"
        assert (values[:, k:] == 0).all(), "the last group is filled up with zeros"
        return
    q, scale, total = split_q8_32(actual, k)
    grouped = expected.reshape(rows, k // 32, 32)
    slack = np.broadcast_to(bound, expected.shape).reshape(grouped.shape)
    exact_scale = np.abs(grouped).max(axis=2) / 127
    scale_bound = slack.max(axis=2) / 127 + exact_scale * growth(1) + TINY
    assert (np.abs(scale - exact_scale) <= scale_bound).all()
    assert (total == q.reshape(rows, k // 16, 16).sum(axis=2, dtype=np.int32)).all()
    normal = exact_scale > 2.0**-126
    safe = np.where(normal, exact_scale, 1)[..., None]
    codes = grouped / safe
    # Where a code may fall: the number's own error, the scale's, two roundings.
    reach = slack / safe + np.abs(codes) * (scale_bound[..., None] / safe + growth(3)) + 2.0**-140
    low, high = np.rint(codes - reach), np.rint(codes + reach)
    stored = q.reshape(grouped.shape).astype(np.float64)
    fits = (stored >= low) & (stored <= high)
    assert (fits | ~normal[..., None]).all(), "a code is off, and not by a tie"
    # Only codes near a tie are uncertain: the test must not have become one of anything.
    assert (high - low).max(initial=0) <= 1


# --- Operations -----------------------------------------------------------------------------------


@remembered
def matmul(weight: Weight, activation: Activation, device: str = "") -> tuple[Array, Array]:
    """float64 [rows, n]. Floats: eight lanes take k in order, then meet. Codes: group by group.

    "cuda" rounds inputs of its own accord, by the GPU that is here.
    """
    if activation.kind == "bf16":
        return matmul_bf16(weight, activation)
    if activation.kind == "bf16_pair":
        return matmul_bf16_pair(weight, activation)
    if activation.kind == "q16_32" and weight.block == 1:
        return matmul_q16_32(weight, activation)
    values = activation.values @ weight.values.T
    k = weight.values.shape[1]
    magnitude = np.abs(activation.values) @ weight.magnitude.T
    if activation.kind == "q8_32":
        return values, growth(roundings_of_codes(weight.format, k)) * magnitude + k * TINY
    if activation.kind == "q16_32":
        # A group's sum becomes a float, meets its scale and its bias, and is added.
        return values, growth(k // 32 + 5) * magnitude + k * TINY
    # Additions in a lane, three to join the lanes, the product. Codes that become floats first: a
    # product of scales, the product with the code, the minimum.
    roundings = -(-k // LANES) + 3 + 2 + (0 if weight.block == 1 else 3)
    bound = growth(roundings) * magnitude + k * TINY
    if device != "cuda":
        return values, bound
    if ON_WARPGROUPS and len(values) > 16:
        bound += rounding_on_warpgroups(weight, activation.values)
    if is_streamed(weight.format, k) and len(values) <= 16:
        bound += error_on_streams(weight, activation.values)
    return values, bound


def roundings_of_codes(format_name: str, k: int) -> int:
    """Additions to the sum, and what a term went through before. Where multiply-adds round twice,
    the products with the input's scale and with a super-block's factor are roundings too."""
    made = FORMATS[format_name]
    if made.block < 256:  # before it is added: the products with its scales, the minimum
        return k // 32 + 2 + (1 if made.group == 32 else 2)
    # A super-block adds its groups up first. Their sum and each minimum are added.
    minima = 0 if made.minimum_sign == 0 else made.block // made.group
    return made.block // 32 + k // made.block * (1 + minima) + 2


def matmul_bf16(weight: Weight, activation: Activation) -> tuple[Array, Array]:
    """Weights are rounded to bf16 as well; then products are exact, and summed one by one.

    A matrix unit takes numbers below the normal ones for zero, and makes zeros of them.
    """
    tiny = 2.0**-126
    k = weight.values.shape[1]
    # Before it is rounded, a weight passes through four roundings in float32; floats through none.
    error = 0 if weight.block == 1 else growth(4) * weight.magnitude + TINY
    rounded = nearest_bfloat16(weight.values)
    reach = np.maximum(
        nearest_bfloat16(weight.values + error) - rounded,
        rounded - nearest_bfloat16(weight.values - error),
    )
    reach = np.maximum(reach, np.where(np.abs(weight.values) < 2 * tiny, tiny, 0))
    size = np.abs(activation.values)
    bound = size @ reach.T + growth(k + 2) * (size @ np.abs(rounded).T)
    return activation.values @ rounded.T, bound + k * tiny * (2 + np.abs(rounded).max())


def matmul_bf16_pair(weight: Weight, activation: Activation) -> tuple[Array, Array]:
    """Sums of two numbers times sums of two, less the product of both second ones."""
    k = weight.values.shape[1]
    _, input_rest = split_bf16_pair(activation.data, k)
    weight_rest = weight.values - nearest_bfloat16(weight.values)
    expected = activation.values @ weight.values.T - input_rest @ weight_rest.T
    # Three products for each of k, each exact; a first number is at most 1 + 2^-8 times the sum.
    bound = growth(3 * k + 2) * 1.02 * (np.abs(activation.values) @ weight.magnitude.T)
    tiny = 2.0**-126  # as in matmul_bf16
    return expected, bound + k * tiny * (3 + np.abs(weight.values).max())


def matmul_q16_32(weight: Weight, activation: Activation) -> tuple[Array, Array]:
    """Weights are rounded as the input is; a group's sum is exact, and then one float of many."""
    k = weight.values.shape[1]
    q, scale = round_q16_32(weight.values)
    rounded = (q * scale[..., None]).reshape(len(q), -1)[:, :k]
    magnitude = np.abs(activation.values) @ np.abs(rounded).T
    return activation.values @ rounded.T, growth(-(-k // 32) + 5) * magnitude + k * TINY


def inverse_rms(x: Array, epsilon: float) -> tuple[Array, float]:
    """1 / sqrt(mean + epsilon) over the last axis, and its relative error."""
    dim = x.shape[-1]
    value = 1 / np.sqrt((x**2).mean(axis=-1, keepdims=True) + np.float64(np.float32(epsilon)))
    # the sum, half of it after the root, then mean, epsilon, root, reciprocal
    return value, growth((dim / LANES + 8) / 2 + 4)


def rms_norm(x: Array, weight: Array, epsilon: float) -> tuple[Array, Array]:
    factor, relative = inverse_rms(x.astype(np.float64), epsilon)
    values = x.astype(np.float64) * factor * weight.astype(np.float64)
    return values, np.abs(values) * (relative + growth(2)) + 2 * TINY


def rope(data: Array, angles: Array, n_pairs: int, style: int) -> tuple[Array, Array]:
    """`data` [rows, heads, head_dim], `angles` [rows, 2 n_pairs]; style 0 interleaved, 1 halves."""
    values = data.astype(np.float64).copy()
    bound = np.zeros_like(values)
    cosine = angles[:, 0::2].astype(np.float64)[:, None, :]
    sine = angles[:, 1::2].astype(np.float64)[:, None, :]
    first = np.arange(n_pairs) if style == 1 else 2 * np.arange(n_pairs)
    second = first + n_pairs if style == 1 else first + 1
    a, b = values[..., first].copy(), values[..., second].copy()
    values[..., first] = a * cosine - b * sine
    values[..., second] = b * cosine + a * sine
    bound[..., first] = growth(2) * (np.abs(a * cosine) + np.abs(b * sine)) + 2 * TINY
    bound[..., second] = growth(2) * (np.abs(b * cosine) + np.abs(a * sine)) + 2 * TINY
    return values, bound


def gated_activation(gate: Array, up: Array, activation: int) -> tuple[Array, Array]:
    """0: silu, 1: gelu_tanh, 6: sigmoid. Of exp 2 ulp = 4 units, times its share of 1 + e."""
    x, other = gate.astype(np.float64), up.astype(np.float64)
    with np.errstate(over="ignore"):
        if activation != 1:
            exponent, exponent_error = -x, np.zeros_like(x)
        else:
            exponent = -2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)
            exponent_error = growth(7) * np.abs(exponent)  # four products, a sum, two constants
        share = 1 / (1 + np.exp(-exponent))
        act = (1 if activation == 6 else x) / (1 + np.exp(exponent))
    values = act * other
    relative = share * (growth(4) + np.minimum(exponent_error, 1)) + growth(3)
    # Past 88.7 the exponential is infinite and the result 0 instead of up to 89 * 2^-126.
    return values, np.abs(values) * relative + np.abs(other) * 2.0**-119 + 2 * TINY


def page_offsets(step, sequence: int, positions: Array) -> tuple[Array, Array]:
    """(page, position in the page) of each position of a sequence."""
    table = step.pages[step.page_base + sequence * step.page_stride :]
    return table[positions // 256], positions % 256


@dataclass(frozen=True)
class AttentionShape:
    n_heads: int
    n_kv_heads: int
    head_dim: int
    window: int = 0
    soft_cap: float = 0.0

    @property
    def scale(self) -> float:
        return float(np.float32(1 / np.sqrt(self.head_dim)))


@remembered
def attention(
    shape: AttentionShape,
    query: Array,
    keys: Array,
    values: Array,
    step,
    *,
    kind: str = "f32",
    sinks: Array | None = None,
) -> tuple[Array, Array]:
    """`query` [rows, n_heads * head_dim]; caches [page, kv_head, 256, head_dim]; `sinks` [n_heads].

    `kind`: with bf16, query, keys, values and weights are rounded to it before they are multiplied;
    with bf16_pair they are sums of two such numbers, with q16_32 whole ones times powers of two;
    with f16, query and weights are rounded to halves.
    """
    if kind == "f32" and attends_on_warpgroups(shape, keys, len(step.rows)) and sinks is None:
        kind = "f16"
    if kind == "bf16":
        with np.errstate(invalid="ignore"):
            query, keys, values = map(nearest_bfloat16, (query, keys, values))
    out = np.zeros(query.shape)
    bound = np.zeros(query.shape)
    group = shape.n_heads // shape.n_kv_heads
    for r, row in enumerate(step.rows):
        end = int(row["kv_length"])
        begin = max(0, int(row["position"]) + 1 - shape.window) if shape.window else 0
        pages, places = page_offsets(step, int(row["sequence"]), np.arange(begin, end))
        n_pages = (end - 1) // 256 - begin // 256 + 1
        for h in range(shape.n_heads):
            part = slice(h * shape.head_dim, (h + 1) * shape.head_dim)
            q = query[r, part].astype(np.float64)
            k = keys[pages, h // group, places].astype(np.float64)
            v = values[pages, h // group, places].astype(np.float64)
            if kind == "q16_32":
                result = attend_in_codes(shape, q, k, v, n_pages, np.arange(begin, end) // 32)
            else:
                sink = None if sinks is None else float(sinks[h])
                result = attend(shape, q, k, v, n_pages, kind, sink=sink)
            out[r, part], bound[r, part] = result
    return out, bound


def attends_on_warpgroups(shape: AttentionShape, keys: Array, n_rows: int) -> bool:
    return (
        ON_WARPGROUPS
        and n_rows > 16
        and keys.dtype == np.float16
        and shape.head_dim in (64, 128)
        and not shape.soft_cap
    )


def attend_in_codes(
    shape: AttentionShape, q: Array, k: Array, v: Array, n_pages: int, step: Array
) -> tuple[Array, Array]:
    """One head; `step` [positions]: which of them share the scale of their weights' codes."""
    both = np.concatenate([q[None], k])
    codes, scale = round_q16_32(both)
    both = (codes * scale[..., None]).reshape(len(both), -1)[:, : shape.head_dim]
    exponent = np.frexp(np.abs(v).max(axis=1))[1] - 1
    value_scale = 2.0 ** (np.maximum(np.where((v == 0).all(axis=1), -24, exponent), -24) - 12)
    v = np.rint(v / value_scale[:, None]) * value_scale[:, None]
    return attend(shape, both[0], both[1:], v, n_pages, "q16_32", coded=(value_scale, step))


def attend(
    shape: AttentionShape,
    q: Array,
    k: Array,
    v: Array,
    n_pages: int,
    kind: str,
    *,
    coded: tuple[Array, Array] | None = None,
    in_order: bool = False,
    sink: float | None = None,
) -> tuple[Array, Array]:
    """One head over its positions; see `attention`. `sink`: a score more, which has no value.

    `coded`: each position's scale of its value, and its step, whose weights share theirs.
    `in_order`: a score's products are summed one by one, not in eight lanes.
    """
    scores = (k @ q) * shape.scale
    magnitude = (np.abs(k) @ np.abs(q)) * shape.scale
    # A matrix unit sums the products one by one. Of two pairs it takes three products: what the
    # query loses, and the product of the rests, are at most 2^-17 each.
    terms = {"f32": shape.head_dim / LANES, "bf16": shape.head_dim, "bf16_pair": 3 * shape.head_dim}
    terms["q16_32"] = shape.head_dim / 32 + 1
    terms["f16"] = terms["f32"]
    if in_order:
        terms["f32"] = shape.head_dim
    error = (growth(terms[kind] + 6) + (kind == "bf16_pair") * 2.0**-16) * magnitude
    if kind == "f16":
        smallest = np.abs(q).max() * np.abs(k).sum(axis=1) * shape.scale
        error = error + 2.0**-11 * magnitude + 2.0**-38 * smallest
    if shape.soft_cap:
        scores = shape.soft_cap * np.tanh(scores / shape.soft_cap)
        error = error + growth(8) * np.abs(scores)  # tanh 3 ulp, quotient, product
    largest = scores.max() if sink is None else max(scores.max(), sink)
    weights = np.exp(scores - largest)
    beside = 0.0 if sink is None else np.exp(sink - largest)
    total = weights.sum() + beside
    weights /= total
    # Relative error of a weight: its score's, the maximum's (two subtractions, each rounded), two
    # exponentials of 4 units; then the sums: 256 terms a page, three roundings a page to merge.
    relative = error + error[scores.argmax()] + growth(2) * np.abs(scores - largest) + growth(8)
    relative = relative + growth(256 + 8 * n_pages + 4)
    if sink is not None:
        # As that of a weight, of which the sum that all are divided by has this much.
        of_sink = error[scores.argmax()] + growth(2) * abs(sink - scores.max()) + growth(8)
        relative = relative + beside / total * of_sink
    # Weights, after the sum that they are divided by.
    relative = relative + {"bf16": 2.0**-8, "bf16_pair": 2.0**-16, "f16": 2.0**-11}.get(kind, 0)
    result = weights @ v
    spread = (weights * relative) @ np.abs(v)
    if kind == "f16":
        spread = spread + 2.0**-38 * np.abs(v).sum(axis=0)
    elif kind != "f32":
        spread = spread + 2.0**-126 * (1 + np.abs(v).sum(axis=0))  # too small to be normal
    if coded is not None:
        # A weight's code is off by a half, which is 2^-13 of the largest of 32 weights at most,
        # each with the scale of its value.
        scale, step = coded
        scaled = weights * scale
        starts = np.flatnonzero(np.diff(step, prepend=-1))  # steps are in order
        shared = np.repeat(np.maximum.reduceat(scaled, starts), np.diff(starts, append=len(step)))
        spread = spread + (2.0**-13 * (1 + 2.0**-10) * shared / scale) @ np.abs(v)
    return result, spread + np.abs(result) * (weights @ relative) + 2 * TINY
