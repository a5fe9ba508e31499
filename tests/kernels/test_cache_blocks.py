"""Caches in blocks: `kv_write` stores what gguf's quantiser makes, and attention reads it.

Beside values in Q4_0 keys are in Q8_0.
"""

from __future__ import annotations

import gguf
import numpy as np
import pytest
import reference as ref
from harness import (
    ACTIVE,
    On,
    Run,
    assert_same_bits,
    assert_within,
    make_step,
    pack_params,
    poisoned,
    run,
)
from reference import AttentionShape
from tables import table
from test_attention import CUTS, Setting
from test_sink_attention import attend

TYPES = {name: gguf.GGMLQuantizationType[name.upper()] for name in ("q8_0", "q4_0")}
BYTES = {"q8_0": 34, "q4_0": 18}  # of 32 numbers
FORMATS = {"q8_0": ("q8_0", "q8_0"), "q4_0": ("q8_0", "q4_0")}  # of keys and of values
RUNS = [
    pytest.param([Run(0, 0, 1)], id="first"),
    pytest.param([Run(1, 254, 1), Run(0, 255, 1), Run(2, 256, 1)], id="page-edges"),
    pytest.param([Run(0, 200, 70)], id="70-rows-over-an-edge"),
]
SHAPES = [
    pytest.param(AttentionShape(1, 1, 32), id="1x32"),
    pytest.param(AttentionShape(6, 2, 96), id="gqa-3:1-96"),
    pytest.param(AttentionShape(16, 2, 64, window=33), id="gqa-8:1-64-window"),
    pytest.param(AttentionShape(4, 2, 64, soft_cap=2.0), id="gqa-2:1-64-cap"),
    pytest.param(AttentionShape(40, 1, 128), id="gqa-40:1-128"),
    pytest.param(AttentionShape(4, 1, 256), id="gqa-4:1-256"),
    pytest.param(AttentionShape(2, 1, 512), id="gqa-2:1-512"),
]


def encoded(numbers, cache):
    return gguf.quants.quantize(numbers, TYPES[cache])


def decoded(blocks, cache):
    return gguf.quants.dequantize(blocks, TYPES[cache])


def written(target, cache, rows, n_kv_heads, head_dim, step):
    """Both caches after `kv_write`, as bytes [page, kv_head, 256, bytes of a head]."""
    caches = [
        poisoned((step.n_pages, n_kv_heads, 256, head_dim // 32 * BYTES[each]), np.uint8)
        for each in FORMATS[cache]
    ]
    params = pack_params("kv_write", n_kv_heads, head_dim, step.page_stride, step.page_base)
    run("kv_write", [*rows, *caches], params, step, On(target, cache=cache))
    return caches


@table({"n_kv_heads, head_dim": [(1, 32), (3, 96), (2, 64), (1, 256)]}, cache=TYPES)
def test_the_blocks_are_those_of_gguf(target, rng, cache, n_kv_heads, head_dim):
    step = make_step([Run(1, 254, 4), Run(0, 0, 1), Run(2, 600, 2)])
    step.rows["flags"][1] = 0  # inactive: writes nothing
    rows = (rng.standard_normal((2, len(step.rows), n_kv_heads * head_dim)) * 10).astype(np.float32)
    rows[:, 2] = 0
    rows[0, 3] *= np.float32(1e-3)
    caches = written(target, cache, rows, n_kv_heads, head_dim, step)
    for one, numbers, kind in zip(caches, rows, FORMATS[cache], strict=True):
        expected = poisoned(one.shape, np.uint8)
        for row, values in zip(step.rows, numbers, strict=True):
            if row["flags"] & ACTIVE:
                page, place = ref.page_offsets(step, row["sequence"], row["position"])
                expected[page, :, place] = encoded(values.reshape(n_kv_heads, head_dim), kind)
        assert_same_bits(one, expected)


@table(cache=TYPES, bad=[np.nan, np.inf, -np.inf])
def test_a_block_with_what_is_not_finite_is_nan(target, rng, cache, bad):
    step = make_step([Run(0, 0, 1)])
    rows = rng.standard_normal((2, 1, 64)).astype(np.float32)
    rows[:, 0, 40] = bad
    page, place = ref.page_offsets(step, 0, 0)
    caches = written(target, cache, rows, 1, 64, step)
    for one, kind in zip(caches, FORMATS[cache], strict=True):
        numbers = decoded(one[page, 0, place][None], kind)[0]
        assert np.isfinite(numbers[:32]).all()
        assert np.isnan(numbers[32:]).all()


@table(cache=TYPES, size=[1e-38, 1e-7])
def test_small_numbers_stay_finite(target, cache, size):
    """Too small for a half as a scale, or for a reciprocal: zeros, or what the scale still says."""
    step = make_step([Run(0, 0, 1)])
    rows = np.linspace(-size, size, 128).astype(np.float32).reshape(2, 1, 64)
    page, place = ref.page_offsets(step, 0, 0)
    caches = written(target, cache, rows, 1, 64, step)
    for one, row, kind in zip(caches, rows, FORMATS[cache], strict=True):
        numbers = decoded(one[page, 0, place][None], kind)[0]
        assert (np.abs(numbers - row[0]) <= size).all()


# heads, numbers of a head, pairs: all of a head, a part of its first block, whole blocks of it
@table(style=[0, 1], shape=[(3, 64, 32), (1, 96, 9), (2, 256, 64)])
def test_keys_turn_and_are_rounded_again(target, rng, shape, style):
    n_heads, head_dim, n_pairs = shape
    step = make_step([Run(1, 254, 4), Run(0, 0, 1), Run(2, 600, 2)])
    step.rows["flags"][1] = 0  # inactive: stays as it is
    places = [ref.page_offsets(step, row["sequence"], row["position"]) for row in step.rows]
    width = head_dim // 32 * BYTES["q8_0"]
    before = poisoned((step.n_pages, n_heads, 256, width), np.uint8)
    for page, place in places:
        keys = rng.standard_normal((n_heads, head_dim)).astype(np.float32)
        before[page, :, place] = encoded(keys, "q8_0")

    def turned(turn, threads=1):
        kept = before.copy()
        numbers = (n_heads, head_dim, 0, n_pairs, style, step.page_stride, step.page_base)
        on = On(target, threads, cache="q8_0")
        run("kv_rotate", [turn, kept], pack_params("kv_rotate", *numbers), step, on)
        return kept

    angles = rng.uniform(-500, 500, n_pairs)
    turn = np.stack([np.cos(angles), np.sin(angles)], axis=-1).ravel().astype(np.float32)
    after = turned(turn)
    assert_same_bits(turned(turn, threads=3), after)
    for row, (page, place) in zip(step.rows, places, strict=True):
        if not row["flags"] & ACTIVE:
            continue
        keys = decoded(before[page, :, place], "q8_0")
        expected, bound = ref.rope(keys[None, :, : 2 * n_pairs], turn[None], n_pairs, style)
        expected = np.concatenate([expected[0], keys[:, 2 * n_pairs :]], axis=-1)
        bound = np.pad(bound[0], ((0, 0), (0, head_dim - 2 * n_pairs)))
        blocks = np.abs(expected).reshape(n_heads, -1, 32)
        scales = np.repeat(blocks.max(axis=-1) / 127, 32, axis=-1)
        # Half a code, and 127 times what the scale loses as a half.
        bound = bound + scales * (0.5 + 127 * 2.0**-11) * (1 + 1e-5)
        assert_within(decoded(after[page, :, place], "q8_0"), expected, bound)
        before[page, :, place] = after[page, :, place]
    assert_same_bits(after, before, "nothing else was written")
    none = np.tile(np.array([1, 0], np.float32), n_pairs)
    assert_same_bits(turned(none), before, "no turn changes no bit")


class Blocks(Setting):
    """Caches in blocks, NaN where no row may look, and the numbers that they stand for."""

    def __init__(self, rng, shape: AttentionShape, runs: list[Run], cache: str):
        super().__init__(rng, shape, runs, "f32")
        self.cache = cache
        of_unseen = np.isnan(self.keys).any(axis=-1)
        self.numbers = []
        for name, kind in zip(("keys", "values"), FORMATS[cache], strict=True):
            blocks = encoded(np.nan_to_num(getattr(self, name)), kind)
            blocks[of_unseen] = 0xFF
            setattr(self, name, blocks)
            with np.errstate(invalid="ignore"):
                self.numbers.append(decoded(blocks, kind))

    def expected(self, **options):
        return ref.attention(self.shape, self.query, *self.numbers, self.step, **options)


@table(shape=SHAPES, runs=RUNS, cache=TYPES, functions=("shape", "runs", "cache"))
def test_attention_agrees_with_float64(target, rng, shape, runs, cache):
    setting = Blocks(rng, shape, runs, cache)
    expected, bound = setting.expected()
    ref.assert_activation("f32", setting.run(target, "f32"), expected, bound)


@table(cache=TYPES, shape=SHAPES[1:4])
def test_sinks_are_a_score_more(target, rng, shape, cache):
    setting = Blocks(rng, shape, [Run(0, 200, 70)], cache)
    sinks = rng.standard_normal(shape.n_heads).astype(np.float32)
    expected, bound = setting.expected(sinks=sinks)
    ref.assert_activation("f32", attend(setting, target, "f32", sinks), expected, bound)


@table(row_class=CUTS, window=[0, 100], cache=TYPES)
def test_however_it_is_cut_the_bits_are_the_same(target, rng, kind, window, row_class, cache):
    (n_first, n_second), cuts = CUTS[row_class]
    shape = AttentionShape(8, 4, 64, window=window)
    setting = Blocks(rng, shape, [Run(0, 220, n_first), Run(1, 40, n_second)], cache)
    together = setting.run(target, kind, row_class=row_class)
    for threads in (2, 3):
        assert_same_bits(setting.run(target, kind, threads=threads, row_class=row_class), together)
    for cut in cuts:
        starts = np.cumsum([0, *cut[:-1]])
        rows = setting.step.rows
        runs = [
            Run(int(rows["sequence"][s]), int(rows["position"][s]), n)
            for s, n in zip(starts, cut, strict=True)
        ]
        other = setting.run(target, kind, make_step(runs), row_class=row_class)
        assert_same_bits(other, together, f"spans of {cut}")
