"""kv_rotate: cached keys turn to other positions, at the right place and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest
import reference as ref
from harness import (
    ACTIVE,
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

DTYPE = {"f32": np.float32, "f16": np.float16}
RUNS = [Run(1, 254, 4), Run(0, 0, 1), Run(2, 600, 2)]
STYLES = [pytest.param(0, id="interleaved"), pytest.param(1, id="halves")]
# heads, numbers of a head, the first that turns, pairs
SHAPES = [
    pytest.param((1, 2, 0, 1), id="one pair"),
    pytest.param((3, 40, 0, 20), id="whole heads"),
    pytest.param((2, 64, 0, 16), id="a part"),
    pytest.param((5, 123, 0, 45), id="odd"),
    pytest.param((1, 576, 512, 32), id="a latent"),
]


class Keys:
    """Keys of some positions in a cache whose other numbers are poison."""

    def __init__(self, rng, shape, style, cache):
        self.n_heads, self.head_dim, self.first, self.n_pairs = shape
        self.style, self.cache = style, cache
        self.step = make_step(RUNS)
        self.step.rows["flags"][1] = 0  # inactive: stays as it is
        angles = rng.uniform(-500, 500, self.n_pairs)
        self.turn = np.stack([np.cos(angles), np.sin(angles)], axis=-1).ravel().astype(np.float32)
        self.kept = poisoned((self.step.n_pages, self.n_heads, PAGE, self.head_dim), DTYPE[cache])
        self.places = [
            ref.page_offsets(self.step, row["sequence"], row["position"]) for row in self.step.rows
        ]
        for page, place in self.places:
            self.kept[page, :, place] = rng.standard_normal((self.n_heads, self.head_dim))

    def rotated(self, target, turn=None, threads=1, rows=None):
        kept = self.kept.copy()
        step = make_step(RUNS)
        step.rows["flags"] = self.step.rows["flags"]
        if rows is not None:
            step.rows["flags"][[i for i in range(len(step.rows)) if i not in rows]] = 0
        numbers = (self.n_heads, self.head_dim, self.first, self.n_pairs, self.style)
        run(
            "kv_rotate",
            [self.turn if turn is None else turn, kept],
            pack_params("kv_rotate", *numbers, step.page_stride, step.page_base),
            step,
            On(target, threads, cache=self.cache),
        )
        return kept


@table(style=STYLES, cache=["f32", "f16"], shape=SHAPES)
def test_turns_the_pairs_of_the_rows_keys(target, rng, shape, cache, style):
    keys = Keys(rng, shape, style, cache)
    kept = keys.rotated(target)
    turning = slice(keys.first, keys.first + 2 * keys.n_pairs)
    untouched = np.ones(kept.shape, bool)
    for row, (page, place) in zip(keys.step.rows, keys.places, strict=True):
        if not row["flags"] & ACTIVE:
            continue
        before = keys.kept[None, page, :, place, turning].astype(np.float32)
        expected, bound = ref.rope(before, keys.turn[None], keys.n_pairs, style)
        if cache == "f16":
            bound = bound + np.abs(expected) * 2.0**-11 + 2.0**-25
        assert_within(kept[page, :, place, turning], expected[0], bound[0])
        untouched[page, :, place, turning] = False
    assert_same_bits(kept[untouched], keys.kept[untouched])
    assert_same_bits(keys.rotated(target, threads=3), kept)


@table(cache=["f32", "f16"])
def test_no_turn_changes_no_bit(target, rng, cache):
    keys = Keys(rng, (3, 40, 0, 20), 1, cache)
    none = np.tile(np.array([1, 0], np.float32), 20)
    assert_same_bits(keys.rotated(target, none), keys.kept)


def test_a_row_alone_has_the_bits_that_it_has_beside_others(target, rng):
    keys = Keys(rng, (2, 64, 0, 16), 1, "f16")
    together = keys.rotated(target)
    for index, (page, place) in enumerate(keys.places):
        alone = keys.rotated(target, rows={index})
        assert_same_bits(alone[page, :, place], together[page, :, place])
