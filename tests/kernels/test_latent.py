"""Multi-head latent attention: latent_write, latent_query, latent_attention, latent_value."""

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
    plain_step,
    poisoned,
    run,
)
from reference import AttentionShape

DTYPE = {"f32": np.float32, "f16": np.float16}
RUNS = [Run(1, 254, 4), Run(0, 0, 1), Run(2, 600, 2)]
FLOATS = ["f32", "f16", "bf16"]
STYLES = [pytest.param(0, id="interleaved"), pytest.param(1, id="halves")]


def angles_of(rng, n_rows, n_pairs):
    turn = rng.uniform(0, 6, (n_rows, n_pairs))
    return np.stack([np.cos(turn), np.sin(turn)], axis=-1).reshape(n_rows, -1).astype(np.float32)


# --- latent_write ---------------------------------------------------------------------------------


class Written:
    """A row of each position, and what the cache holds of it."""

    def __init__(self, rng, rank, n_pairs, style, cache):
        self.step = make_step(RUNS)
        self.step.rows["flags"][1] = 0  # inactive: writes nothing
        self.rank, self.n_pairs, self.style, self.cache = rank, n_pairs, style, cache
        n = len(self.step.rows)
        self.latent = rng.standard_normal((n, rank + 2 * n_pairs)).astype(np.float32)
        self.norm = rng.uniform(0.5, 1.5, rank).astype(np.float32)
        self.angles = angles_of(rng, n, n_pairs)

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
        turned, more = ref.rope(
            self.latent[:, None, self.rank :], self.angles, self.n_pairs, self.style
        )
        return (
            np.concatenate([normed, turned[:, 0]], axis=1),
            np.concatenate([bound, more[:, 0]], axis=1),
        )


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("cache", ["f32", "f16"])
@pytest.mark.parametrize(("rank", "n_pairs"), [(1, 1), (40, 4), (64, 16), (512, 32), (123, 5)])
def test_writes_the_normed_and_the_rotated_part(target, rng, rank, n_pairs, cache, style):
    written = Written(rng, rank, n_pairs, style, cache)
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


# --- latent_query and latent_value ----------------------------------------------------------------

SHAPES = [
    pytest.param((1, 8, 1, 1, 1), id="1"),
    pytest.param((3, 20, 5, 40, 12), id="odd"),
    pytest.param((6, 32, 16, 64, 24), id="6x32"),
    pytest.param((5, 9, 4, 100, 32), id="rest"),
    pytest.param((2, 128, 32, 512, 128), id="deepseek"),
]


class Heads:
    """Queries and what absorbs them: kv_b [heads, n_plain + value_dim, rank], or its parts."""

    def __init__(self, rng, shape, form, number):
        self.n_heads, self.n_plain, self.n_pairs, self.rank, self.value_dim = shape
        self.is_transposed = form == "k_b"
        k = rng.standard_normal((self.n_heads, self.n_plain, self.rank))
        v = rng.standard_normal((self.n_heads, self.value_dim, self.rank))
        scale = 1 / np.sqrt(self.rank)
        if self.is_transposed:
            rows = k.swapaxes(1, 2).reshape(-1, self.n_plain) * scale
            self.w_k = ref.float_weight(number, rows)
            self.w_v = ref.float_weight(number, v.reshape(-1, self.rank) * scale)
            self.head_rows, self.first_row = (self.rank, self.value_dim), 0
            self.k = self.w_k.values.reshape(self.n_heads, self.rank, -1).swapaxes(1, 2)
            self.v = self.w_v.values.reshape(self.n_heads, -1, self.rank)
        else:
            both = np.concatenate([k, v], axis=1)
            self.w_k = self.w_v = ref.float_weight(number, both.reshape(-1, self.rank) * scale)
            self.head_rows, self.first_row = (both.shape[1],) * 2, self.n_plain
            values = self.w_k.values.reshape(both.shape)
            self.k, self.v = values[:, : self.n_plain], values[:, self.n_plain :]

    def query(self, target, rows, angles, style, threads=1, **part):
        out = poisoned((len(rows), self.n_heads * (self.rank + 2 * self.n_pairs)))
        sizes = (self.n_heads, self.n_plain, self.n_pairs, self.rank, style, self.head_rows[0])
        run(
            "latent_query",
            [rows, self.w_k, angles, out],
            pack_params("latent_query", *sizes, int(self.is_transposed)),
            plain_step(len(rows)),
            On(target, threads, row_class="many"),
            **part,
        )
        return out

    def expected_query(self, rows, angles, style):
        heads = rows.astype(np.float64).reshape(len(rows), self.n_heads, -1)
        plain = heads[..., : self.n_plain]
        absorbed = np.einsum("rhj,hji->rhi", plain, self.k)
        magnitude = np.einsum("rhj,hji->rhi", np.abs(plain), np.abs(self.k))
        turned, bound = ref.rope(heads[..., self.n_plain :], angles, self.n_pairs, style)
        n = len(rows)
        return (
            np.concatenate([absorbed, turned], axis=2).reshape(n, -1),
            np.concatenate([ref.growth(self.n_plain + 2) * magnitude, bound], axis=2).reshape(n, -1)
            + self.n_plain * ref.TINY,
        )

    def value(self, target, rows, kind, threads=1, **part):
        out = ref.activation_array(kind, len(rows), self.n_heads * self.value_dim)
        sizes = (self.n_heads, self.rank, self.value_dim, self.head_rows[1], self.first_row)
        run(
            "latent_value",
            [rows, self.w_v, out],
            pack_params("latent_value", *sizes),
            plain_step(len(rows)),
            On(target, threads, kind, row_class="many"),
            **part,
        )
        return out

    def expected_value(self, rows):
        heads = rows.astype(np.float64).reshape(len(rows), self.n_heads, self.rank)
        magnitude = np.einsum("rhi,hji->rhj", np.abs(heads), np.abs(self.v))
        return (
            np.einsum("rhi,hji->rhj", heads, self.v).reshape(len(rows), -1),
            (ref.growth(self.rank / ref.LANES + 7) * magnitude).reshape(len(rows), -1)
            + self.rank * ref.TINY,
        )

    def rows(self, rng, n):
        width = self.n_heads * (self.n_plain + 2 * self.n_pairs)
        return rng.standard_normal((n, width)).astype(np.float32)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("number", FLOATS)
@pytest.mark.parametrize("form", ["kv_b", "k_b"])
@pytest.mark.parametrize("shape", SHAPES)
def test_queries_go_through_the_keys_matrix(target, rng, shape, form, number, style):
    heads = Heads(rng, shape, form, number)
    rows, angles = heads.rows(rng, 3), angles_of(rng, 3, heads.n_pairs)
    expected, bound = heads.expected_query(rows, angles, style)
    assert_within(heads.query(target, rows, angles, style), expected, bound)


@pytest.mark.parametrize("form", ["kv_b", "k_b"])
def test_queries_have_the_same_bits_alone_and_beside_others(target, rng, form):
    heads = Heads(rng, (3, 20, 5, 72, 12), form, "f32")
    rows, angles = heads.rows(rng, 37), angles_of(rng, 37, heads.n_pairs)
    together = heads.query(target, rows, angles, 0)
    assert_same_bits(heads.query(target, rows, angles, 0, threads=3), together)
    for first, n in [(0, 1), (5, 1), (7, 20), (36, 1)]:
        alone = heads.query(target, rows, angles, 0, first_row=first, n_rows=n)
        assert_same_bits(alone[first : first + n], together[first : first + n])


@pytest.mark.parametrize("number", FLOATS)
@pytest.mark.parametrize("form", ["kv_b", "k_b"])
@pytest.mark.parametrize("shape", SHAPES)
def test_values_come_from_the_values_matrix(target, rng, shape, form, number):
    heads = Heads(rng, shape, form, number)
    rows = rng.standard_normal((3, heads.n_heads * heads.rank)).astype(np.float32)
    expected, bound = heads.expected_value(rows)
    assert_within(heads.value(target, rows, "f32"), expected, bound)


@pytest.mark.parametrize("number", FLOATS)
@pytest.mark.parametrize(("n_heads", "value_dim"), [(4, 32), (6, 16), (8, 12), (3, 96)])
def test_values_in_every_kind(target, rng, kind, n_heads, value_dim, number):
    heads = Heads(rng, (n_heads, 8, 4, 64, value_dim), "kv_b", number)
    rows = rng.standard_normal((19, n_heads * heads.rank)).astype(np.float32)
    expected, bound = heads.expected_value(rows)
    together = heads.value(target, rows, kind)
    ref.assert_activation(kind, together, expected, bound)
    assert_same_bits(heads.value(target, rows, kind, threads=3), together)
    for first, n in [(0, 1), (7, 9), (18, 1)]:
        alone = heads.value(target, rows, kind, first_row=first, n_rows=n)
        assert_same_bits(alone[first : first + n], together[first : first + n])


# --- latent_attention -----------------------------------------------------------------------------

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


@pytest.mark.parametrize("cache", ["f32", "f16"])
@pytest.mark.parametrize("shape", ATTENTIONS)
@pytest.mark.parametrize(
    "runs",
    [
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
