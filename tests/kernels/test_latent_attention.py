"""latent_attention: values are the first numbers of the cached rows."""

from __future__ import annotations

import numpy as np
import pytest
import reference as ref
from harness import (
    PAGE,
    On,
    Run,
    assert_same_bits,
    assert_within,
    make_step,
    pack_params,
    poisoned,
    run,
)
from latent_cases import DTYPE
from reference import AttentionShape
from tables import table

ATTENTIONS = [
    pytest.param((1, 1, 1), id="1x1"),
    pytest.param((6, 40, 24), id="6x40"),
    pytest.param((7, 72, 64), id="7x72"),
    pytest.param((16, 96, 80), id="16x96"),
    pytest.param((4, 576, 512), id="deepseek"),
]


class Attended:
    """A query per row, and a cache whose positions behind the last one are NaN."""

    def __init__(self, rng, shape, runs, cache):
        self.n_heads, self.width, self.value_dim = shape
        self.cache = cache
        self.step = make_step(runs, max_positions=1500)
        kept = rng.standard_normal((self.step.n_pages, 1, PAGE, self.width))
        self.kept = kept.astype(DTYPE[cache])
        rows = self.step.rows
        self.query = rng.standard_normal((len(rows), self.n_heads * self.width)).astype(np.float32)
        seen = np.zeros((self.step.n_pages, PAGE), bool)
        for row in rows:
            seen[ref.page_offsets(self.step, row["sequence"], np.arange(row["kv_length"]))] = True
        np.moveaxis(self.kept, 2, 1)[~seen] = np.nan

    def expected(self, target):
        """A GPU takes 32 positions at a time, the CPU a page; `AttentionShape` gives the scale."""
        shape = AttentionShape(self.n_heads, 1, self.width)
        on_cpu = target.device == "cpu"
        width = self.n_heads * self.value_dim
        out, bound = np.zeros((2, len(self.step.rows), width))
        for r, row in enumerate(self.step.rows):
            n = int(row["kv_length"])
            pages, places = ref.page_offsets(self.step, int(row["sequence"]), np.arange(n))
            kept = self.kept[pages, 0, places].astype(np.float64)
            for h in range(self.n_heads):
                query = self.query[r, h * self.width :][: self.width].astype(np.float64)
                n_blocks = -(-n // (PAGE if on_cpu else 32))
                values, slack = ref.attend(
                    shape,
                    query,
                    kept,
                    kept[:, : self.value_dim],
                    n_blocks,
                    "f32",
                    in_order=not on_cpu,
                )
                own = slice(h * self.value_dim, (h + 1) * self.value_dim)
                out[r, own], bound[r, own] = values, slack
        return out, bound

    def run(self, target, threads=1, row_class="many", **part):
        out = poisoned((len(self.step.rows), self.n_heads * self.value_dim))
        scale = AttentionShape(self.n_heads, 1, self.width).scale
        sizes = (self.n_heads, 1, self.width, self.value_dim, scale)
        run(
            "latent_attention",
            [self.query, self.kept, out],
            pack_params("latent_attention", *sizes, self.step.page_stride, self.step.page_base),
            self.step,
            On(target, threads, cache=self.cache, row_class=row_class),
            **part,
        )
        return out


@table(
    cache=["f32", "f16"],
    shape=ATTENTIONS,
    runs=[
        pytest.param([Run(0, 0, 1)], id="first"),
        pytest.param([Run(0, 600, 2), Run(1, 3, 17)], id="two-sequences"),
        pytest.param([Run(0, 200, 70)], id="70-rows"),
    ],
)
def test_values_are_the_first_numbers_of_the_cached_rows(target, rng, runs, shape, cache):
    attended = Attended(rng, shape, runs, cache)
    expected, bound = attended.expected(target)
    assert_within(attended.run(target), expected, bound)


def test_attention_has_the_same_bits_alone_and_beside_others(target, rng):
    attended = Attended(rng, (12, 72, 64), [Run(0, 250, 20), Run(1, 0, 3), Run(2, 100, 1)], "f16")
    together = attended.run(target)
    assert_same_bits(attended.run(target, threads=3), together)
    for span, rows in enumerate([slice(0, 20), slice(20, 23), slice(23, 24)]):
        part = {"first_row": rows.start, "n_rows": rows.stop - rows.start}
        out = attended.run(target, first_span=span, n_spans=1, **part)
        assert_same_bits(out[rows], together[rows])
        assert_same_bits(
            attended.run(target, row_class="few", first_span=span, n_spans=1, **part)[rows],
            together[rows],
        )
