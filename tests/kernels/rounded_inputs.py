"""What it costs that NVIDIA GPUs round inputs of matmuls (docs/kernels.md, docs/cuda.md)."""

from __future__ import annotations

import numpy as np

from arithmetic import prompts_on_warpgroups, rows_are_streamed

Array = np.ndarray

STREAMED_FORMATS = ("q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q3_k", "q4_k", "q5_k", "q6_k")
ARE_STREAMED = rows_are_streamed("cuda")
ON_WARPGROUPS = prompts_on_warpgroups("cuda")


def is_streamed(format_name: str, k: int) -> bool:
    """Whether the GPU of this machine, if there is one, streams such a weight."""
    return ARE_STREAMED and format_name in STREAMED_FORMATS and k % 256 == 0


def rounding_on_streams(weight_values: Array, x: Array) -> Array:
    """Half of 2^-13 of the power of two that is in the largest of 32."""
    rows, k = x.shape
    groups = np.abs(np.where(np.isfinite(x), x, 0)).reshape(rows, k // 32, 32).max(axis=2)
    error = np.maximum(groups, 2.0**-113) * 2.0**-14
    return np.repeat(error, 32, axis=1) @ np.abs(weight_values).T


def rounding_on_warpgroups(format_name: str, values: Array, x: Array) -> Array:
    """Prompts' inputs are halves there; codes of q6_k times their scales are, too.

    Beside weights in bf16 they are pairs of bfloat16 numbers.
    """
    largest = np.abs(np.where(np.isfinite(x), x, 0)).max(axis=1, keepdims=True)
    relative = {"q6_k": 2.0**-10 + 2.0**-22, "bf16": 2.0**-17}.get(format_name, 2.0**-11)
    return (np.abs(x) * relative + largest * 2.0**-38) @ np.abs(values).T
