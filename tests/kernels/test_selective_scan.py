"""selective_scan: the recurrence of Mamba-2 (Dao and Gu, 2024), whose state the cache keeps."""

from __future__ import annotations

import dataclasses

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


@dataclasses.dataclass
class Shape:
    n_heads: int
    head_dim: int
    state_dim: int
    n_groups: int
    limits: tuple[float, float] = (0.0, np.inf)
    factor: float = 1.0


SHAPES = [
    pytest.param(Shape(1, 1, 1, 1), id="one"),
    pytest.param(Shape(4, 64, 128, 1), id="granite"),
    pytest.param(Shape(8, 20, 16, 2), id="groups"),
    pytest.param(Shape(3, 7, 37, 3, (0.01, 0.5)), id="limits"),
    pytest.param(Shape(2, 5, 256, 1), id="widest"),
    pytest.param(Shape(6, 20, 48, 2, factor=0.34375), id="factor"),
]
RUNS = [
    pytest.param([Run(0, 0, 1)], id="first"),
    pytest.param([Run(1, 700, 1)], id="step"),
    pytest.param([Run(2, 0, 37), Run(0, 5, 3), Run(1, 300, 1)], id="three-texts"),
]


class Scanned:
    """Inputs of a step's rows, and the states of texts that have begun; all else is NaN."""

    def __init__(self, rng, shape, runs):
        self.shape = shape
        self.step = make_step(runs)
        n = len(self.step.rows)
        heads, dim, state = shape.n_heads, shape.head_dim, shape.state_dim
        self.inner = heads * dim
        width = self.inner + 2 * shape.n_groups * state
        self.input = rng.standard_normal((n, width)).astype(np.float32)
        self.times = poisoned((n, heads + 5))
        self.first = 3
        self.times[:, self.first : self.first + heads] = 3 * rng.standard_normal((n, heads))
        self.rate = -np.exp(rng.uniform(-2, 3, heads)).astype(np.float32)
        self.bias = rng.uniform(-8, 2, heads).astype(np.float32)
        self.skip = rng.standard_normal(heads).astype(np.float32)
        self.states = poisoned((self.step.n_pages, 2, heads, dim, state))
        for each in runs:
            if each.position > 0:
                self.states[self.page(each.sequence), each.position % 2] = rng.standard_normal(
                    (heads, dim, state)
                )

    def page(self, sequence):
        return int(ref.page_offsets(self.step, sequence, np.array(0))[0])

    def run(self, target, threads=1, states=None, **part):
        """What comes out, and the states then."""
        shape = self.shape
        out = poisoned((len(self.step.rows), self.inner))
        states = self.states.copy() if states is None else states
        run(
            "selective_scan",
            [self.input, self.times, self.rate, self.bias, self.skip, states, out],
            pack_params(
                "selective_scan",
                shape.n_heads,
                shape.head_dim,
                shape.state_dim,
                shape.n_groups,
                self.times.shape[1],
                self.first,
                *shape.limits,
                self.step.page_stride,
                self.step.page_base,
                shape.factor,
            ),
            self.step,
            On(target, threads, cache="f32", row_class="many"),
            **part,
        )
        return out, states

    def expected(self):
        """What comes out, the states, and a bound of each, carried along with the state."""
        shape = self.shape
        heads, dim, state = shape.n_heads, shape.head_dim, shape.state_dim
        out = np.zeros((len(self.step.rows), heads, dim))
        out_bound = np.zeros_like(out)
        states = self.states.astype(np.float64)
        bounds = np.zeros_like(states)
        of_groups = shape.n_groups * state
        for r, row in enumerate(self.step.rows):
            page = self.page(row["sequence"])
            values = self.input[r].astype(np.float64)
            x = values[: self.inner].reshape(heads, dim)
            b, c = (
                np.repeat(part.reshape(-1, state), heads // shape.n_groups, axis=0)[:, None, :]
                for part in (values[self.inner : -of_groups], values[-of_groups:])
            )
            steps = shape.factor * self.times[r, self.first : self.first + heads].astype(np.float64)
            raw = steps + self.bias
            time = np.clip(np.logaddexp(0, raw), *shape.limits)
            time_error = ref.growth(8) + np.abs(raw) * ref.UNIT  # relative
            if shape.factor != 1:  # it rounds, too
                time_error = time_error + ref.UNIT * np.abs(steps)
            exponent = time * self.rate
            keep = np.exp(exponent)[:, None, None]
            keep_error = ref.growth(4) + np.abs(exponent) * (time_error + 2 * ref.UNIT)
            keep_error = keep_error[:, None, None]
            added = (time[:, None] * x)[:, :, None] * b
            position = int(row["position"])
            before, after = (page, position % 2), (page, (position + 1) % 2)
            if position == 0:
                states[before] = bounds[before] = 0
            kept = keep * states[before]
            states[after] = kept + added
            bounds[after] = (
                keep * (1 + keep_error) * bounds[before]
                + keep_error * np.abs(kept)
                + (time_error[:, None, None] + ref.growth(3)) * np.abs(added)
                + ref.growth(1) * np.abs(states[after])
                + 2 * ref.TINY
            )
            products = states[after] * c
            skipped = self.skip[:, None] * x
            out[r] = products.sum(axis=-1) + skipped
            out_bound[r] = (
                (bounds[after] * np.abs(c)).sum(axis=-1)
                + ref.growth(state / ref.LANES + 6) * np.abs(products).sum(axis=-1)
                + ref.growth(2) * (np.abs(skipped) + np.abs(out[r]))
                + ref.TINY
            )
        flat = (len(self.step.rows), self.inner)
        return out.reshape(flat), out_bound.reshape(flat), states, bounds


@table(shape=SHAPES, runs=RUNS)
def test_rows_move_the_state_on(target, rng, shape, runs):
    scanned = Scanned(rng, shape, runs)
    expected, bound, expected_states, state_bound = scanned.expected()
    out, states = scanned.run(target)
    assert_within(out, expected, bound)
    others = np.ones(len(states), bool)
    for each in runs:
        page, end = scanned.page(each.sequence), each.position + each.n_rows
        others[page] = False
        for n in range(max(end - 1, 1), end + 1):  # of positions; before the first there is none
            found = states[page, n % 2]
            assert_within(found, expected_states[page, n % 2], state_bound[page, n % 2])
    assert_same_bits(states[others], scanned.states[others])


def test_small_and_large_steps_of_time_keep_their_digits(target, rng):
    scanned = Scanned(rng, Shape(24, 4, 8, 1), [Run(0, 3, 40)])
    times = np.linspace(-60, 60, scanned.times[:, 3:-2].size)
    scanned.times[:, 3:-2] = times.reshape(40, 24)
    scanned.bias[:] = 0
    scanned.rate = -np.exp(rng.uniform(-6, 1, 24)).astype(np.float32)
    expected, bound, _, _ = scanned.expected()
    out, _ = scanned.run(target)
    assert_within(out, expected, bound)


def test_a_text_has_the_same_bits_alone_in_pieces_and_beside_others(target, rng):
    shape = Shape(3, 40, 96, 1)
    scanned = Scanned(rng, shape, [Run(0, 0, 20), Run(1, 9, 3), Run(2, 0, 5)])
    together, states = scanned.run(target)
    again, states_again = scanned.run(target, threads=3)
    assert_same_bits(again, together)
    assert_same_bits(states_again, states)
    for span, rows in enumerate([slice(0, 20), slice(20, 23), slice(23, 28)]):
        part = {"first_row": rows.start, "n_rows": rows.stop - rows.start}
        alone, _ = scanned.run(target, first_span=span, n_spans=1, **part)
        assert_same_bits(alone[rows], together[rows])

    pieces = Scanned(rng, shape, [Run(0, 0, 1), Run(0, 1, 12), Run(0, 13, 7)])
    for name in ("rate", "bias", "skip"):
        setattr(pieces, name, getattr(scanned, name))
    pieces.input, pieces.times = scanned.input[:20], scanned.times[:20]
    kept = pieces.states.copy()
    for span, rows in enumerate([slice(0, 1), slice(1, 13), slice(13, 20)]):
        part = {"first_row": rows.start, "n_rows": rows.stop - rows.start}
        out, _ = pieces.run(target, states=kept, first_span=span, n_spans=1, **part)
        assert_same_bits(out[rows], together[rows])
    assert_same_bits(kept[pieces.page(0)], states[scanned.page(0)])


def test_the_last_row_may_run_again(target, rng):
    scanned = Scanned(rng, Shape(2, 24, 40, 1), [Run(0, 7, 6)])
    whole, states = scanned.run(target)
    again = Scanned(rng, scanned.shape, [Run(0, 12, 1)])
    for name in ("rate", "bias", "skip"):
        setattr(again, name, getattr(scanned, name))
    again.input, again.times = scanned.input[5:], scanned.times[5:]
    kept = states.copy()
    for _ in range(2):
        out, _ = again.run(target, states=kept)
        assert_same_bits(out, whole[5:])
        assert_same_bits(kept, states)


def test_a_row_that_is_not_active_changes_nothing(target, rng):
    scanned = Scanned(rng, Shape(2, 8, 48, 1), [Run(0, 4, 6), Run(1, 8, 2)])
    scanned.step.rows["flags"][2:6] = 0
    scanned.input[2:6] = np.nan
    out, states = scanned.run(target)
    assert (out[2:6] == 0).all()
    short = Scanned(rng, scanned.shape, [Run(0, 4, 2), Run(1, 8, 2)])
    for name in ("rate", "bias", "skip", "states"):
        setattr(short, name, getattr(scanned, name))
    rows = [0, 1, 6, 7]
    short.input, short.times = scanned.input[rows], scanned.times[rows]
    alone, states_alone = short.run(target)
    assert_same_bits(alone, out[rows])
    assert_same_bits(states_alone, states)
