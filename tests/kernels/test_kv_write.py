"""kv_write: exactly the rounded numbers, at the right place of the right page, and nowhere else."""

from __future__ import annotations

import numpy as np
import reference as ref
from harness import ACTIVE, On, Run, assert_same_bits, make_step, pack_params, poisoned, run
from tables import table

DTYPE = {"f32": np.float32, "f16": np.float16}
RUNS = [Run(1, 254, 4), Run(0, 0, 1), Run(2, 600, 2)]


def expected_cache(step, rows, dtype, n_kv_heads, head_dim):
    cache = poisoned((step.n_pages, n_kv_heads, 256, head_dim), dtype)
    for row, values in zip(step.rows, rows, strict=True):
        if row["flags"] & ACTIVE:
            page, place = ref.page_offsets(step, row["sequence"], row["position"])
            with np.errstate(over="ignore"):
                cache[page, :, place] = values.reshape(n_kv_heads, head_dim).astype(dtype)
    return cache


@table(
    {"n_kv_heads, head_dim": [(1, 1), (3, 40), (2, 64), (1, 123)]},
    cache=["f32", "f16"],
    threads=[1, 3],
)
def test_writes_the_row_s_place_only(target, rng, cache, n_kv_heads, head_dim, threads):
    step = make_step(RUNS)
    step.rows["flags"][1] = 0  # inactive: writes nothing
    shape = (len(step.rows), n_kv_heads * head_dim)
    key, value = (rng.standard_normal((2, *shape)) * 10).astype(np.float32)
    key.flat[0] = 65504
    value.flat[0] = 3e-8 if head_dim > 1 else 1  # a subnormal half
    key_cache = poisoned((step.n_pages, n_kv_heads, 256, head_dim), DTYPE[cache])
    value_cache = key_cache.copy()
    run(
        "kv_write",
        [key, value, key_cache, value_cache],
        pack_params("kv_write", n_kv_heads, head_dim, step.page_stride, step.page_base),
        step,
        On(target, threads, cache=cache),
    )
    assert_same_bits(key_cache, expected_cache(step, key, DTYPE[cache], n_kv_heads, head_dim))
    assert_same_bits(value_cache, expected_cache(step, value, DTYPE[cache], n_kv_heads, head_dim))


def test_rounds_to_half_like_numpy_everywhere(target, rng):
    """Every half, what lies halfway between two, and just beside that."""
    halves = np.arange(0, 0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    middles = (halves[:-1] + halves[1:]) / 2
    numbers = np.concatenate(
        [
            halves,
            middles,
            np.nextafter(middles, np.float32(0)),
            np.nextafter(middles, np.float32(1e9)),
            np.array([65519.996, 65520, 1e30, np.inf, 1e-45, 2.0**-25], np.float32),
        ]
    )
    numbers = np.concatenate([numbers, -numbers]).astype(np.float32)
    numbers = np.resize(numbers, (-(-numbers.size // 256), 256))
    step = make_step([Run(0, 0, len(numbers))], max_positions=1024)
    caches = [poisoned((step.n_pages, 1, 256, 256), np.float16) for _ in range(2)]
    run(
        "kv_write",
        [numbers, numbers, *caches],
        pack_params("kv_write", 1, 256, step.page_stride, step.page_base),
        step,
        On(target),
    )
    assert_same_bits(caches[0], expected_cache(step, numbers, np.float16, 1, 256))
