"""short_convolution: a gated convolution along a text, whose last inputs the cache keeps."""

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
from tables import table

SHAPES = [
    pytest.param((1, 2), id="1x2"),
    pytest.param((96, 3), id="lfm2"),
    pytest.param((300, 4), id="rest"),
]
RUNS = [
    pytest.param([Run(0, 0, 1)], id="first"),
    pytest.param([Run(1, 700, 1)], id="step"),
    pytest.param([Run(2, 0, 37), Run(0, 5, 3), Run(1, 300, 1)], id="three-texts"),
]


class Convolved:
    """Inputs of a step's rows, and what the cache has of the rows before; all else there is NaN."""

    def __init__(self, rng, shape, runs):
        self.dim, self.width = shape
        self.step = make_step(runs)
        n = len(self.step.rows)
        self.input = rng.standard_normal((n, 3 * self.dim)).astype(np.float32)
        self.weight = rng.standard_normal((self.dim, self.width)).astype(np.float32)
        self.cache = poisoned((self.step.n_pages, PAGE, self.dim))
        for each in runs:
            for position in range(max(each.position - self.width + 1, 0), each.position):
                self.cache[self.place(each.sequence, position)] = rng.standard_normal(self.dim)

    def place(self, sequence, position):
        page, place = ref.page_offsets(self.step, sequence, position)
        return int(page), int(place)

    def run(self, target, kind="f32", threads=1, cache=None, **part):
        """What comes out, and the cache then."""
        out = ref.activation_array(kind, len(self.step.rows), self.dim)
        cache = self.cache.copy() if cache is None else cache
        tables = (self.step.page_stride, self.step.page_base)
        run(
            "short_convolution",
            [self.input, self.weight.reshape(-1), cache, out],
            pack_params("short_convolution", self.dim, self.width, *tables),
            self.step,
            On(target, threads, kind, cache="f32", row_class="many"),
            **part,
        )
        return out, cache

    def expected(self):
        """What comes out, by NumPy's windows over each text's inputs; the bound; the inputs."""
        b, c, x = np.split(self.input.astype(np.float64), 3, axis=1)
        out, bound = np.zeros_like(b), np.zeros_like(b)
        for span in self.step.spans:
            own = slice(span["first_row"], span["first_row"] + span["n_rows"])
            first = int(self.step.rows["position"][span["first_row"]])
            before = [
                self.cache[self.place(span["sequence"], position)]
                if position >= 0
                else np.zeros(self.dim)
                for position in range(first - self.width + 1, first)
            ]
            inputs = np.concatenate([np.array(before, np.float64), b[own] * x[own]])
            windows = np.lib.stride_tricks.sliding_window_view(inputs, self.width, axis=0)
            products = windows * self.weight.astype(np.float64)
            out[own] = c[own] * products.sum(axis=-1)
            bound[own] = np.abs(c[own]) * np.abs(products).sum(axis=-1)
        return out, bound * ref.growth(self.width + 3) + ref.TINY, b * x


@table(shape=SHAPES, runs=RUNS)
def test_rows_see_the_inputs_before_them(target, rng, shape, runs):
    convolved = Convolved(rng, shape, runs)
    expected, bound, inputs = convolved.expected()
    out, cache = convolved.run(target)
    assert_within(out, expected, bound)
    untouched = np.ones(cache.shape[:2], bool)
    for row, values in zip(convolved.step.rows, inputs, strict=True):
        place = convolved.place(row["sequence"], row["position"])
        assert_within(cache[place], values, np.abs(values) * ref.UNIT + ref.TINY)
        untouched[place] = False
    assert_same_bits(cache[untouched], convolved.cache[untouched])


@table(runs=RUNS)
def test_in_every_kind(target, rng, kind, runs):
    convolved = Convolved(rng, (192, 3), runs)
    expected, bound, _ = convolved.expected()
    out, _ = convolved.run(target, kind)
    ref.assert_activation(kind, out, expected, bound)


def test_a_text_has_the_same_bits_alone_in_pieces_and_beside_others(target, rng):
    convolved = Convolved(rng, (160, 3), [Run(0, 0, 20), Run(1, 9, 3), Run(2, 0, 5)])
    together, cache = convolved.run(target)
    again, cache_again = convolved.run(target, threads=3)
    assert_same_bits(again, together)
    assert_same_bits(cache_again, cache)
    for span, rows in enumerate([slice(0, 20), slice(20, 23), slice(23, 28)]):
        part = {"first_row": rows.start, "n_rows": rows.stop - rows.start}
        alone, _ = convolved.run(target, first_span=span, n_spans=1, **part)
        assert_same_bits(alone[rows], together[rows])

    pieces = Convolved(rng, (160, 3), [Run(0, 0, 1), Run(0, 1, 12), Run(0, 13, 7)])
    pieces.input, pieces.weight = convolved.input[:20], convolved.weight
    kept = pieces.cache.copy()
    for span, rows in enumerate([slice(0, 1), slice(1, 13), slice(13, 20), slice(13, 20)]):
        # The last piece runs twice: what it keeps, and what comes out, is the same again.
        part = {"first_row": rows.start, "n_rows": rows.stop - rows.start}
        out, _ = pieces.run(target, cache=kept, first_span=min(span, 2), n_spans=1, **part)
        assert_same_bits(out[rows], together[rows])
    for position in range(20):
        assert_same_bits(kept[pieces.place(0, position)], cache[convolved.place(0, position)])


def test_a_row_that_is_not_active_keeps_nothing(target, rng):
    convolved = Convolved(rng, (64, 3), [Run(0, 4, 6), Run(1, 8, 2)])
    convolved.step.rows["flags"][2:6] = 0
    _, cache = convolved.run(target)
    for position in range(6, 10):
        place = convolved.place(0, position)
        assert_same_bits(cache[place], convolved.cache[place])
