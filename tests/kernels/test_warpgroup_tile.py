"""The matmul of prompts on warpgroups (cuda/kernels/warpgroup_tile.cuh), emulated on the CPU.

`warpgroup_words.h` is the emulation, and says what it shows. With a GPU, test_matmul.py runs the
kernels themselves on a GPU that has these instructions.
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
from largest_weight import largest_weight
from rounded_inputs import STREAMED_FORMATS
from tables import table

HERE = Path(__file__).resolve().parent
BACKEND = HERE.parents[1] / "backend"
HAS_SMALL = STREAMED_FORMATS  # tiles of 32 and 64 input rows
FORMATS = (*HAS_SMALL, "f16", "bf16")
TWO = ("q4_k", "bf16")  # with every change where a test is not about formats: codes and floats
# Input rows of a tile; rows, n, k: below, at and beside tiles of 128 weight rows and of input
# rows; k fills its rings of stages less than once, and several times.
SHAPES = [
    (128, 1, 1, 256), (128, 17, 130, 512), (128, 256, 128, 256), (128, 129, 64, 1280),
    (128, 300, 140, 1024), (32, 40, 130, 512), (64, 64, 128, 1280),
]  # fmt: skip


class Problem(ctypes.Structure):
    _fields_ = (
        [
            (name, ctypes.c_uint32)
            for name in (
                "format", "tile_rows", "seed", "n_rows", "n", "k", "first_row", "accumulates",
            )
        ]
        + [(name, ctypes.c_void_p) for name in ("input", "weight", "bias", "out", "workspace")]
    )  # fmt: skip


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> ctypes.CDLL:
    compiler = os.environ.get("CXX") or shutil.which("c++")
    if not compiler:
        pytest.skip("needs a C++ compiler")
    built = tmp_path_factory.mktemp("warpgroups") / "driver.so"
    subprocess.run(
        [
            compiler, "-std=c++20", "-O2", "-shared", "-fPIC", "-Wno-unknown-pragmas",
            f"-I{HERE / 'emulated_cuda'}", f"-I{BACKEND}", f"-I{HERE}",
            str(HERE / "warpgroup_driver.cpp"),
            str(BACKEND / "metal" / "emulator" / "fibers.cpp"), "-o", str(built),
        ],
        check=True,
    )  # fmt: skip
    loaded = ctypes.CDLL(str(built))
    loaded.workspace_bytes.restype = ctypes.c_uint64
    return loaded


def aligned(data: np.ndarray) -> np.ndarray:
    """A copy whose bytes begin at a multiple of 16, as buffers of a GPU do."""
    flat = np.empty(data.nbytes + 16, np.uint8)
    begin = -flat.ctypes.data % 16
    copy = flat[begin : begin + data.nbytes]
    copy[:] = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
    return copy


def multiply(
    library, format_name, weight, x, *, tile_rows=128, seed=0, first_row=0, n_rows=None, bias=None,
    out=None,
):  # fmt: skip
    """Rows of `out`; with `out` given, the products are added to it."""
    n, k = weight.values.shape
    rows = len(x) if n_rows is None else n_rows
    accumulates = out is not None
    out = np.full((len(x), n), np.nan, np.float32) if out is None else out.copy()
    x = np.ascontiguousarray(x, np.float32)
    own_weight = aligned(weight.data)
    size = library.workspace_bytes(rows, k)
    workspace = aligned(np.full(size, 0xFF, np.uint8))
    bias = None if bias is None else np.ascontiguousarray(bias, np.float32)
    problem = Problem(
        FORMATS.index(format_name), tile_rows, seed, rows, n, k, first_row, accumulates,
        x.ctypes.data, own_weight.ctypes.data, None if bias is None else bias.ctypes.data,
        out.ctypes.data, workspace.ctypes.data,
    )  # fmt: skip
    message = ctypes.create_string_buffer(200)
    failed = library.round_and_multiply(ctypes.byref(problem), message, 200)
    assert not failed, message.value.decode()
    return out


def expected(weight, x):
    """The product in float64, and how far off a result may be: docs/kernels.md."""
    x = np.asarray(x, np.float32).astype(np.float64)
    w = weight.values.astype(np.float64)
    sums = (w.shape[1] / 8 + 8) * 2.0**-24 * (np.abs(x) @ np.abs(w).T)
    return x @ w.T, ref.rounding_on_warpgroups(weight, x) + sums


@table({"tile_rows, rows, n, k": SHAPES}, format_name=FORMATS, meet=1)
def test_agrees_with_float64(library, rng, format_name, tile_rows, rows, n, k):
    weight = ref.random_weight(format_name, n, k, rng)
    x = rng.standard_normal((rows, k))
    x[rng.random((rows, k)) < 0.05] = 0
    x[0] *= 1e-30  # rows of their own scale
    x[rows // 2] *= 1e20
    if format_name not in HAS_SMALL:
        tile_rows = max(tile_rows, 128)
    out = multiply(library, format_name, weight, x, tile_rows=tile_rows, seed=rows)
    exact, bound = expected(weight, x)
    assert np.isfinite(out).all()
    assert (np.abs(out - exact) <= bound).all()


@table(format_name=FORMATS, on_change={"format_name": TWO})
def test_rows_have_the_same_bits_alone_and_together(library, rng, format_name):
    """Whatever the tile, where in it a row lies, and in which order warps run."""
    rows, n, k = 290, 70, 512
    weight = ref.random_weight(format_name, n, k, rng)
    x = rng.standard_normal((rows, k)).astype(np.float32)
    together = multiply(library, format_name, weight, x, tile_rows=128, seed=1)
    parts = [(128, 0, 1), (128, 77, 1), (128, 130, 160)]
    if format_name in HAS_SMALL:
        parts += [(32, 100, 70), (64, 3, 65)]
    for tile_rows, first_row, n_rows in parts:
        part = multiply(
            library, format_name, weight, x, tile_rows=tile_rows, seed=first_row,
            first_row=first_row, n_rows=n_rows,
        )  # fmt: skip
        rows_of_part = slice(first_row, first_row + n_rows)
        np.testing.assert_array_equal(part[rows_of_part], together[rows_of_part])
        assert np.isnan(np.delete(part, np.s_[rows_of_part], axis=0)).all()


@table(format_name=FORMATS, on_change={"format_name": TWO})
def test_bias_and_accumulation_are_additions_of_their_own(library, rng, format_name):
    rows, n, k = 131, 139, 256
    weight = ref.random_weight(format_name, n, k, rng)
    x = rng.standard_normal((rows, k)).astype(np.float32)
    bias = rng.standard_normal(n).astype(np.float32)
    data = rng.standard_normal((rows, n)).astype(np.float32)
    product = multiply(library, format_name, weight, x)
    with_bias = multiply(library, format_name, weight, x, bias=bias)
    np.testing.assert_array_equal(with_bias, product + bias)
    added = multiply(library, format_name, weight, x, out=data)
    np.testing.assert_array_equal(added, data + product)


@table(format_name=FORMATS)
def test_inputs_at_both_ends_of_float32(library, rng, format_name):
    """Rows whose largest number is subnormal, the largest of all, zero; one far below another."""
    n, k = 40, 256
    weight = ref.random_weight(format_name, n, k, rng)
    x = rng.standard_normal((6, k))
    x[0] *= 2.0**-140
    x[1] *= 2.0**124 / np.abs(x[1]).max()
    x[2] = 0
    x[3, 1::2] *= 2.0**-30
    x[4] = 0
    x[4, 17] = 1.9999 * 2.0**100
    x[5] = np.where(x[5] > 0, 2.0**14 * (2 - 2.0**-12), 2.0**-11)  # rounds up to the next power
    out = multiply(library, format_name, weight, x)
    exact, bound = expected(weight, x)
    assert (np.abs(out - exact) <= bound + (k + 1) * 2.0**-149).all()
    assert (out[2] == 0).all()


@table(format_name=FORMATS, bad=[np.nan, np.inf, -np.inf], on_change={"format_name": TWO})
def test_what_is_not_a_number_stays_in_its_row(library, rng, format_name, bad):
    n, k = 24, 256
    weight = ref.random_weight(format_name, n, k, rng)
    x = rng.standard_normal((9, k)).astype(np.float32)
    clean = multiply(library, format_name, weight, x)
    x[4, 200] = bad
    out = multiply(library, format_name, weight, x)
    assert not np.isfinite(out[4]).any()
    others = np.arange(9) != 4
    np.testing.assert_array_equal(out[others], clean[others])


@table(format_name=[name for name in FORMATS if name not in ref.FLOAT_FORMATS])
def test_the_largest_codes_and_scales(library, rng, format_name):
    n, k = 16, 512
    weight = largest_weight(format_name, n, k, rng, most=65000.0)
    x = rng.choice([-2.0, 2.0], (5, k))
    x[0] = 2.0
    out = multiply(library, format_name, weight, x)
    exact, bound = expected(weight, x)
    assert (np.abs(out - exact) <= bound).all()
