"""rope_attention: writes and reads the cache in one operation, bit for bit as its sequence."""

from __future__ import annotations

import numpy as np
from harness import On, Run, assert_same_bits, make_step, pack_params, poisoned, run
from tables import table
from test_fused import DTYPE

EPSILON = 1e-6
# Query heads, kv heads, head_dim, pairs that rotate.
HEADS = [(1, 1, 8, 4), (7, 1, 40, 20), (4, 2, 64, 16), (6, 3, 128, 64), (2, 1, 256, 128)]
RUNS = {
    "first": [Run(0, 0, 1)],
    "late": [Run(0, 777, 1)],
    "page-edge": [Run(1, 255, 1), Run(0, 256, 1), Run(2, 64, 1)],
    "drafts": [Run(0, 250, 9), Run(1, 3, 1), Run(2, 63, 2)],  # rows that see each other
}


# More texts than a launch has blocks for each split of (kernel_table.cpp of CUDA), and drafts.
CROWD = [Run(i, 37 * i % 900, 1) for i in range(90)] + [Run(90, 700, 9), Run(91, 0, 3)]


def attend(target, rng_seed, cache, style, heads, runs, *, fused, norms, window=0, inactive=(),
           alone=False):  # fmt: skip
    n_heads, n_kv_heads, head_dim, n_pairs = heads
    rng = np.random.default_rng(rng_seed)
    step = make_step(runs)
    step.rows["flags"][list(inactive)] = 0
    rows = len(step.rows)
    query = rng.standard_normal((rows, n_heads * head_dim)).astype(np.float32)
    key, value = rng.standard_normal((2, rows, n_kv_heads * head_dim)).astype(np.float32)
    angles = rng.uniform(-1, 1, (rows, 2 * n_pairs)).astype(np.float32)
    shape = (step.n_pages, n_kv_heads, 256, head_dim)
    caches = [rng.standard_normal(shape).astype(DTYPE[cache]) for _ in range(2)]
    weights = list(rng.uniform(0.5, 1.5, (2, head_dim)).astype(np.float32)) if norms else []
    out = poisoned((rows, n_heads * head_dim))
    tables = (step.page_stride, step.page_base)
    scale = float(np.float32(1 / np.sqrt(head_dim)))
    on = On(target, cache=cache, row_class="single" if rows == 1 else "few")
    if fused:
        before = query.copy(), key.copy()
        params = pack_params(
            "rope_attention", n_heads, n_kv_heads, head_dim, n_pairs, style, window, scale, 0.0,
            *tables, EPSILON,
        )  # fmt: skip
        operands = [query, key, value, angles, *caches, *(weights or [None, None]), out]
        run("rope_attention", operands, params, step, on)
        assert_same_bits(query, before[0], "query must stay as it was")
        assert_same_bits(key, before[1], "key must stay as it was")
        return [out, *caches]
    name = "norm_rope_kv_write" if norms else "rope_kv_write"
    params = pack_params(name, n_heads, n_kv_heads, head_dim, n_pairs, style, *tables, EPSILON)
    run(name, [query, key, value, angles, *caches, *weights], params, step, on)
    params = pack_params(
        "attention", n_heads, n_kv_heads, head_dim, window, scale, 0.0, *tables
    )  # fmt: skip
    if not alone:
        run("attention", [query, *caches, out], params, step, on)
    for row in range(rows if alone else 0):
        own, single = poisoned(out.shape), On(target, cache=cache, row_class="single")
        run("attention", [query, *caches, own], params, step, single, first_row=row, n_rows=1)
        out[row] = own[row]
    return [out, *caches]


def assert_is_its_sequence(*arguments, **settings):
    fused = attend(*arguments, fused=True, **settings)
    sequence = attend(*arguments, fused=False, **settings)
    for result, expected, what in zip(fused, sequence, ["out", "keys", "values"], strict=True):
        assert_same_bits(result, expected, what)


@table(
    cache=["f16", "f32"],
    style=[0, 1],
    norms=[False, True],
    heads=HEADS,
    functions=("cache", "heads"),
)
def test_is_its_sequence_bit_for_bit(gpu_target, cache, style, norms, heads):
    assert_is_its_sequence(gpu_target, 1, cache, style, heads, RUNS["drafts"], norms=norms)


@table(runs=RUNS.values(), window=[0, 1, 5, 300])
def test_wherever_the_row_is(gpu_target, runs, window):
    heads = (4, 2, 64, 32)
    assert_is_its_sequence(gpu_target, 2, "f16", 1, heads, runs, norms=True, window=window)


def test_an_inactive_row_writes_no_cache(gpu_target):
    heads, runs = (4, 2, 64, 32), [Run(0, 100, 1), Run(1, 50, 1), Run(2, 9, 1)]
    settings = {"norms": False, "inactive": (1,)}
    written = attend(gpu_target, 3, "f16", 0, heads, runs, fused=True, **settings)
    expected = attend(gpu_target, 3, "f16", 0, heads, runs, fused=False, **settings)
    for result, wanted, what in zip(written[1:], expected[1:], ["keys", "values"], strict=True):
        assert_same_bits(result, wanted, what)
    assert_same_bits(written[0][[0, 2]], expected[0][[0, 2]])


@table(heads=[(8, 8, 64, 32), (4, 2, 128, 64)], window=[0, 300])
def test_a_crowd_has_the_bits_of_each_row_alone(gpu_target, heads, window):
    """One launch for as many rows as a device takes."""
    runs = CROWD if gpu_target.device == "cuda" else CROWD[:16]
    settings = {"norms": True, "window": window}
    assert_is_its_sequence(gpu_target, 4, "f16", 1, heads, runs, **settings)
    together = attend(gpu_target, 4, "f16", 1, heads, runs, fused=False, **settings)[0]
    alone = attend(gpu_target, 4, "f16", 1, heads, runs, fused=False, alone=True, **settings)[0]
    assert_same_bits(together, alone)
