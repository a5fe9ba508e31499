"""Matmuls of 1 to 16 rows by streamed weights (kernels/streamed_rows.cuh), emulated on the CPU.

`streamed_words.h` and `warpgroup_words.h` are the emulation, and say what it shows. With a GPU,
test_matmul.py and its neighbours run the kernels themselves.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import reference as ref
from largest_weight import largest_weight
from rounded_inputs import STREAMED_FORMATS as FORMATS
from rounded_inputs import error_on_streams
from tables import table
from test_warpgroup_tile import aligned

HERE = Path(__file__).resolve().parent
BACKEND = HERE.parents[1] / "backend"
WINDOW_BYTES = dict(zip(FORMATS, (144, 160, 176, 192, 272, 110, 144, 176, 210), strict=True))


@dataclass(frozen=True)
class Plan:
    """How a launch divides its work; the defaults have one of everything."""

    n_stages: int = 1
    chunk: int = 1
    n_slots: int = 1
    window: int = 0  # of a pass; 0: all
    n_multiprocessors: int = 1
    n_parts: int = 1

    def bytes(self, format_name: str, quads: int, k: int) -> int:
        """Shared memory, as streamed_rows.cuh lays it out."""
        rows = 4 * quads or 1
        inputs = (self.window * 256 or k) // 32 * 64 * rows
        slack = 0 if WINDOW_BYTES[format_name] % 16 == 0 else 14
        pieces = (self.chunk * WINDOW_BYTES[format_name] + slack + 15) // 16 | 1
        stages = self.n_stages * 16 * 16 * pieces
        waiting = 0 if self.window == 0 else 256 * max(2 * quads, 4) * 4
        return 384 + inputs + self.n_slots * (waiting + 8 * 16 * rows * 4) + stages


class Problem(ctypes.Structure):
    _fields_ = (
        [
            (name, ctypes.c_uint32)
            for name in (
                "format", "quads", "seed", "n_rows", "n", "k", "n_stages", "chunk", "n_slots",
                "window", "n_multiprocessors", "n_parts", "bytes", "by_tiles", "on_warpgroups",
            )
        ]
        + [
            (name, ctypes.c_void_p)
            for name in ("input", "norm", "weight", "out", "squares", "workspace")
        ]
    )  # fmt: skip


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> ctypes.CDLL:
    compiler = os.environ.get("CXX") or shutil.which("c++")
    if not compiler:
        pytest.skip("needs a C++ compiler")
    built = tmp_path_factory.mktemp("streams") / "driver.so"
    subprocess.run(
        [
            compiler, "-std=c++20", "-O2", "-shared", "-fPIC", "-Wno-unknown-pragmas",
            "-ffp-contract=off", f"-I{HERE / 'emulated_cuda'}", f"-I{BACKEND}",
            f"-I{HERE}", str(HERE / "streamed_driver.cpp"),
            str(BACKEND / "metal" / "emulator" / "fibers.cpp"), "-o", str(built),
        ],
        check=True,
    )  # fmt: skip
    return ctypes.CDLL(str(built))


def multiply(
    library, format_name, weight, x, *, quads, plan=None, norm=None, seed=0, offset=0,
    by_tiles=False, on_warpgroups=True,
):  # fmt: skip
    """The products, and each row's sum of squares; the weight lies at a multiple of 16 + offset."""
    n, k = weight.values.shape
    plan = plan or Plan()
    x = aligned(np.asarray(x, np.float32))
    rows = len(x) // (4 * k)
    own_weight = aligned(np.concatenate([np.zeros(offset, np.uint8), weight.data.reshape(-1)]))
    norm = None if norm is None else aligned(norm.astype(np.float32))
    out = np.full((rows, n), np.nan, np.float32)
    squares = np.full(rows, np.nan, np.float32)
    n_places = max(16, 4 * quads)
    workspace = aligned(np.full(k // 32 * 64 * n_places + n_places * 16 * 4, 0xFF, np.uint8))
    problem = Problem(
        FORMATS.index(format_name), quads, seed, rows, n, k, plan.n_stages, plan.chunk,
        plan.n_slots, plan.window, plan.n_multiprocessors, plan.n_parts,
        plan.bytes(format_name, quads, k), by_tiles, on_warpgroups, x.ctypes.data,
        None if norm is None else norm.ctypes.data, own_weight.ctypes.data + offset,
        out.ctypes.data,
        squares.ctypes.data, workspace.ctypes.data,
    )  # fmt: skip
    message = ctypes.create_string_buffer(200)
    failed = library.multiply_rows(ctypes.byref(problem), message, 200)
    assert not failed, message.value.decode()
    return out, squares


def windows_of_all_sizes(rng, rows, k):
    """Rows that have scales of their own for each class of windows."""
    sizes = 10.0 ** rng.integers(-3, 4, (rows, k // 256))
    return (rng.standard_normal((rows, k)) * np.repeat(sizes, 256, axis=1)).astype(np.float32)


def expected(weight, x):
    """The product in float64, and how far off a result may be: docs/kernels.md."""
    x = np.asarray(x, np.float32).astype(np.float64)
    w = weight.values.astype(np.float64)
    return x @ w.T, error_on_streams(weight, x)


@table(
    {
        "rows, quads, n, k, plan": [
            (1, 0, 1, 256, Plan()),
            (1, 0, 50, 1280, Plan(3, 2, 2, 0, 3, 2)),
            (1, 0, 33, 2560, Plan(2, 10, 1)),
            (1, 0, 40, 2048, Plan(3, 4, 2)),
            (2, 1, 17, 512, Plan(2, 1, 1)),
            (7, 2, 40, 1280, Plan(2, 2, 2, 0, 1, 2)),
            (16, 4, 35, 1536, Plan(3, 1, 2, 2)),
        ]
    },
    format_name=FORMATS,
)
def test_agrees_with_float64(library, rng, format_name, rows, quads, n, k, plan):
    weight = ref.random_weight(format_name, n, k, rng)
    x = rng.standard_normal((rows, k))
    x[:, ::7] *= 30
    x[rng.random((rows, k)) < 0.05] = 0
    x[0] *= 1e-30  # rows of their own scale
    x[rows // 2] *= 1e20
    out, _ = multiply(library, format_name, weight, x, quads=quads, plan=plan, seed=rows)
    exact, bound = expected(weight, x)
    assert np.isfinite(out).all()
    assert (np.abs(out - exact) <= bound).all()


@table(format_name=FORMATS, on_change={"format_name": ("q4_0", "q4_k", "q6_k")})
def test_rows_have_the_same_bits_alone_and_together(library, rng, format_name):
    """However many rows there are, however a launch is divided, in whichever order warps run."""
    rows, n, k = 16, 37, 2560
    weight = ref.random_weight(format_name, n, k, rng)
    x = windows_of_all_sizes(rng, rows, k)
    norm = rng.standard_normal(k).astype(np.float32)
    alone = [
        multiply(library, format_name, weight, x[i : i + 1], quads=0, norm=norm, seed=i)
        for i in range(rows)
    ]
    products = np.concatenate([out for out, _ in alone])
    squares = np.concatenate([sums for _, sums in alone])
    for quads, n_rows, plan in [
        (1, 3, Plan()),
        (1, 4, Plan(4, 2, 1, 3, 2, 1)),
        (2, 5, Plan(2, 5, 3, 0, 1, 2)),
        (4, 16, Plan(3, 1, 1, 2, 3, 1)),
        (4, 16, Plan(5, 2, 2)),
    ]:
        out, sums = multiply(
            library, format_name, weight, x[:n_rows], quads=quads, plan=plan, norm=norm, seed=quads
        )
        np.testing.assert_array_equal(out, products[:n_rows])
        np.testing.assert_array_equal(sums, squares[:n_rows])
    own, _ = multiply(library, format_name, weight, x[:1], quads=0, plan=Plan(3, 2, 2, 0, 2, 2))
    same, _ = multiply(library, format_name, weight, x[:2], quads=1)
    np.testing.assert_array_equal(own[0], same[0])


@table(
    {
        "rows, quads, n, k, n_parts": [
            (9, 4, 130, 512, 4),
            (16, 4, 70, 2304, 1),
            (17, 8, 270, 2304, 1),
            (32, 8, 64, 256, 2),
            (33, 16, 40, 768, 8),
            (64, 16, 130, 1280, 4),
        ]
    },
    format_name=FORMATS,
    on_change={"format_name": ("q4_0", "q8_0", "q6_k")},
)
def test_rows_have_the_same_bits_in_tiles(library, rng, format_name, rows, quads, n, k, n_parts):
    """By another kernel: as each of them alone, in whichever order warps run."""
    weight = ref.random_weight(format_name, n, k, rng)
    x = windows_of_all_sizes(rng, rows, k)
    x[:, ::7] *= 30
    x[rows // 2] *= 1e20
    norm = rng.standard_normal(k).astype(np.float32)
    out, squares = multiply(
        library, format_name, weight, x, quads=quads, plan=Plan(n_parts=n_parts), norm=norm,
        seed=rows, by_tiles=True,
    )  # fmt: skip
    for first in range(0, rows, 16):
        some = slice(first, min(first + 16, rows))
        expected_bits, sums = multiply(
            library, format_name, weight, x[some], quads=4, plan=Plan(3, 1, 1, 1), norm=norm
        )
        np.testing.assert_array_equal(out[some], expected_bits)
        np.testing.assert_array_equal(squares[some], sums)


def test_tiles_of_gpus_without_warpgroups(library, rng):
    weight = ref.random_weight("q6_k", 140, 768, rng)
    x = rng.standard_normal((20, 768)).astype(np.float32)
    on, _ = multiply(library, "q6_k", weight, x, quads=8, plan=Plan(n_parts=2))
    without, _ = multiply(library, "q6_k", weight, x, quads=8, on_warpgroups=False)
    np.testing.assert_array_equal(on, without)


def test_sums_of_a_batch_stay_until_all_have_read_them(library, rng):
    """One warp is slow; tiles are short, and the next batch's sums lie where this one's do."""
    weight = ref.random_weight("q4_1", 96, 256, rng)
    x = rng.standard_normal((4, 256)).astype(np.float32)
    plan = Plan(6, 1, 1)
    expected_bits, _ = multiply(library, "q4_1", weight, x, quads=1, plan=Plan(6, 1, 6))
    for seed in range(12):
        out, _ = multiply(library, "q4_1", weight, x, quads=1, plan=plan, seed=100 * seed)
        np.testing.assert_array_equal(out, expected_bits)


@table(format_name=["q3_k", "q6_k"], offset=[2, 14])
def test_rows_that_begin_anywhere(library, rng, format_name, offset):
    """Of formats whose rows are no multiples of 16 bytes."""
    weight = ref.random_weight(format_name, 21, 768, rng)
    x = rng.standard_normal((2, 768)).astype(np.float32)
    plan = Plan(2, 2)
    expected_bits, _ = multiply(library, format_name, weight, x, quads=1, plan=plan)
    out, _ = multiply(library, format_name, weight, x, quads=1, plan=plan, offset=offset)
    np.testing.assert_array_equal(out, expected_bits)


def test_the_norm_is_that_of_the_row(library, rng):
    weight = ref.random_weight("q4_0", 20, 768, rng)
    x = rng.standard_normal((3, 768)).astype(np.float32)
    norm = rng.standard_normal(768).astype(np.float32)
    out, squares = multiply(library, "q4_0", weight, x, quads=1, norm=norm)
    exact, bound = expected(weight, (x * norm).astype(np.float32))
    assert (np.abs(out - exact) <= bound).all()
    np.testing.assert_allclose(squares, (x.astype(np.float64) ** 2).sum(axis=1), rtol=2e-6)


@table(format_name=["q4_0", "q4_k", "q6_k"])
def test_inputs_at_both_ends_of_float32(library, rng, format_name):
    """Groups whose largest number is subnormal, the largest of all, zero; one far below another."""
    n, k = 20, 256
    weight = ref.random_weight(format_name, n, k, rng)
    x = rng.standard_normal((5, k))
    x[0] *= 2.0**-140
    x[1] *= 2.0**110 / np.abs(x[1]).max()
    x[2] = 0
    x[3, 1::2] *= 2.0**-30
    x[4] = 0
    x[4, 17] = 1.9999 * 2.0**100
    out, _ = multiply(library, format_name, weight, x, quads=2)
    exact, bound = expected(weight, x)
    assert (np.abs(out - exact) <= bound + 1e-35).all()
    assert (out[2] == 0).all()


@table(bad=[np.nan, np.inf, -np.inf], format_name=["q4_0", "q4_1", "q6_k"])
def test_what_is_not_a_number_stays_in_its_row(library, rng, format_name, bad):
    n, k = 24, 256
    weight = ref.random_weight(format_name, n, k, rng)
    x = rng.standard_normal((9, k)).astype(np.float32)
    clean, _ = multiply(library, format_name, weight, x, quads=4)
    x[4, 200] = bad
    out, _ = multiply(library, format_name, weight, x, quads=4)
    assert not np.isfinite(out[4]).any()
    others = np.arange(9) != 4
    np.testing.assert_array_equal(out[others], clean[others])
    alone, _ = multiply(library, format_name, weight, x[4:5], quads=0)
    assert not np.isfinite(alone).any()


@table(format_name=FORMATS)
def test_the_largest_codes_and_inputs(library, rng, format_name):
    """Weights up to the largest F16 number: nothing overflows, also where it cancels."""
    n, k = 16, 512
    weight = largest_weight(format_name, n, k, rng, most=65000.0)
    assert 32000 < weight.magnitude.max() < 65504
    x = rng.choice([-2.0, 2.0], (2, k))
    x[0] = 2.0
    out, _ = multiply(library, format_name, weight, x, quads=1)
    exact, bound = expected(weight, x)
    assert (np.abs(out - exact) <= bound).all()
