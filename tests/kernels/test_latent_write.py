"""latent_write: the normed and the rotated part of compressed keys and values go to the cache."""

from __future__ import annotations

import numpy as np
import pytest
import reference as ref
from harness import (
    ACTIVE,
    PAGE,
    On,
    assert_same_bits,
    assert_within,
    make_step,
    pack_params,
    poisoned,
    run,
)
from latent_cases import DTYPE, RUNS, STYLES, angles_of, turned_or_not
from tables import table


class Written:
    """A row of each position, and what the cache holds of it."""

    def __init__(self, rng, rank, n_pairs, style, cache, rotates=True):
        self.step = make_step(RUNS)
        self.step.rows["flags"][1] = 0  # inactive: writes nothing
        self.rank, self.n_pairs, self.style, self.cache = rank, n_pairs, style, cache
        n = len(self.step.rows)
        self.latent = rng.standard_normal((n, rank + 2 * n_pairs)).astype(np.float32)
        self.norm = rng.uniform(0.5, 1.5, rank).astype(np.float32)
        self.angles = angles_of(rng, n, n_pairs) if rotates else None

    def run(self, target, threads=1):
        width = self.rank + 2 * self.n_pairs
        kept = poisoned((self.step.n_pages, 1, PAGE, width), DTYPE[self.cache])
        sizes = (self.rank, self.n_pairs, self.style, 0.01)
        run(
            "latent_write",
            [self.latent, self.norm, self.angles, kept],
            pack_params("latent_write", *sizes, self.step.page_stride, self.step.page_base),
            self.step,
            On(target, threads, cache=self.cache),
        )
        return kept

    def expected(self):
        normed, bound = ref.rms_norm(self.latent[:, : self.rank], self.norm, 0.01)
        turned, more = turned_or_not(
            self.latent[:, None, self.rank :], self.angles, self.n_pairs, self.style
        )
        return (
            np.concatenate([normed, turned[:, 0]], axis=1),
            np.concatenate([bound, more[:, 0]], axis=1),
        )


@table(
    {"rank, n_pairs": [(1, 1), (40, 4), (64, 16), (512, 32), (123, 5)]},
    style=[*STYLES, pytest.param(None, id="plain")],
    cache=["f32", "f16"],
)
def test_writes_the_normed_and_the_rotated_part(target, rng, rank, n_pairs, cache, style):
    written = Written(rng, rank, n_pairs, style or 0, cache, rotates=style is not None)
    kept = written.run(target)
    expected, bound = written.expected()
    if cache == "f16":
        bound = bound + np.abs(expected) * 2.0**-11 + 2.0**-25
    untouched = np.ones(kept.shape[:3], bool)
    for row, values, slack in zip(written.step.rows, expected, bound, strict=True):
        if row["flags"] & ACTIVE:
            page, place = ref.page_offsets(written.step, row["sequence"], row["position"])
            assert_within(kept[page, 0, place], values, slack)
            untouched[page, 0, place] = False
    nothing = poisoned(kept.shape, kept.dtype)
    assert_same_bits(kept[untouched], nothing[untouched])
    assert_same_bits(written.run(target, threads=3), kept)
