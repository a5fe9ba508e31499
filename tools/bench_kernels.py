"""Speed of the matmul and attention kernels: GB/s of one row, GFLOP/s of many.

    python tools/bench_kernels.py [--isa avx2] [--threads 2]

Decoding reads each weight once, so its figure stands beside what a plain loop reads from an array
of the same size in the same run: that share is the one to watch.
What sampling costs is told by `tools/sampling_cost.py`.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "kernels"))
import reference as ref
from harness import Run, make_step, pack_params, plain_step

from akunu import _core

KIND = {"f32": "f32", "f16": "f32", "bf16": "f32", "q8_0": "q8_32", "q4_0": "q8_32"}


def read_bandwidth(n_bytes: int, threads: int) -> float:
    """GB/s of reading that many bytes over and over, best of several."""
    parts = [np.ones(n_bytes // threads // 4, np.float32) for _ in range(threads)]
    repeat = max(1, 200_000_000 // n_bytes)

    def read(part: np.ndarray) -> None:
        for _ in range(repeat):
            part.max()  # NumPy's is vectorised and releases the GIL

    best = 0.0
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(5):
            start = time.perf_counter()
            list(pool.map(read, parts))
            best = max(best, n_bytes * repeat / (time.perf_counter() - start) / 1e9)
    return best


def seconds_per_call(
    repeat: int, operation: str, operands: dict, params: bytes, step, **on
) -> float:
    """Best of three runs of `repeat` steps each."""
    best = float("inf")
    for _ in range(3):
        result = _core.run_operation(
            operation,
            operands=operands,
            params=params,
            rows=step.rows.tobytes(),
            spans=step.spans.tobytes(),
            pages=step.pages,
            sequences=step.sequences.tobytes(),
            repeat=repeat,
            **on,
        )
        best = min(best, result["seconds"] / repeat)
    return best


def bench_matmul(n: int, k: int, isa: str, threads: int) -> None:
    rng = np.random.default_rng(1)
    for format_name, kind in KIND.items():
        weight = ref.random_weight(format_name, n, k, rng)
        params = pack_params("matmul", n, k)
        line = f"matmul {format_name:5} {n} x {k}:"
        for rows, repeat in ((1, 40), (16, 10), (512, 1)):
            x = ref.make_activation(kind, rng.standard_normal((rows, k))).data
            operands = {
                0: x,
                1: (format_name, n, k, weight.data),
                2: np.zeros((rows, n), np.float32),
            }
            on = {"isa": isa, "threads": threads, "activation": kind}
            seconds = seconds_per_call(repeat, "matmul", operands, params, plain_step(rows), **on)
            if rows == 1:
                speed = weight.data.nbytes / seconds / 1e9
                plain = read_bandwidth(weight.data.nbytes, threads)
                line += f" 1 row {speed:.1f} GB/s of {plain:.1f} ({100 * speed / plain:.0f} %)"
            else:
                line += f"; {rows} rows {2 * n * k * rows / seconds / 1e9:.0f} GFLOP/s"
        print(line, flush=True)


def bench_attention(isa: str, threads: int) -> None:
    rng = np.random.default_rng(1)
    n_heads, n_kv_heads, head_dim = 32, 8, 128
    for runs in ([Run(0, 4095, 1)], [Run(0, 1536, 512)]):
        step = make_step(runs, max_positions=4096)
        shape = (step.n_pages, n_kv_heads, 256, head_dim)
        keys, values = rng.standard_normal((2, *shape)).astype(np.float16)
        query = rng.standard_normal((len(step.rows), n_heads * head_dim)).astype(np.float32)
        params = pack_params(
            "attention", n_heads, n_kv_heads, head_dim, 0, head_dim**-0.5, 0,
            step.page_stride, step.page_base,
        )  # fmt: skip
        on = {"isa": isa, "threads": threads}
        operands = {0: query, 1: keys, 2: values, 3: np.zeros_like(query)}
        seconds = seconds_per_call(
            20 if len(step.rows) == 1 else 1, "attention", operands, params, step, **on
        )
        flops = 4.0 * n_heads * head_dim * step.rows["kv_length"].sum(dtype=np.int64)
        read = 2 * 2 * n_kv_heads * head_dim * int(step.rows["kv_length"].max())
        print(
            f"attention 32/8 x 128, f16, {len(step.rows)} rows to {step.rows['kv_length'].max()}: "
            f"{flops / seconds / 1e9:.0f} GFLOP/s, pages {read / seconds / 1e9:.1f} GB/s"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--isa", default="")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--size", type=int, default=4096, help="n and k of the matmul")
    arguments = parser.parse_args()
    bench_matmul(arguments.size, arguments.size, arguments.isa, arguments.threads)
    bench_attention(arguments.isa, arguments.threads)


if __name__ == "__main__":
    main()
