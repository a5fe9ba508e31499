"""What it costs that NVIDIA GPUs round inputs of matmuls (docs/kernels.md, docs/cuda.md)."""

from __future__ import annotations

import numpy as np

from arithmetic import prompts_on_warpgroups, rows_are_streamed

Array = np.ndarray

STREAMED_FORMATS = ("q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q3_k", "q4_k", "q5_k", "q6_k")
# What is taken off their codes.
STREAMED_OFFSETS = {"q4_0": 8, "q5_0": 16, "q8_0": 128, "q3_k": 4, "q6_k": 32}
ARE_STREAMED = rows_are_streamed("cuda")
ON_WARPGROUPS = prompts_on_warpgroups("cuda")


def is_streamed(format_name: str, k: int) -> bool:
    """Whether the GPU of this machine, if there is one, streams such a weight."""
    return ARE_STREAMED and format_name in STREAMED_FORMATS and k % 256 == 0


def error_on_streams(values: Array, apart: Array, x: Array) -> Array:
    """Of docs/kernels.md. `apart`: the sizes of codes and offsets, before they cancel."""
    largest = np.abs(np.where(np.isfinite(x), x, 0)).max(axis=1, keepdims=True)
    rounding = np.abs(x) * 2.0**-11 + np.maximum(largest, 2.0**-112) * 2.0**-35
    additions = (x.shape[1] / 128 + 32) * 2.0**-24
    return rounding @ np.abs(values).T + additions * (np.abs(x) @ apart.T)


def rounding_on_warpgroups(format_name: str, values: Array, x: Array) -> Array:
    """Prompts' inputs are halves there; codes of q6_k times their scales are, too.

    Beside weights in bf16 they are pairs of bfloat16 numbers.
    """
    largest = np.abs(np.where(np.isfinite(x), x, 0)).max(axis=1, keepdims=True)
    relative = {"q6_k": 2.0**-10 + 2.0**-22, "bf16": 2.0**-17}.get(format_name, 2.0**-11)
    return (np.abs(x) * relative + largest * 2.0**-38) @ np.abs(values).T
