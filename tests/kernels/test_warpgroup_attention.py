"""attention of prompts on warpgroups (cuda/kernels/warpgroup_attention.cuh), emulated on the CPU.

`warpgroup_words.h` is the emulation, and says what it shows. With a GPU, test_attention.py runs the
kernel itself on a GPU that has these instructions.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import reference as ref
from harness import Run, assert_same_bits, make_step, pack_params
from reference import AttentionShape
from tables import table
from test_attention import Setting

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ONE, TWO = AttentionShape(1, 1, 64), AttentionShape(2, 1, 128)


class Problem(ctypes.Structure):
    _fields_ = (
        [("params", ctypes.c_uint8 * 32)]
        + [(name, ctypes.c_uint32) for name in ("groups", "seed", "first_span", "n_spans")]
        + [
            (name, ctypes.c_void_p)
            for name in ("query", "keys", "values", "out", "rows", "pages", "spans")
        ]
    )


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> ctypes.CDLL:
    compiler = os.environ.get("CXX") or shutil.which("c++")
    if not compiler:
        pytest.skip("needs a C++ compiler")
    built = tmp_path_factory.mktemp("warpgroups") / "attention.so"
    subprocess.run(
        [
            compiler, "-std=c++20", "-O2", "-shared", "-fPIC", "-Wno-unknown-pragmas",
            f"-I{HERE / 'emulated_cuda'}", f"-I{ROOT / 'backend'}", f"-I{ROOT / 'src'}",
            f"-I{HERE}",
            str(HERE / "warpgroup_attention_driver.cpp"),
            str(ROOT / "backend" / "metal" / "emulator" / "fibers.cpp"), "-o", str(built),
        ],
        check=True,
    )  # fmt: skip
    return ctypes.CDLL(str(built))


def aligned(data: np.ndarray) -> np.ndarray:
    """A copy whose bytes begin at a multiple of 16, as buffers of a GPU do."""
    flat = np.empty(data.nbytes + 16, np.uint8)
    begin = -flat.ctypes.data % 16
    copy = flat[begin : begin + data.nbytes]
    copy[:] = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
    return copy


def attend(library, setting, step=None, *, groups=2, seed=0, first_span=0, n_spans=None):
    """Rows of the spans, in tiles of `groups` times 64; those of others stay NaN."""
    step, shape = step or setting.step, setting.shape
    packed = pack_params(
        "attention", shape.n_heads, shape.n_kv_heads, shape.head_dim, shape.window, shape.scale,
        shape.soft_cap, step.page_stride, step.page_base,
    )  # fmt: skip
    arrays = [aligned(a) for a in (setting.query, setting.keys, setting.values)]
    out = np.full(setting.query.shape, np.nan, np.float32)
    tables = [np.ascontiguousarray(a) for a in (step.rows, step.pages, step.spans)]
    problem = Problem(
        (ctypes.c_uint8 * 32).from_buffer_copy(packed), groups, seed, first_span,
        len(step.spans) if n_spans is None else n_spans,
        *(a.ctypes.data for a in (*arrays, out, *tables)),
    )  # fmt: skip
    message = ctypes.create_string_buffer(200)
    failed = library.attend(ctypes.byref(problem), message, 200)
    assert not failed, message.value.decode()
    return out


RUNS = [
    pytest.param([Run(0, 0, 1)], id="first"),
    pytest.param([Run(1, 254, 1), Run(0, 255, 1), Run(2, 256, 1)], id="page-edges"),
    pytest.param([Run(0, 600, 2), Run(1, 3, 17)], id="two-sequences"),
    pytest.param([Run(0, 100, 150)], id="150-rows-over-an-edge"),
    pytest.param([Run(0, 250, 20), Run(0, 270, 40, is_image=True)], id="an-image"),
]
GROUPS = [1, 2]  # warpgroups of a tile that multiply


def assert_close(out, setting):
    expected, bound = setting.expected(kind="f16")
    assert np.isfinite(out).all()
    assert (np.abs(out - expected) <= bound).all()


@table(groups=GROUPS, runs=RUNS, shape=[ONE, TWO])
def test_agrees_with_float64(library, rng, shape, runs, groups):
    setting = Setting(rng, shape, runs, "f16")
    assert_close(attend(library, setting, groups=groups, seed=7), setting)


def test_query_heads_share_keys(library, rng):
    setting = Setting(rng, AttentionShape(6, 2, 64), [Run(0, 5, 20)], "f16")
    assert_close(attend(library, setting), setting)


@table(window=[1, 2, 100, 128, 129, 257])
def test_a_window_starts_at_the_right_position(library, rng, window):
    """What lies outside any row's window is NaN, so a step too far shows at once."""
    shape = AttentionShape(1, 1, 64, window=window)
    setting = Setting(rng, shape, [Run(0, 250, 20), Run(1, 600, 1)], "f16")
    assert_close(attend(library, setting, groups=1), setting)


@table(scale=[1e-7, 1000.0])
def test_keys_and_values_at_both_ends_of_halves(library, rng, scale):
    setting = Setting(rng, TWO, [Run(0, 200, 70)], "f16", scale=scale)
    assert_close(attend(library, setting), setting)


def test_queries_at_both_ends_of_float32(library, rng):
    """Each row has a scale of its own. A row of zeros averages what it sees."""
    setting = Setting(rng, ONE, [Run(0, 140, 6)], "f16")
    setting.query[0] *= 2.0**-140
    setting.query[1] = 0
    setting.query[2, 1::2] *= 2.0**-30
    setting.query[3] *= 100.0
    setting.query[4] *= 2.0**100  # the largest score alone
    out = attend(library, setting)
    assert_close(out, setting)


@table(window=[0, 100], dims=[64, 128])
def test_however_it_is_cut_the_bits_are_the_same(library, rng, dims, window):
    """Whatever the tile, where in it a row lies, and in which order warps run."""
    shape = AttentionShape(1, 1, dims, window=window)
    setting = Setting(rng, shape, [Run(0, 180, 150), Run(1, 40, 3)], "f16")
    together = attend(library, setting, seed=1)
    assert_same_bits(attend(library, setting, groups=1, seed=100), together)
    rows = setting.step.rows
    for cut in ([1, 149, 3], [70, 33, 47, 1, 2]):
        starts = np.cumsum([0, *cut[:-1]])
        runs = [
            Run(int(rows["sequence"][s]), int(rows["position"][s]), n)
            for s, n in zip(starts, cut, strict=True)
        ]
        for groups in (1, 2):
            out = attend(library, setting, make_step(runs), groups=groups, seed=len(cut))
            assert_same_bits(out, together, f"spans of {cut}")
    part = attend(library, setting, first_span=1, n_spans=1)
    assert_same_bits(part[150:], together[150:])
    assert np.isnan(part[:150]).all(), "wrote rows that are not its own"


def test_rows_of_an_image_have_the_same_bits_with_less_of_it_to_do(library, rng):
    setting = Setting(rng, AttentionShape(1, 1, 64, window=100), [Run(0, 230, 75, True)], "f16")
    whole = attend(library, setting)
    setting.query = setting.query[40:]
    assert_same_bits(attend(library, setting, make_step([Run(0, 270, 35, True)])), whole[40:])


@table(groups=GROUPS, bad=[np.inf, -np.inf, np.nan])
def test_what_is_not_finite_is_seen_by_those_rows_only_that_see_it(library, rng, bad, groups):
    """Of a position in a block that some rows see in part, and of one that all of them see."""
    setting = Setting(rng, TWO, [Run(0, 120, 90)], "f16")
    clean = attend(library, setting, groups=groups)
    for position in (209, 150, 3):
        values = setting.values.copy()
        page, place = ref.page_offsets(setting.step, 0, position)
        setting.values[page, :, place, 3] = bad
        out = attend(library, setting, groups=groups)
        sees = np.arange(120, 210) >= position
        assert_same_bits(out[~sees], clean[~sees])
        of_it = np.arange(out.shape[1]) % 128 == 3
        assert not np.isfinite(out[sees][:, of_it]).any()
        out[:, of_it] = clean[:, of_it]
        assert_same_bits(out, clean, "nor is it another dimension's")
        setting.values = values
    setting.keys[page, :, place] = np.nan
    assert np.isnan(attend(library, setting, groups=groups)).all()


def test_a_query_that_is_not_finite_stays_in_its_row(library, rng):
    setting = Setting(rng, ONE, [Run(0, 120, 30)], "f16")
    clean = attend(library, setting)
    setting.query[7, 11] = np.nan
    setting.query[8, 12] = np.inf
    out = attend(library, setting)
    others = (np.arange(30) != 7) & (np.arange(30) != 8)
    assert_same_bits(out[others], clean[others])
    assert np.isnan(out[~others]).all()


@table(groups=GROUPS)
def test_rows_that_see_nothing_are_zeros(library, rng, groups):
    setting = Setting(rng, ONE, [Run(0, 3, 70), Run(1, 9, 2)], "f16")
    setting.step.rows["kv_length"][[5, 70, 71]] = 0
    out = attend(library, setting, groups=groups)
    assert (out[[5, 70, 71]] == 0).all()
    assert np.isfinite(out).all()
