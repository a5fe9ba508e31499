"""span_attention: against float64, and bit for bit wherever a span lies and however it is cut."""

from __future__ import annotations

import numpy as np
import pytest
import reference as ref
from harness import On, Run, assert_same_bits, make_step, pack_params, run
from reference import AttentionShape
from tables import table

HEADS = [
    pytest.param(AttentionShape(1, 1, 1), id="1x1"),
    pytest.param(AttentionShape(12, 12, 32), id="12x32"),
    pytest.param(AttentionShape(7, 1, 40), id="gqa-7:1-40"),
    pytest.param(AttentionShape(6, 2, 80), id="gqa-3:1-80"),
    pytest.param(AttentionShape(40, 1, 20), id="gqa-40:1-20"),
    pytest.param(AttentionShape(2, 2, 256), id="2x256"),
]


class Setting:
    """Queries, keys and values of some spans."""

    def __init__(self, rng, shape: AttentionShape, lengths: list[int], *, causal=0, alibi=0.0):
        self.shape, self.causal, self.alibi = shape, causal, alibi
        self.step = make_step([Run(i, 0, n) for i, n in enumerate(lengths)])
        n = len(self.step.rows)

        def normal(heads):
            return rng.standard_normal((n, heads * shape.head_dim)).astype(np.float32)

        self.query = normal(shape.n_heads)
        self.key, self.value = normal(shape.n_kv_heads), normal(shape.n_kv_heads)

    def run(self, target, kind, *, threads=1, **part):
        shape = self.shape
        out = ref.activation_array(kind, len(self.query), shape.n_heads * shape.head_dim)
        sizes = (shape.n_heads, shape.n_kv_heads, shape.head_dim, shape.window, shape.scale)
        values = (*sizes, self.causal, self.alibi, self.alibi**0.5)
        run(
            "span_attention",
            [self.query, self.key, self.value, out],
            pack_params("span_attention", *values),
            self.step,
            On(target, threads, kind, row_class="many"),
            **part,
        )
        return out

    def expected(self, target):
        on_cpu = target.device == "cpu"
        block = 256 if on_cpu else 32  # rows that are computed together
        shape = self.shape
        out, bound = np.zeros(self.query.shape), np.zeros(self.query.shape)
        for span in self.step.spans:
            first, n = int(span["first_row"]), int(span["n_rows"])
            for r in range(n):
                window = shape.window or n
                end = r + 1 if self.causal else min(n, r + window + 1)
                seen = slice(first + max(0, r - window), first + end)
                distances = np.abs(np.arange(seen.start, seen.stop) - first - r)
                for h in range(shape.n_heads):
                    own = slice(h * shape.head_dim, (h + 1) * shape.head_dim)
                    kv = h // (shape.n_heads // shape.n_kv_heads)
                    theirs = slice(kv * shape.head_dim, (kv + 1) * shape.head_dim)
                    q, k, v = (
                        each.astype(np.float64)
                        for each in (
                            self.query[first + r, own],
                            self.key[seen, theirs],
                            self.value[seen, theirs],
                        )
                    )
                    if self.alibi:
                        # As one more number of each key, whose product is the bias.
                        bias = -slope(self.alibi, h, shape.n_heads) * distances / shape.scale
                        q = np.append(q, 1.0)
                        k = np.column_stack([k, bias])
                    out[first + r, own], bound[first + r, own] = ref.attend(
                        shape, q, k, v, -(-n // block), "f32", in_order=on_cpu
                    )
        return out, bound


def slope(first: float, head: int, n_heads: int) -> float:
    """ALiBi's, of any number of heads (Press et al., 2022)."""
    n = 2 ** (n_heads.bit_length() - 1)
    return first ** (head + 1) if head < n else first ** (0.5 * (2 * (head - n) + 1))


@table(shape=HEADS, lengths=[[1], [5, 1, 33], [70]])
def test_agrees_with_float64(target, rng, kind, shape, lengths):
    if kind == "q8_32" and shape.n_heads * shape.head_dim % 32:
        pytest.skip("rows of q8_32 are whole groups of 32")
    setting = Setting(rng, shape, lengths)
    expected, bound = setting.expected(target)
    ref.assert_activation(kind, setting.run(target, kind), expected, bound)


@table(window=[0, 1, 64, 300])
def test_long_spans_and_windows_on_both_sides(target, rng, window):
    setting = Setting(rng, AttentionShape(2, 1, 16, window), [257, 3, 520])
    expected, bound = setting.expected(target)
    ref.assert_activation("f32", setting.run(target, "f32"), expected, bound)


@table(window=[0, 64])
def test_causal_spans_see_nothing_behind_a_row(target, rng, window):
    setting = Setting(rng, AttentionShape(2, 1, 16, window), [257, 3], causal=1)
    expected, bound = setting.expected(target)
    ref.assert_activation("f32", setting.run(target, "f32"), expected, bound)


@table(n_heads=[4, 6])
def test_alibi_lowers_scores_with_the_distance(target, rng, n_heads):
    setting = Setting(rng, AttentionShape(n_heads, n_heads, 16), [70, 3], alibi=0.25)
    expected, bound = setting.expected(target)
    ref.assert_activation("f32", setting.run(target, "f32"), expected, bound)


@table(n=[*range(1, 18), 31, 32, 33, 63, 65])
def test_every_number_of_rows_around_a_register(target, rng, n):
    setting = Setting(rng, AttentionShape(3, 3, 13), [n])
    expected, bound = setting.expected(target)
    ref.assert_activation("f32", setting.run(target, "f32"), expected, bound)


def test_what_is_not_a_number_spoils_the_rows_that_see_it_and_no_others(target, rng):
    setting = Setting(rng, AttentionShape(2, 1, 16, window=4), [40, 9])
    clean = setting.run(target, "f32")
    setting.key[20] = np.nan
    found = setting.run(target, "f32")
    spoilt = np.isnan(found).all(axis=1)
    assert np.flatnonzero(spoilt).tolist() == list(range(16, 25))
    assert_same_bits(found[~spoilt], clean[~spoilt])


def test_a_span_has_the_same_bits_alone_and_beside_others(target, rng, kind):
    shape = AttentionShape(4, 2, 32)
    setting = Setting(rng, shape, [40, 300, 7])
    together = setting.run(target, kind)
    assert_same_bits(setting.run(target, kind, threads=3), together)
    for index, rows in enumerate([slice(0, 40), slice(40, 340), slice(340, 347)]):
        alone = Setting(rng, shape, [rows.stop - rows.start])
        alone.query, alone.key, alone.value = (
            each[rows] for each in (setting.query, setting.key, setting.value)
        )
        assert_same_bits(alone.run(target, kind), together[rows])
        part = {"first_row": rows.start, "n_rows": rows.stop - rows.start}
        out = setting.run(target, kind, first_span=index, n_spans=1, **part)
        assert_same_bits(out[rows], together[rows])
