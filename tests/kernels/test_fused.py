"""Every fused kernel against its own sequence, on the same random operands.

The sequence runs as unfused operations on the same device. All of them are stated to be equal bit
for bit: a fused kernel calls what the unfused ones call, on the same numbers.
"""

from __future__ import annotations

import numpy as np
import pytest
import reference as ref
from harness import (
    On,
    Run,
    Step,
    Target,
    assert_same_bits,
    make_step,
    pack_params,
    plain_step,
    poisoned,
    row_class_of,
    run,
)
from tables import table

DTYPE = {"f32": np.float32, "f16": np.float16}


GROUPS = [
    (("f32",), (False,)),
    (("f16", "f32"), (True, False)),
    (("f16", "f16", "f16"), (True, True, True)),
    (("f32", "f16", "f32"), (False, True, False)),
    (("q8_0",), (True,)),
    (("q4_0", "q8_0"), (False, False)),
    (("q4_0", "q4_0", "q8_0"), (True, True, True)),
    (("q8_0", "q4_0", "q4_0"), (False, False, True)),
    (("q4_k", "q4_k", "q6_k"), (False, True, False)),
    (("q3_k", "q5_0", "q2_k"), (True, False, False)),
    (("bf16", "f32", "f16"), (False, False, True)),
    (("q5_k", "q5_1", "q4_1"), (False, False, False)),
    # A launch takes weights in one format, or in two of these.
    *(((name, name), (False, True)) for name in ("q6_k", *ref.TABLE_FORMATS)),
    (("q2_k", "q3_k"), (False, True)),
    (("q2_k", "q4_k"), (True, False)),
    (("q3_k", "q4_k"), (False, False)),
    (("q3_k", "q5_k", "q3_k"), (False, True, False)),
    (("q4_k", "q5_k"), (True, True)),
    (("q5_k", "q6_k"), (False, False)),
]
HEADS = [(1, 1, 2, 1), (7, 1, 40, 20), (4, 2, 64, 16), (3, 3, 123, 50)]
CACHES = [(cache, heads) for cache in DTYPE for heads in HEADS]
BLOCK_BYTES = {"q8_0": (34, 34), "q4_0": (34, 18)}  # of 32 numbers of keys, of values
BLOCK_HEADS = [(1, 1, 32, 16), (4, 2, 64, 9), (6, 3, 256, 128)]
CACHES += [(cache, heads) for cache in BLOCK_BYTES for heads in BLOCK_HEADS]

# One wider than any slice, odd ones, several to a slice; of each, formats and rows.
WIDE_HEADS = [(2, 1, 272, 136), (7, 1, 40, 20), (4, 2, 64, 16), (3, 3, 30, 7)]
PROJECTED = [
    (formats, list(DTYPE)[i % 2], i // 2 % 2, heads, i % 3 > 0, i % 2 > 0, rows)
    for heads in WIDE_HEADS
    for i, (formats, rows) in enumerate(
        [
            (("q4_0", "q4_0", "q8_0"), 70),
            (("q4_k", "q4_k", "q6_k"), 5),
            (("f16", "f16", "f16"), 300),
            (("bf16", "f16", "bf16"), 33),
            (("f32", "f32", "f32"), 7),
            (("q2_k", "q3_k", "q5_1"), 1),
            (("q5_k", "q5_0", "q4_1"), 16),
        ]
    )
]

# n, rows; the last two: several slices at once.
GATED = [(7, 3), (96, 1), (300, 70), (1700, 1), (1700, 5)]
ACTIVATIONS = [(format_name, i % 2) for i, format_name in enumerate(ref.ALL_FORMATS)]


def assert_same_results(results: list[np.ndarray], expected: list[np.ndarray]) -> None:
    for index, (result, wanted) in enumerate(zip(results, expected, strict=True)):
        assert_same_bits(result, wanted, f"result {index}")


@table({"formats, with_bias": GROUPS}, rows=[1, 5, 70], functions=("formats", "rows"))
def test_matmul_group(target, rng, formats, with_bias, rows):
    row_class, k = row_class_of(rows), 512
    if len({target.kind_of(f, row_class) for f in formats}) > 1:
        row_class = "few"  # as many rows they would not be a group
    kind = target.kind_of(formats[0], row_class)
    sizes = [70, 13, 24][: len(formats)]
    step = plain_step(rows)
    x = ref.make_activation(kind, rng.standard_normal((rows, k)))
    weights = [ref.random_weight(f, n, k, rng) for f, n in zip(formats, sizes, strict=True)]
    biases = [
        rng.standard_normal(n).astype(np.float32) if bound else None
        for n, bound in zip(sizes, with_bias, strict=False)
    ]
    outs = [poisoned((rows, n)) for n in sizes]

    def three(items: list) -> list:
        return items + [None] * (3 - len(items))

    operands = [x.data, *three(weights), *three(biases), *three(outs)]
    params = pack_params("matmul_group", k, *sizes, *[0] * (3 - len(sizes)))
    run("matmul_group", operands, params, step, On(target, 2, kind, row_class=row_class))

    expected = [poisoned((rows, n)) for n in sizes]
    for n, weight, bias, out in zip(sizes, weights, biases, expected, strict=True):
        on = On(target, 1, kind, row_class=row_class)
        run("matmul", [x.data, weight, out], pack_params("matmul", n, k), step, on)
        if bias is not None:
            run("add_bias", [out, bias], pack_params("add_bias", n), step, On(target))
    assert_same_results(outs, expected)


@table(format_name=ref.ALL_FORMATS, rows=[1, 16, 70], functions=("format_name", "rows"))
def test_matmul_add(target, rng, format_name, rows):
    kind, n, k = target.kind_of(format_name, row_class_of(rows)), 77, 512
    step = plain_step(rows)
    x = ref.make_activation(kind, rng.standard_normal((rows, k)))
    weight = ref.random_weight(format_name, n, k, rng)
    data = rng.standard_normal((rows, n)).astype(np.float32)
    expected, product = data.copy(), poisoned((rows, n))
    on = On(target, 2, kind)
    run("matmul_add", [x.data, weight, data], pack_params("matmul_add", n, k), step, on)
    run("matmul", [x.data, weight, product], pack_params("matmul", n, k), step, on)
    run("add", [expected, product], pack_params("add", n, 0), step, On(target))
    assert_same_results([data], [expected])


@table(dim=[1, 7, 40, 640], rows=[1, 17])
def test_norm_add(target, rng, dim, rows):
    step = plain_step(rows)
    x = rng.standard_normal((rows, dim)).astype(np.float32)
    weight = rng.standard_normal(dim).astype(np.float32)
    data = rng.standard_normal((rows, dim)).astype(np.float32)
    expected, normed = data.copy(), poisoned((rows, dim))
    params = pack_params("norm_add", dim, 1e-5)
    run("norm_add", [x, weight, data], params, step, On(target, 2))
    run("rms_norm", [x, weight, normed], params, step, On(target, 1, "f32"))
    run("add", [expected, normed], pack_params("add", dim, 0), step, On(target))
    assert_same_results([data], [expected])


# A GPU fuses more: the norm as well (test_norm_gated_matmul.py), attention as well
# (test_rope_attention.py).
@pytest.mark.cpu
@table(
    {"format_name, activation": ACTIVATIONS, "n, rows": GATED},
    on_change={"format_name": ref.FAMILIES},
)
def test_gated_matmul(target, rng, format_name, activation, n, rows):
    kind, k = target.kind_of(format_name, row_class_of(rows)), 768
    n = -(-n // 32) * 32 if kind == "q8_32" else n
    step = plain_step(rows)
    gate, up = (ref.random_weight(format_name, n, k, rng) for _ in range(2))
    x = ref.make_activation(kind, rng.standard_normal((rows, k)))
    out, expected = (ref.activation_array(kind, rows, n) for _ in range(2))
    params = pack_params("gated_matmul", k, n, activation)
    run("gated_matmul", [x.data, gate, up, out], params, step, On(target, 2, kind))
    products = [poisoned((rows, n)) for _ in range(2)]
    for weight, product in zip((gate, up), products, strict=True):
        operands = [x.data, weight, product]
        run("matmul", operands, pack_params("matmul", n, k), step, On(target, 1, kind))
    params = pack_params("gated_activation", n, activation, 0, 0)
    run("gated_activation", [*products, expected], params, step, On(target, 1, kind))
    assert_same_results([out], [expected])


def check_rope_kv_write(
    target: Target,
    rng: np.random.Generator,
    cache: str,
    style: int,
    heads: tuple[int, int, int, int],
    *,
    norm: bool,
) -> None:
    n_heads, n_kv_heads, head_dim, n_pairs = heads
    step = make_step([Run(1, 250, 9), Run(0, 3, 1)])
    step.rows["flags"][4] = 0  # writes no cache, fused or not
    rows = len(step.rows)
    query = rng.standard_normal((rows, n_heads * head_dim)).astype(np.float32)
    key, value = rng.standard_normal((2, rows, n_kv_heads * head_dim)).astype(np.float32)
    angles = rng.uniform(-1, 1, (rows, 2 * n_pairs)).astype(np.float32)
    norms = list(rng.uniform(0.5, 1.5, (2, head_dim)).astype(np.float32))
    key_before = key.copy()

    def caches(like: Step) -> list[np.ndarray]:
        shape = (like.n_pages, n_kv_heads, 256)
        if cache in DTYPE:
            return [poisoned((*shape, head_dim), DTYPE[cache]) for _ in range(2)]
        return [poisoned((*shape, n * head_dim // 32), np.uint8) for n in BLOCK_BYTES[cache]]

    fused, sequence = caches(step), caches(step)
    sequence_query, sequence_key = query.copy(), key.copy()
    tables = (step.page_stride, step.page_base)

    name = "norm_rope_kv_write" if norm else "rope_kv_write"
    params = pack_params(name, n_heads, n_kv_heads, head_dim, n_pairs, style, *tables, 1e-6)
    operands = [query, key, value, angles, *fused, *(norms if norm else [])]
    run(name, operands, params, step, On(target, 2, cache=cache))
    assert_same_bits(key, key_before, "the fused kernel must leave key as it was")

    for data, heads, weight in (
        (sequence_query, n_heads, norms[0]),
        (sequence_key, n_kv_heads, norms[1]),
    ):
        if norm:
            norm_params = pack_params("head_norm", heads, head_dim, 1e-6)
            run("head_norm", [data, weight], norm_params, step, On(target))
        rope_params = pack_params("rope", heads, head_dim, n_pairs, style)
        run("rope", [data, angles], rope_params, step, On(target))
    run(
        "kv_write",
        [sequence_key, value, *sequence],
        pack_params("kv_write", n_kv_heads, head_dim, *tables),
        step,
        On(target, cache=cache),
    )
    assert_same_results([query, *fused], [sequence_query, *sequence])


@table({"cache, heads": CACHES}, style=[0, 1])
def test_rope_kv_write(target, rng, cache, style, heads):
    check_rope_kv_write(target, rng, cache, style, heads, norm=False)


@table({"cache, heads": CACHES}, style=[0, 1])
def test_norm_rope_kv_write(target, rng, cache, style, heads):
    check_rope_kv_write(target, rng, cache, style, heads, norm=True)


@pytest.mark.cpu  # a GPU has no such kernel
@table({"formats, cache, style, heads, norm, with_bias, rows": PROJECTED})
def test_matmul_rope_kv_write(target, rng, formats, cache, style, heads, norm, with_bias, rows):
    n_heads, n_kv_heads, head_dim, n_pairs = heads
    k = 512
    if len({target.kind_of(f, "many") for f in formats}) > 1:
        formats = formats[:1] * 3  # otherwise they would not be a group
    kind = target.kind_of(formats[0], "many")
    step = make_step([Run(1, 250, rows - 1), Run(0, 3, 1)] if rows > 1 else [Run(0, 3, 1)])
    step.rows["flags"][rows // 2] = 0  # writes no cache, fused or not
    sizes = [head_dim * n for n in (n_heads, n_kv_heads, n_kv_heads)]
    x = ref.make_activation(kind, rng.standard_normal((rows, k)))
    weights = [ref.random_weight(f, n, k, rng) for f, n in zip(formats, sizes, strict=True)]
    biases = [rng.standard_normal(n).astype(np.float32) if with_bias else None for n in sizes]
    angles = rng.uniform(-1, 1, (rows, 2 * n_pairs)).astype(np.float32)
    norms = list(rng.uniform(0.5, 1.5, (2, head_dim)).astype(np.float32)) if norm else []
    fused, sequence = (
        [poisoned((step.n_pages, n_kv_heads, 256, head_dim), DTYPE[cache]) for _ in range(2)]
        for _ in range(2)
    )
    query = poisoned((rows, sizes[0]))
    heads = (n_heads, n_kv_heads, head_dim, n_pairs, style, step.page_stride, step.page_base, 1e-6)
    operands = [x.data, *weights, *biases, query, angles, *fused, *(norms or [None, None])]
    params = pack_params("matmul_rope_kv_write", k, *heads)
    on = On(target, 2, kind, cache=cache, row_class="many")
    run("matmul_rope_kv_write", operands, params, step, on)

    outs = [poisoned((rows, n)) for n in sizes]
    params = pack_params("matmul_group", k, *sizes)
    on = On(target, 1, kind, row_class="many")
    run("matmul_group", [x.data, *weights, *biases, *outs], params, step, on)
    name = "norm_rope_kv_write" if norm else "rope_kv_write"
    params = pack_params(name, *heads)
    run(name, [*outs, angles, *sequence, *norms], params, step, On(target, cache=cache))
    assert_same_results([query, *fused], [outs[0], *sequence])
