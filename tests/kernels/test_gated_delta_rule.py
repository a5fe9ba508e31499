"""gated_delta_rule (Yang et al., 2024): heads whose states are matrices that every row changes.

Per channel (Kimi Delta Attention, 2025) each number of a key fades by a factor of its own.
"""

from __future__ import annotations

import numpy as np
import pytest
import reference as ref
from harness import On, Run, assert_same_bits, assert_within, make_step, pack_params, poisoned, run
from tables import table

# n_key_heads, n_value_heads, key_dim, value_dim
SHAPES = [
    pytest.param((1, 1, 1, 1), id="1"),
    pytest.param((2, 4, 32, 64), id="shared"),
    pytest.param((2, 2, 128, 128), id="qwen"),
    pytest.param((3, 6, 20, 77), id="rest"),
]
RUNS = [
    pytest.param([Run(0, 0, 1)], id="first"),
    pytest.param([Run(1, 701, 1)], id="step"),
    pytest.param([Run(2, 0, 21), Run(0, 5, 2), Run(1, 300, 1), Run(3, 8, 3)], id="four-texts"),
]


class Recurrent:
    """A step's rows, and the states of texts that have begun; all else of the pages is NaN."""

    def __init__(self, rng, shape, runs, tiled=False, channels=False):
        self.shape, self.tiled, self.channels = shape, tiled, channels
        n_keys, n_values, key_dim, value_dim = shape
        self.step = make_step(runs)
        n = len(self.step.rows)
        width = 2 * n_keys * key_dim + n_values * value_dim
        self.input = rng.standard_normal((n, width)).astype(np.float32)
        n_decays = n_values * (key_dim if channels else 1)
        self.a = (3 * rng.standard_normal((n, n_decays))).astype(np.float32)
        self.b = (3 * rng.standard_normal((n, n_values))).astype(np.float32)
        self.rate = -rng.uniform(0.01, 2, n_values).astype(np.float32)
        self.bias = rng.standard_normal(n_decays).astype(np.float32)
        self.pages = poisoned((self.step.n_pages, 2, n_values, value_dim, key_dim))
        for each in runs:
            if each.position > 0:
                self.state(self.pages, each.sequence, each.position)[...] = rng.standard_normal(
                    (n_values, value_dim, key_dim)
                )

    def page(self, sequence):
        return int(ref.page_offsets(self.step, sequence, np.array(0))[0])

    def state(self, pages, sequence, n):
        """A text's after n positions, a view."""
        return pages[self.page(sequence), n % 2]

    def run(self, target, threads=1, pages=None, **part):
        """What comes out, and the pages then."""
        n_keys, n_values, key_dim, value_dim = self.shape
        out = poisoned((len(self.step.rows), n_values * value_dim))
        pages = self.pages.copy() if pages is None else pages
        params = pack_params(
            "gated_delta_rule",
            *(n_keys, n_values, key_dim, value_dim, self.tiled),
            *(self.step.page_stride, self.step.page_base, self.channels),
        )
        operands = [self.input, self.a, self.b, self.rate, self.bias, pages, out]
        on = On(target, threads, cache="f32", row_class="many")
        run("gated_delta_rule", operands, params, self.step, on, **part)
        return out, pages

    def expected(self):
        """What comes out and its bound; states after each row and theirs, one per row of a state.

        What was wrong before a row is not more behind it: the rule takes from a state.
        """
        n_keys, n_values, key_dim, value_dim = self.shape
        n = len(self.step.rows)
        parts = np.split(self.input.astype(np.float64), [n_keys * key_dim, 2 * n_keys * key_dim], 1)
        heads = np.arange(n_values)
        of_keys = heads % n_keys if self.tiled else heads // (n_values // n_keys)

        def normed(x):
            x = x.reshape(n, n_keys, key_dim)[:, of_keys]
            return x / np.sqrt((x * x).sum(-1, keepdims=True) + 1e-6)

        query, key = normed(parts[0]) / np.sqrt(key_dim), normed(parts[1])
        value = parts[2].reshape(n, n_values, value_dim)
        # Of each number of a key, or of all of them.
        raw = (self.a.astype(np.float64) + self.bias).reshape(n, n_values, -1)
        rate = self.rate.astype(np.float64)[:, None]
        time = np.logaddexp(0, raw)
        keep, share = np.exp(rate * time), 1 / (1 + np.exp(-self.b.astype(np.float64)))
        out = np.zeros((n, n_values, value_dim))
        bound, states, state_bounds = np.zeros(out.shape), [], []
        for span in self.step.spans:
            first = span["first_row"]
            position = int(self.step.rows["position"][first])
            state = np.zeros((n_values, value_dim, key_dim))
            if position > 0:
                state = self.state(self.pages, span["sequence"], position).astype(np.float64)
            wrong = np.zeros((n_values, value_dim))
            for r in range(first, first + span["n_rows"]):
                fading, part = keep[r][:, None, :], share[r][:, None]
                k, q = key[r][:, None, :], query[r][:, None, :]
                old = fading * state
                change = part * (value[r] - (old * k).sum(-1))
                state = old + change[:, :, None] * k
                seen = (np.abs(old) * np.abs(k)).sum(-1)
                size = np.abs(old) + np.abs(k) * (part * (np.abs(value[r]) + seen))[:, :, None]
                # Sums, exponentials, and what is wrong in the exponent.
                roundings = key_dim + 17 + np.abs(rate) * time[r] * (10 + np.abs(raw[r]))
                most = roundings.max(-1, keepdims=True)
                wrong = wrong * fading.max(-1) + ref.growth(most) * np.linalg.norm(size, axis=-1)
                out[r] = (state * q).sum(-1)
                bound[r] = np.linalg.norm(q, axis=-1) * wrong * (1 + 1e-6)
                bound[r] += ref.growth(2 * key_dim + 16) * (np.abs(state) * np.abs(q)).sum(-1)
                states.append(state)
                state_bounds.append(wrong[:, :, None] + ref.TINY)
        return out.reshape(n, -1), bound.reshape(n, -1) + ref.TINY, states, state_bounds


@table(shape=SHAPES, runs=RUNS, channels=[False, True], tiled=[False, True])
def test_agrees_with_float64(target, rng, shape, runs, tiled, channels):
    recurrent = Recurrent(rng, shape, runs, tiled, channels)
    expected, bound, states, state_bounds = recurrent.expected()
    out, pages = recurrent.run(target)
    assert_within(out, expected, bound)
    others = np.ones(len(pages), bool)
    for span in recurrent.step.spans:
        others[recurrent.page(span["sequence"])] = False
        for r in range(span["first_row"], span["first_row"] + span["n_rows"])[-2:]:
            row = recurrent.step.rows[r]
            state = recurrent.state(pages, row["sequence"], row["position"] + 1)
            assert_within(state, states[r], np.broadcast_to(state_bounds[r], state.shape))
    assert_same_bits(pages[others], recurrent.pages[others])


def part_of(recurrent, rng, runs, rows):
    """The same heads, of these rows of it."""
    part = Recurrent(rng, recurrent.shape, runs, channels=recurrent.channels)
    for name in ("input", "a", "b"):
        setattr(part, name, getattr(recurrent, name)[rows])
    part.rate, part.bias = recurrent.rate, recurrent.bias
    return part


@table(channels=[False, True])
def test_a_text_has_the_same_bits_alone_in_pieces_and_beside_others(target, rng, channels):
    shape = (2, 4, 24, 20)
    runs = [Run(0, 0, 20), Run(1, 9, 3), Run(2, 0, 5)]
    recurrent = Recurrent(rng, shape, runs, channels=channels)
    together, pages = recurrent.run(target)
    again, pages_again = recurrent.run(target, threads=3)
    assert_same_bits(again, together)
    assert_same_bits(pages_again, pages)
    for span, rows in enumerate([slice(0, 20), slice(20, 23), slice(23, 28)]):
        part = {"first_row": rows.start, "n_rows": rows.stop - rows.start}
        alone, _ = recurrent.run(target, first_span=span, n_spans=1, **part)
        assert_same_bits(alone[rows], together[rows])

    runs = [Run(0, 0, 1), Run(0, 1, 12), Run(0, 13, 6), Run(0, 19, 1)]
    pieces = part_of(recurrent, rng, runs, slice(0, 20))
    kept = pieces.pages.copy()
    cuts = [slice(0, 1), slice(1, 13), slice(13, 19), slice(19, 20), slice(19, 20)]
    for span, rows in enumerate(cuts):
        # The last row runs twice: the state before it is still there.
        part = {"first_row": rows.start, "n_rows": rows.stop - rows.start}
        out, _ = pieces.run(target, pages=kept, first_span=min(span, 3), n_spans=1, **part)
        assert_same_bits(out[rows], together[rows])
    for n in (19, 20):
        assert_same_bits(pieces.state(kept, 0, n), recurrent.state(pages, 0, n))


def test_keys_and_queries_of_zeros_have_a_length(target, rng):
    recurrent = Recurrent(rng, (1, 2, 8, 16), [Run(0, 3, 4)])
    recurrent.input[1:3, :16] = 0
    expected, bound, _, _ = recurrent.expected()
    out, _ = recurrent.run(target)
    assert_within(out, expected, bound)


@table(channels=[False, True])
def test_a_row_that_is_not_active_changes_nothing(target, rng, channels):
    runs = [Run(0, 4, 6), Run(1, 8, 2)]
    recurrent = Recurrent(rng, (1, 2, 16, 32), runs, channels=channels)
    recurrent.step.rows["flags"][2:6] = 0
    recurrent.input[2:6] = np.nan
    out, pages = recurrent.run(target)
    assert (out[2:6] == 0).all()
    short = part_of(recurrent, rng, [Run(0, 4, 2), Run(1, 8, 2)], [0, 1, 6, 7])
    short.pages = recurrent.pages
    alone, pages_alone = short.run(target)
    assert_same_bits(alone, out[[0, 1, 6, 7]])
    assert_same_bits(pages_alone, pages)


def test_channels_that_fade_alike_fade_as_a_head_does(target, rng):
    head = Recurrent(rng, (2, 4, 24, 20), [Run(0, 3, 5)])
    channels = Recurrent(rng, head.shape, [Run(0, 3, 5)], channels=True)
    for name in ("input", "b", "rate", "pages"):
        setattr(channels, name, getattr(head, name))
    channels.a, channels.bias = np.repeat(head.a, 24, axis=1), np.repeat(head.bias, 24)
    expected, bound, _, _ = head.expected()
    out, _ = channels.run(target)
    assert_within(out, expected, bound)
