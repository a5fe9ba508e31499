"""attention: against float64 over pages in shuffled order, and bit for bit however it is cut."""

from __future__ import annotations

import numpy as np
import pytest
import reference as ref
from harness import NONE, PAGE, On, Run, assert_same_bits, make_step, pack_params, run
from reference import AttentionShape
from tables import table

DTYPE = {"f32": np.float32, "f16": np.float16}


class Setting:
    """A query per row, and caches full of numbers; what no row may see is NaN."""

    def __init__(
        self, rng, shape: AttentionShape, runs: list[Run], cache: str, scale: float = 1.0, **sizes
    ):
        self.shape, self.cache = shape, cache
        self.step = make_step(runs, **sizes)
        heads = (self.step.n_pages, shape.n_kv_heads, PAGE, shape.head_dim)
        self.keys = (rng.standard_normal(heads) * scale).astype(DTYPE[cache])
        self.values = (rng.standard_normal(heads) * scale).astype(DTYPE[cache])
        width = shape.n_heads * shape.head_dim
        self.query = rng.standard_normal((len(self.step.rows), width)).astype(np.float32)
        self.poison_unseen()

    def poison_unseen(self) -> None:
        """Pages that every row's window has left behind may be anybody's: they have no number."""
        rows, window = self.step.rows, self.shape.window
        for sequence in set(rows["sequence"].tolist()) if window else ():
            before = int(rows["position"][rows["sequence"] == sequence].min()) + 1
            first = self.step.page_base + sequence * self.step.page_stride
            self.step.pages[first : first + max(0, before - window) // PAGE] = NONE
        seen = np.zeros((self.step.n_pages, PAGE), bool)
        for row in rows:
            begin = max(0, int(row["position"]) + 1 - window) if window else 0
            positions = np.arange(begin, int(row["kv_length"]))
            seen[ref.page_offsets(self.step, int(row["sequence"]), positions)] = True
        for cache in (self.keys, self.values):
            np.moveaxis(cache, 2, 1)[~seen] = np.nan

    def expected(self, **options):
        return ref.attention(self.shape, self.query, self.keys, self.values, self.step, **options)

    def run(self, target, kind, step=None, *, threads=1, row_class="", **part):
        step = step or self.step
        shape = self.shape
        out = ref.activation_array(kind, len(step.rows), shape.n_heads * shape.head_dim)
        run(
            "attention",
            [self.query, self.keys, self.values, out],
            pack_params(
                "attention",
                shape.n_heads,
                shape.n_kv_heads,
                shape.head_dim,
                shape.window,
                shape.scale,
                shape.soft_cap,
                step.page_stride,
                step.page_base,
            ),
            step,
            On(target, threads, kind, self.cache, row_class),
            **part,
        )
        return out


HEADS = [
    pytest.param(AttentionShape(1, 1, 1), id="1x1"),
    pytest.param(AttentionShape(7, 1, 40), id="gqa-7:1-40"),
    pytest.param(AttentionShape(4, 4, 64), id="4x64"),
    pytest.param(AttentionShape(6, 2, 80), id="gqa-3:1-80"),
    pytest.param(AttentionShape(4, 2, 128), id="gqa-2:1-128"),
    pytest.param(AttentionShape(40, 1, 20), id="gqa-40:1-20"),
    pytest.param(AttentionShape(3, 1, 200), id="gqa-3:1-200"),
    pytest.param(AttentionShape(2, 2, 256), id="2x256"),
    pytest.param(AttentionShape(4, 2, 512), id="4x512"),
]
WINDOWS_AND_CAPS = [
    AttentionShape(6, 2, 40, window=1),
    AttentionShape(6, 2, 40, window=33),
    AttentionShape(6, 2, 40, window=257),
    AttentionShape(4, 2, 64, soft_cap=0.5),
    AttentionShape(4, 2, 64, soft_cap=30.0),
]
RUNS = [
    pytest.param([Run(0, 0, 1)], id="first"),
    pytest.param([Run(1, 254, 1), Run(0, 255, 1), Run(2, 256, 1)], id="page-edges"),
    pytest.param([Run(0, 600, 2), Run(1, 3, 17)], id="two-sequences"),
    pytest.param([Run(0, 200, 70)], id="70-rows-over-an-edge"),
]


@table(shape=HEADS, runs=RUNS, cache=["f32", "f16"], functions=("shape", "runs", "cache"))
def test_agrees_with_float64(target, rng, shape, runs, cache):
    setting = Setting(rng, shape, runs, cache)
    expected, bound = setting.expected()
    ref.assert_activation("f32", setting.run(target, "f32"), expected, bound)


@pytest.mark.kind("q8_32")
@table(
    runs=RUNS,
    shape=[
        AttentionShape(4, 4, 64),
        AttentionShape(8, 8, 20),  # eight heads make five groups of 32: no head's own
        AttentionShape(16, 2, 80),
        AttentionShape(6, 3, 16),  # units of two kv heads, where the last has one left
    ],
)
def test_rounds_to_q8_32(target, rng, shape, runs):
    setting = Setting(rng, shape, runs, "f16")
    expected, bound = setting.expected()
    out = setting.run(target, "q8_32", row_class="few")
    ref.assert_activation("q8_32", out, expected, bound)


WHOLE_NUMBERS = [
    *HEADS,
    pytest.param(AttentionShape(8, 8, 20), id="heads-share-groups-of-32"),
    pytest.param(AttentionShape(16, 2, 80), id="gqa-8:1-80"),
    pytest.param(AttentionShape(6, 3, 16), id="units-of-two-kv-heads-and-one-left"),
    pytest.param(AttentionShape(3, 1, 20), id="a-group-of-32-and-one-not-full"),
]


@pytest.mark.kind("q16_32")
@table(shape=WHOLE_NUMBERS, runs=RUNS, meet=1)
def test_multiplies_in_whole_numbers(target, rng, shape, runs):
    setting = Setting(rng, shape, runs, "f16")
    expected, bound = setting.expected(kind="q16_32")
    out = setting.run(target, "q16_32", row_class="many")
    ref.assert_activation("q16_32", out, expected, bound)
    width = shape.n_heads * shape.head_dim
    if width % 32 != 0:
        return
    # The same float32 numbers in both kinds, each rounded to half a code of its own.
    codes, scale = ref.split_q16_32(out, width)
    fine, half_a_code = codes * scale[..., None].astype(np.float64), scale[..., None] / 2
    codes, scale, _ = ref.split_q8_32(setting.run(target, "q8_32", row_class="many"), width)
    coarse = codes.reshape(fine.shape) * scale[..., None].astype(np.float64)
    assert (np.abs(coarse - fine) <= half_a_code + scale[..., None] * (0.5 + 2.0**-16)).all()
    largest = np.abs(fine).max(axis=2)
    assert (np.abs(scale * 127.0 - largest) <= half_a_code[..., 0] + largest * 2.0**-20).all()


@pytest.mark.kind("q16_32")
@table(scale=[1e-7, 3.0, 1000.0], shape=WINDOWS_AND_CAPS)
def test_multiplies_in_whole_numbers_what_a_row_sees(target, rng, shape, scale):
    setting = Setting(rng, shape, [Run(0, 240, 50), Run(1, 600, 1)], "f16", scale=scale)
    expected, bound = setting.expected(kind="q16_32")
    out = setting.run(target, "q16_32", row_class="many")
    ref.assert_activation("q16_32", out, expected, bound)


@pytest.mark.kind("q16_32")
def test_whole_numbers_of_values_that_differ_in_size(target, rng):
    """A value row has its own scale: large ones leave small ones of other positions their bits."""
    setting = Setting(rng, AttentionShape(2, 1, 32), [Run(0, 0, 40)], "f16", scale=1e-3)
    setting.values[:, :, 33] *= np.float16(2**15)
    setting.values[:, :, 7] = 0
    expected, bound = setting.expected(kind="q16_32")
    out = setting.run(target, "q16_32", row_class="many")
    ref.assert_activation("q16_32", out, expected, bound)


@pytest.mark.kind("q16_32")
@table(operand=["query", "keys", "values"], bad=[np.nan, np.inf])
def test_whole_numbers_keep_what_is_not_finite_to_the_rows_that_see_it(target, rng, operand, bad):
    setting = Setting(rng, AttentionShape(2, 1, 32), [Run(0, 10, 12)], "f16")
    clean = setting.run(target, "q16_32", row_class="many")
    page, place = ref.page_offsets(setting.step, 0, 21)
    if operand == "query":
        setting.query[11, [3, 40]] = bad
    else:
        getattr(setting, operand)[page, :, place, 3] = bad
    out = setting.run(target, "q16_32", row_class="many")
    assert_same_bits(out[:-1], clean[:-1])
    assert np.isnan(ref.split_q16_32(out, 64)[1][-1]).all()


BFLOATS = ["bf16", "bf16_pair"]


@pytest.mark.kind("bf16")
@table(runs=RUNS, shape=HEADS, bfloats=BFLOATS)
def test_multiplies_in_bf16(target, rng, shape, runs, bfloats):
    setting = Setting(rng, shape, runs, "f16")
    expected, bound = setting.expected(kind=bfloats)
    out = setting.run(target, bfloats, row_class="many")
    ref.assert_activation(bfloats, out, expected, bound)


@pytest.mark.kind("bf16")
@table(shape=WINDOWS_AND_CAPS, bfloats=BFLOATS)
def test_multiplies_in_bf16_what_a_row_sees(target, rng, shape, bfloats):
    setting = Setting(rng, shape, [Run(0, 240, 50), Run(1, 600, 1)], "f16", scale=3.0)
    expected, bound = setting.expected(kind=bfloats)
    out = setting.run(target, bfloats, row_class="many")
    ref.assert_activation(bfloats, out, expected, bound)


@table(window=[1, 2, 7, 255, 256, 257, 400])
def test_a_window_starts_at_the_right_position(target, rng, window):
    """What lies outside any row's window is NaN, so a step too far shows at once."""
    shape = AttentionShape(6, 2, 40, window=window)
    setting = Setting(rng, shape, [Run(0, 250, 20), Run(1, 600, 1)], "f16")
    expected, bound = setting.expected()
    ref.assert_activation("f32", setting.run(target, "f32"), expected, bound)


IMAGES = [
    pytest.param([Run(0, 0, 70, is_image=True)], id="first"),
    pytest.param([Run(0, 230, 64, is_image=True)], id="over-an-edge"),
    pytest.param([Run(0, 517, 9, is_image=True)], id="the-rest-of-one"),
    pytest.param(
        [Run(0, 250, 20), Run(0, 270, 40, is_image=True), Run(1, 600, 1), Run(0, 310, 5)],
        id="between-texts",
    ),
]


@table(window=[0, 80, 257], runs=IMAGES)
def test_rows_of_an_image_see_each_other(target, rng, kind, runs, window):
    """A window begins before a row's own position, and what is behind an image is NaN."""
    setting = Setting(rng, AttentionShape(8, 4, 40, window=window), runs, "f16")
    row_class = "few" if kind == "q8_32" else "many"  # in which that is what attention writes
    expected, bound = setting.expected(kind="f32" if kind == "q8_32" else kind)
    out = setting.run(target, kind, row_class=row_class)
    ref.assert_activation(kind, out, expected, bound)
    assert_same_bits(setting.run(target, kind, row_class=row_class, threads=3), out)


def test_rows_of_an_image_have_the_same_bits_with_less_of_it_to_do(target, rng, kind):
    """The beginning of an image may be in the cache already."""
    setting = Setting(rng, AttentionShape(8, 4, 40, window=100), [Run(0, 230, 75, True)], "f16")
    whole = setting.run(target, kind, row_class="many")
    rest = make_step([Run(0, 270, 35, True)])
    setting.query = setting.query[40:]
    out = setting.run(target, kind, rest, row_class="many")
    assert_same_bits(out, whole[40:])


@table(soft_cap=[0.5, 30.0])
def test_soft_cap_bends_the_scores(target, rng, soft_cap):
    shape = AttentionShape(4, 2, 64, soft_cap=soft_cap)
    setting = Setting(rng, shape, [Run(0, 290, 5)], "f16", scale=5.0)
    expected, bound = setting.expected()
    ref.assert_activation("f32", setting.run(target, "f32"), expected, bound)


def test_large_scores_do_not_overflow(target, rng):
    shape = AttentionShape(2, 2, 64)
    setting = Setting(rng, shape, [Run(0, 300, 3)], "f16", scale=1000.0)
    expected, bound = setting.expected()
    ref.assert_activation("f32", setting.run(target, "f32"), expected, bound)


def test_zeros_average_the_values(target, rng):
    shape = AttentionShape(2, 1, 8)
    setting = Setting(rng, shape, [Run(0, 299, 1)], "f32")
    setting.query[:] = 0
    expected, bound = setting.expected()
    out = setting.run(target, "f32")
    ref.assert_activation("f32", out, expected, bound)
    pages, places = ref.page_offsets(setting.step, 0, np.arange(300))
    mean = setting.values[pages, 0, places].astype(np.float64).mean(axis=0)
    np.testing.assert_allclose(out[0, :8], mean, atol=1e-6)


# For the rows of two sequences: where they may be cut into spans.
CUTS = {
    "few": ([13, 3], [[1] * 16, [4, 4, 4, 1, 3], [2, 10, 1, 1, 2]]),
    "many": ([75, 3], [[1] * 78, [16, 16, 16, 16, 11, 3], [2, 33, 40, 1, 2]]),
}


@table(row_class=CUTS, window=[0, 100])
def test_however_it_is_cut_the_bits_are_the_same(target, rng, kind, window, row_class):
    shape = AttentionShape(8, 4, 40, window=window)
    (n_first, n_second), cuts = CUTS[row_class]
    setting = Setting(rng, shape, [Run(0, 220, n_first), Run(1, 40, n_second)], "f16")
    step, wanted = setting.step, {"row_class": row_class}
    together = setting.run(target, kind, **wanted)
    assert_same_bits(setting.run(target, kind, threads=2, **wanted), together)
    assert_same_bits(setting.run(target, kind, threads=3, **wanted), together)

    for cut in cuts:
        starts = np.cumsum([0, *cut[:-1]])
        runs = [
            Run(int(step.rows["sequence"][s]), int(step.rows["position"][s]), n)
            for s, n in zip(starts, cut, strict=True)
        ]
        other = make_step(runs)
        assert_same_bits(other.pages, step.pages)
        assert_same_bits(setting.run(target, kind, other, **wanted), together, f"spans of {cut}")

    # One span of several alone: a pass over part of the step's rows.
    alone = {"first_row": n_first, "n_rows": n_second, "first_span": 1, "n_spans": 1}
    part = setting.run(target, kind, **alone, **wanted)
    assert_same_bits(part[n_first:], together[n_first:])
    assert (part[:n_first].view(np.uint8) == 0xFF).all(), "wrote rows that are not its own"


def test_one_row_alone_has_the_bits_it_has_among_few(target, rng):
    setting = Setting(rng, AttentionShape(6, 2, 64), [Run(0, 520, 5)], "f16")
    together = setting.run(target, "f32", row_class="few")
    step = make_step([Run(0, 523, 1)])
    single = Setting(rng, setting.shape, [Run(0, 523, 1)], "f16")
    single.keys, single.values, single.query = setting.keys, setting.values, setting.query[3:4]
    alone = single.run(target, "f32", step, row_class="single")
    assert_same_bits(alone, together[3:4])


@table(row_class=["few", "many"], head_dim=[16, 160], cache=["f32", "f16"], beside=["q8_0", "f16"])
def test_a_later_row_s_infinity_is_not_seen(target, rng, head_dim, row_class, cache, beside):
    """Rows computed together share loads; an infinite value of the last row must stay its own."""
    shape = AttentionShape(2, 1, head_dim)
    setting = Setting(rng, shape, [Run(0, 10, 12)], cache)
    kind = target.kind_of(beside, row_class)
    kind = "f32" if kind in ("q8_32", "q16_32") else kind  # codes share a scale

    def attend():
        out = setting.run(target, kind, row_class=row_class)
        if kind == "f32":
            return out
        if kind == "bf16_pair":
            return sum(ref.split_bf16_pair(out, 2 * head_dim))
        return ref.from_bfloat16(out[:, : 2 * head_dim])

    clean = attend()
    page, place = ref.page_offsets(setting.step, 0, 21)
    setting.values[page, :, place, 3] = np.inf
    out = attend()
    assert_same_bits(out[:-1], clean[:-1])
    other = np.arange(out.shape[1]) % head_dim != 3
    assert_same_bits(out[-1, other], clean[-1, other], "nor is it another dimension's")
    assert (out[-1, ~other] == np.inf).all()

    setting.values[page, :, place] = np.inf
    setting.keys[page, :, place] = np.nan
    out = attend()
    assert_same_bits(out[:-1], clean[:-1])
    assert not np.isfinite(out[-1]).any()
