"""causal_convolution: along a text, through silu; the cache keeps its last inputs."""

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
    poisoned,
    run,
)
from tables import table

# Numbers, width, whether there is a bias, positions that the cache keeps.
SHAPES = [
    pytest.param((1, 2, False, 1), id="1x2"),
    pytest.param((96, 4, True, 4), id="mamba"),
    pytest.param((600, 3, True, 5), id="rest"),
]
RUNS = [
    pytest.param([Run(0, 0, 1)], id="first"),
    pytest.param([Run(1, 700, 1)], id="step"),
    pytest.param([Run(2, 0, 37), Run(0, 5, 3), Run(1, 300, 1)], id="three-texts"),
    pytest.param([Run(0, 1, 2), Run(3, 255, 2), Run(2, 2, 1), Run(1, 511, 6)], id="few-rows"),
]


class Convolved:
    """Inputs of a step's rows, and what the cache has of the rows before; all else is NaN."""

    def __init__(self, rng, shape, runs):
        self.n, self.width, has_bias, self.n_kept = shape
        self.step = make_step(runs)
        n_rows = len(self.step.rows)
        self.first = 5
        self.input = poisoned((n_rows, self.n + 8))
        self.input[:, self.own] = rng.standard_normal((n_rows, self.n))
        self.weight = rng.standard_normal((self.n, self.width)).astype(np.float32)
        self.bias = rng.standard_normal(self.n).astype(np.float32) if has_bias else None
        self.cache = poisoned((self.step.n_pages, self.n_kept, self.n))
        for each in runs:
            for position in range(max(each.position - self.width + 1, 0), each.position):
                self.cache[self.place(each.sequence, position)] = rng.standard_normal(self.n)

    @property
    def own(self):
        return slice(self.first, self.first + self.n)

    def place(self, sequence, position):
        page, _ = ref.page_offsets(self.step, sequence, 0)
        return int(page), position % self.n_kept

    def run(self, target, threads=1, cache=None, **part):
        """What comes out, and the cache then."""
        out = poisoned((len(self.step.rows), self.n))
        cache = self.cache.copy() if cache is None else cache
        stride = self.input.shape[1]
        rest = (self.n_kept, self.step.page_stride, self.step.page_base)
        run(
            "causal_convolution",
            [self.input, self.weight.reshape(-1), self.bias, cache, out],
            pack_params("causal_convolution", self.n, self.width, stride, self.first, *rest),
            self.step,
            On(target, threads, cache="f32", row_class="many"),
            **part,
        )
        return out, cache

    def expected(self):
        """What comes out, by NumPy's windows over each text's inputs, and the bound."""
        values = np.zeros((len(self.step.rows), self.n))
        bound = np.zeros_like(values)
        bias = np.zeros(self.n) if self.bias is None else self.bias.astype(np.float64)
        for span in self.step.spans:
            own = slice(span["first_row"], span["first_row"] + span["n_rows"])
            first = int(self.step.rows["position"][span["first_row"]])
            before = [
                self.cache[self.place(span["sequence"], position)]
                if position >= 0
                else np.zeros(self.n)
                for position in range(first - self.width + 1, first)
            ]
            inputs = np.concatenate([np.array(before), self.input[own, self.own]])
            windows = np.lib.stride_tricks.sliding_window_view(inputs, self.width, axis=0)
            products = windows.astype(np.float64) * self.weight.astype(np.float64)
            sums = products.sum(axis=-1) + bias
            error = (np.abs(products).sum(axis=-1) + np.abs(bias)) * ref.growth(self.width + 2)
            # The slope of silu is at most 1.1.
            values[own], own_error = ref.gated_activation(sums, np.ones_like(sums), 0)
            bound[own] = own_error + 1.1 * error + ref.TINY
        return values, bound


@table(shape=SHAPES, runs=RUNS)
def test_rows_see_the_inputs_before_them(target, rng, shape, runs):
    convolved = Convolved(rng, shape, runs)
    expected, bound = convolved.expected()
    out, cache = convolved.run(target)
    assert_within(out, expected, bound)
    kept = convolved.cache.copy()
    for row, values in zip(convolved.step.rows, convolved.input, strict=True):
        kept[convolved.place(row["sequence"], row["position"])] = values[convolved.own]
    assert_same_bits(cache, kept)


def test_a_text_has_the_same_bits_alone_in_pieces_and_beside_others(target, rng):
    shape = (700, 4, True, 4)
    convolved = Convolved(rng, shape, [Run(0, 0, 20), Run(1, 9, 3), Run(2, 0, 5)])
    together, cache = convolved.run(target)
    again, cache_again = convolved.run(target, threads=3)
    assert_same_bits(again, together)
    assert_same_bits(cache_again, cache)
    for span, rows in enumerate([slice(0, 20), slice(20, 23), slice(23, 28)]):
        part = {"first_row": rows.start, "n_rows": rows.stop - rows.start}
        alone, _ = convolved.run(target, first_span=span, n_spans=1, **part)
        assert_same_bits(alone[rows], together[rows])

    pieces = Convolved(rng, shape, [Run(0, 0, 1), Run(0, 1, 12), Run(0, 13, 6), Run(0, 19, 1)])
    pieces.input, pieces.weight, pieces.bias = (
        convolved.input[:20],
        convolved.weight,
        convolved.bias,
    )
    kept = pieces.cache.copy()
    ends = [0, 1, 13, 19, 20]
    for span in (0, 1, 2, 3, 3):
        # The last row runs twice: what it keeps, and what comes out, is the same again.
        rows = slice(ends[span], ends[span + 1])
        part = {"first_row": rows.start, "n_rows": rows.stop - rows.start}
        out, _ = pieces.run(target, cache=kept, first_span=span, n_spans=1, **part)
        assert_same_bits(out[rows], together[rows])
    for position in range(16, 20):
        assert_same_bits(kept[pieces.place(0, position)], cache[convolved.place(0, position)])


def test_a_row_that_is_not_active_keeps_nothing(target, rng):
    convolved = Convolved(rng, (64, 3, False, 3), [Run(0, 4, 6), Run(1, 8, 2), Run(2, 30, 9)])
    convolved.step.rows["flags"][2:6] = 0
    convolved.step.rows["flags"][13:] = 0
    _, cache = convolved.run(target)
    kept = convolved.cache.copy()
    for row in (0, 1, 6, 7, 8, 9, 10, 11, 12):
        place = convolved.place(*convolved.step.rows[["sequence", "position"]][row])
        kept[place] = convolved.input[row, convolved.own]
    assert_same_bits(cache, kept)
