"""cross_attention: against float64 over all positions of the cache, whatever a row's own is."""

from __future__ import annotations

import numpy as np
import pytest
import reference as ref
from harness import PAGE, On, Run, assert_same_bits, make_step, pack_params, run
from reference import AttentionShape
from tables import table

HEADS = [
    pytest.param(AttentionShape(1, 1, 1), id="1x1"),
    pytest.param(AttentionShape(6, 6, 64), id="6x64"),
    pytest.param(AttentionShape(7, 1, 40), id="gqa-7:1-40"),
    pytest.param(AttentionShape(6, 2, 80), id="gqa-3:1-80"),
    pytest.param(AttentionShape(2, 2, 256), id="2x256"),
]
RUNS = [
    pytest.param([Run(0, 0, 1)], id="first"),
    pytest.param([Run(0, 600, 2), Run(1, 3, 17)], id="two-sequences"),
    pytest.param([Run(0, 20, 70)], id="70-rows"),
]
DTYPE = {"f32": np.float32, "f16": np.float16}


class Setting:
    """A query per row, and caches whose positions behind the last one are NaN."""

    def __init__(self, rng, shape: AttentionShape, runs: list[Run], cache: str, n_positions: int):
        self.shape, self.cache, self.n_positions = shape, cache, n_positions
        self.step = make_step(runs, max_positions=1500)
        heads = (self.step.n_pages, shape.n_kv_heads, PAGE, shape.head_dim)
        self.keys = rng.standard_normal(heads).astype(DTYPE[cache])
        self.values = rng.standard_normal(heads).astype(DTYPE[cache])
        width = shape.n_heads * shape.head_dim
        self.query = rng.standard_normal((len(self.step.rows), width)).astype(np.float32)
        seen = np.zeros((self.step.n_pages, PAGE), bool)
        for sequence in set(self.step.rows["sequence"].tolist()):
            seen[ref.page_offsets(self.step, sequence, np.arange(n_positions))] = True
        for numbers in (self.keys, self.values):
            np.moveaxis(numbers, 2, 1)[~seen] = np.nan

    def expected(self, target):
        """A GPU takes 32 positions at a time, the CPU a page."""
        shape, positions = self.shape, np.arange(self.n_positions)
        n_blocks = -(-self.n_positions // (PAGE if target.device == "cpu" else 32))
        out, bound = np.zeros(self.query.shape), np.zeros(self.query.shape)
        for r, row in enumerate(self.step.rows):
            pages, places = ref.page_offsets(self.step, int(row["sequence"]), positions)
            for h in range(shape.n_heads):
                own = slice(h * shape.head_dim, (h + 1) * shape.head_dim)
                kv_head = h // (shape.n_heads // shape.n_kv_heads)
                q, k, v = (
                    each.astype(np.float64)
                    for each in (
                        self.query[r, own],
                        self.keys[pages, kv_head, places],
                        self.values[pages, kv_head, places],
                    )
                )
                out[r, own], bound[r, own] = ref.attend(shape, q, k, v, n_blocks, "f32")
        return out, bound

    def run(self, target, kind, *, threads=1, row_class="", **part):
        shape, step = self.shape, self.step
        out = ref.activation_array(kind, len(step.rows), shape.n_heads * shape.head_dim)
        sizes = (shape.n_heads, shape.n_kv_heads, shape.head_dim, self.n_positions, shape.scale)
        run(
            "cross_attention",
            [self.query, self.keys, self.values, out],
            pack_params("cross_attention", *sizes, step.page_stride, step.page_base),
            step,
            On(target, threads, kind, self.cache, row_class),
            **part,
        )
        return out


@table(cache=["f32", "f16"], runs=RUNS, shape=HEADS)
def test_agrees_with_float64(target, rng, shape, runs, cache):
    setting = Setting(rng, shape, runs, cache, 300)
    expected, bound = setting.expected(target)
    ref.assert_activation("f32", setting.run(target, "f32"), expected, bound)


@table(n_positions=[1, 255, 256, 257, 1500])
def test_any_number_of_positions(target, rng, n_positions):
    setting = Setting(rng, AttentionShape(2, 2, 32), [Run(0, 5, 3)], "f32", n_positions)
    expected, bound = setting.expected(target)
    ref.assert_activation("f32", setting.run(target, "f32"), expected, bound)


def test_kinds(target, rng, kind):
    setting = Setting(rng, AttentionShape(4, 4, 32), [Run(0, 5, 20)], "f16", 300)
    expected, bound = setting.expected(target)
    ref.assert_activation(kind, setting.run(target, kind), expected, bound)


def test_rows_have_the_same_bits_alone_and_beside_others(target, rng, kind):
    runs = [Run(0, 5, 20), Run(1, 0, 3), Run(2, 100, 1)]
    setting = Setting(rng, AttentionShape(8, 8, 32), runs, "f16", 300)
    together = setting.run(target, kind, row_class="few")
    assert_same_bits(setting.run(target, kind, row_class="few", threads=3), together)
    for span, rows in enumerate([slice(0, 20), slice(20, 23), slice(23, 24)]):
        part = {"first_row": rows.start, "n_rows": rows.stop - rows.start}
        out = setting.run(target, kind, row_class="few", first_span=span, n_spans=1, **part)
        assert_same_bits(out[rows], together[rows])
