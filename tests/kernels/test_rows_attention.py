"""attention of rows that generate (cuda/kernels/rows_attention.cuh), emulated on the CPU.

`streamed_words.h` and `warpgroup_words.h` are the emulation, and say what it shows. With a GPU,
test_attention.py and test_rope_attention.py run the kernels themselves.
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
from harness import Run, assert_same_bits, pack_params
from reference import AttentionShape
from tables import table
from test_attention import Setting
from test_warpgroup_attention import aligned

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


class Problem(ctypes.Structure):
    _fields_ = (
        [("params", ctypes.c_uint8 * 32)]
        + [(name, ctypes.c_uint32) for name in ("blocks", "seed", "own_rows")]
        + [
            (name, ctypes.c_void_p)
            for name in ("query", "keys", "values", "out", "rows", "pages", "spans")
        ]
        + [(name, ctypes.c_uint32) for name in ("first_row", "n_rows")]
    )


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> ctypes.CDLL:
    compiler = os.environ.get("CXX") or shutil.which("c++")
    if not compiler:
        pytest.skip("needs a C++ compiler")
    built = tmp_path_factory.mktemp("rows") / "attention.so"
    subprocess.run(
        [
            compiler, "-std=c++20", "-O2", "-shared", "-fPIC", "-Wno-unknown-pragmas",
            "-ffp-contract=off", f"-I{HERE / 'emulated_cuda'}", f"-I{ROOT / 'backend'}",
            f"-I{ROOT / 'src'}", f"-I{HERE}",
            str(HERE / "rows_attention_driver.cpp"),
            str(ROOT / "backend" / "metal" / "emulator" / "fibers.cpp"), "-o", str(built),
        ],
        check=True,
    )  # fmt: skip
    return ctypes.CDLL(str(built))


def attend(library, setting, *, blocks=1, seed=0, own_rows=False, first_row=0, n_rows=None):
    """So many rows from `first_row` on, each by `blocks` blocks; those of others stay NaN."""
    step, shape = setting.step, setting.shape
    packed = pack_params(
        "attention", shape.n_heads, shape.n_kv_heads, shape.head_dim, shape.window, shape.scale,
        shape.soft_cap, step.page_stride, step.page_base,
    )  # fmt: skip
    arrays = [aligned(a) for a in (setting.query, setting.keys, setting.values)]
    out = np.full(setting.query.shape, np.nan, np.float32)
    tables = [np.ascontiguousarray(a) for a in (step.rows, step.pages, step.spans)]
    problem = Problem(
        (ctypes.c_uint8 * 32).from_buffer_copy(packed), blocks, seed, own_rows,
        *(a.ctypes.data for a in (*arrays, out, *tables)),
        first_row, len(step.rows) - first_row if n_rows is None else n_rows,
    )  # fmt: skip
    message = ctypes.create_string_buffer(200)
    failed = library.attend(ctypes.byref(problem), message, 200)
    assert not failed, message.value.decode()
    return out


def assert_close(out, setting):
    expected, bound = setting.expected()
    assert np.isfinite(out).all()
    assert (np.abs(out - expected) <= bound).all()


@table(
    shape=[
        AttentionShape(1, 1, 16),
        AttentionShape(4, 1, 128),
        AttentionShape(6, 2, 80),
        AttentionShape(5, 1, 64),
        AttentionShape(8, 1, 128),
        AttentionShape(12, 1, 32),
        AttentionShape(3, 1, 256),
        AttentionShape(6, 1, 144),
    ],
    runs=[
        [Run(0, 0, 1)],
        [Run(1, 254, 1), Run(0, 255, 1), Run(2, 256, 1)],
        [Run(0, 63, 3)],
    ],
)
def test_agrees_with_float64(library, rng, shape, runs):
    setting = Setting(rng, shape, runs, "f16")
    assert_close(attend(library, setting, seed=7), setting)


@table(
    shape=[
        AttentionShape(2, 1, 32, window=1),
        AttentionShape(2, 1, 32, window=33),
        AttentionShape(2, 1, 32, window=257),
        AttentionShape(2, 1, 32, soft_cap=0.5),
        AttentionShape(2, 1, 32, soft_cap=30.0),
    ]
)
def test_windows_and_caps(library, rng, shape):
    """What lies outside any row's window is NaN, so a step too far shows at once."""
    setting = Setting(rng, shape, [Run(0, 290, 3), Run(1, 20, 1)], "f16")
    assert_close(attend(library, setting, blocks=2), setting)


@table(
    shape=[AttentionShape(4, 1, 128), AttentionShape(8, 1, 32, window=200)], position=[300, 2300]
)
def test_however_many_blocks_there_are_the_bits_are_the_same(library, rng, shape, position):
    """A split has two units behind 2,048 positions."""
    setting = Setting(rng, shape, [Run(0, position, 1)], "f16", max_positions=4096)
    alone = attend(library, setting)
    assert_close(alone, setting)
    for blocks in (2, 3, 8, 32):
        assert_same_bits(attend(library, setting, blocks=blocks, seed=blocks), alone)


@table(blocks=[1, 4])
def test_keys_of_the_span_that_are_not_in_the_cache_have_the_same_bits(library, rng, blocks):
    """Of rows that one text drafts, over the edge of a unit."""
    setting = Setting(rng, AttentionShape(4, 1, 64), [Run(0, 60, 9), Run(1, 5, 1)], "f16")
    cached = attend(library, setting, blocks=blocks)
    assert_same_bits(attend(library, setting, blocks=blocks, own_rows=True, seed=3), cached)
    row = attend(library, setting, blocks=blocks, own_rows=True, first_row=4, n_rows=1)
    assert_same_bits(row[4], cached[4])
    assert np.isnan(row[:4]).all()
    assert np.isnan(row[5:]).all()


def test_queries_at_both_ends_of_float32(library, rng):
    """Each head has a scale of its own. A row of zeros averages what it sees."""
    setting = Setting(rng, AttentionShape(2, 1, 64), [Run(0, 140, 5)], "f16")
    setting.query[0] *= 2.0**-140
    setting.query[1] = 0
    setting.query[2, :64] *= 100.0
    setting.query[3] *= 2.0**100  # the largest score alone
    assert_close(attend(library, setting), setting)


def test_what_is_not_finite_stays_where_it_is_seen(library, rng):
    setting = Setting(rng, AttentionShape(4, 1, 32), [Run(0, 100, 5)], "f16")
    clean = attend(library, setting)
    page, place = ref.page_offsets(setting.step, 0, 103)
    setting.values[page, :, place, 3] = np.nan
    out = attend(library, setting)
    assert_same_bits(out[:3], clean[:3])
    of_it = np.arange(128) % 32 == 3
    assert np.isnan(out[3:, of_it]).all()
    out[:, of_it] = clean[:, of_it]
    assert_same_bits(out, clean, "nor is it another dimension's")
    setting.values[page, :, place, 3] = np.inf
    out = attend(library, setting)
    assert (out[3:, of_it] == np.inf).all()
    setting.query[1, 40] = np.nan
    out = attend(library, setting)
    assert np.isnan(out[1, 32:64]).all()
    assert np.isfinite(out[1, 64:]).all()


def test_rows_that_see_nothing_are_zeros(library, rng):
    setting = Setting(rng, AttentionShape(2, 1, 32), [Run(0, 3, 3)], "f16")
    setting.step.rows["kv_length"][1] = 0
    out = attend(library, setting, blocks=3)
    assert (out[1] == 0).all()
    assert np.isfinite(out).all()
