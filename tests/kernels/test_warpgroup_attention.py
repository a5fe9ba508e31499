"""attention of prompts on warpgroups (backend/cuda/kernels/warpgroup_attention.h), emulated on the CPU.

`warpgroup_words.h` is the emulation, and says what it shows. With a GPU, test_attention.py runs the
kernel itself where `AKUNU_CUDA_PROMPTS=warpgroups` asks for it.
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
from harness import PAGE, Run, assert_same_bits, make_step, pack_params
from reference import AttentionShape
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
            f"-I{ROOT / 'backend'}", f"-I{ROOT / 'src'}", f"-I{HERE}",
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
    pytest.param([Run(0, 100, 150)], id="two-tiles-over-an-edge"),
    pytest.param([Run(0, 250, 20), Run(0, 270, 40, is_image=True)], id="an-image"),
]


@pytest.mark.parametrize("runs", RUNS)
@pytest.mark.parametrize("shape", [ONE, TWO], ids=["64", "128"])
def test_agrees_with_float64(library, rng, shape, runs):
    setting = Setting(rng, shape, runs, "f16")
    expected, bound = setting.expected(kind="f16")
    out = attend(library, setting, seed=7)
    assert (np.abs(out - expected) <= bound).all()
