"""The cost of rounded inputs of matmuls on NVIDIA GPUs (docs/kernels.md, docs/architecture.md)."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from arithmetic import prompts_on_warpgroups, rows_are_streamed

Array = np.ndarray

STREAMED_FORMATS = ("q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q3_k", "q4_k", "q5_k", "q6_k")
ARE_STREAMED = rows_are_streamed("cuda")
ON_WARPGROUPS = prompts_on_warpgroups("cuda")


def is_streamed(format_name: str, k: int) -> bool:
    """Whether the GPU of this machine, if there is one, streams such a weight."""
    return ARE_STREAMED and format_name in STREAMED_FORMATS and k % 256 == 0


class HasValues(Protocol):
    """`reference.Weight`, which imports this module."""

    format: str
    values: Array
    magnitude: Array


def rounding_of_weights(weight: HasValues) -> Array:
    """Quantised weights are rounded to F16; K formats round a unit's scale and minimum before."""
    if weight.format not in STREAMED_FORMATS:
        return np.zeros_like(weight.values)
    error = 2.0**-11 * np.abs(weight.values) + 2.0**-25
    if weight.format.endswith("_k"):
        error += (1 + 2.0**-10) * (2.0**-11 * weight.magnitude + 64 * 2.0**-25)
    return error


def error_on_streams(weight: HasValues, x: Array) -> Array:
    """What it costs that inputs and weights are rounded to F16, and added in another order."""
    size, of_weight = np.abs(weight.values), rounding_of_weights(weight)
    largest = np.abs(np.where(np.isfinite(x), x, 0)).max(axis=1, keepdims=True)
    of_input = np.abs(x) * 2.0**-11 + np.maximum(largest, 2.0**-112) * 2.0**-35
    additions = (x.shape[1] / 128 + 32) * 2.0**-24
    return of_input @ (size + of_weight).T + np.abs(x) @ (of_weight + additions * size).T


def rounding_on_warpgroups(weight: HasValues, x: Array) -> Array:
    """Inputs of prompts are F16 there, or beside weights in bf16 pairs of bfloat16 numbers."""
    size, of_weight = np.abs(weight.values), rounding_of_weights(weight)
    largest = np.abs(np.where(np.isfinite(x), x, 0)).max(axis=1, keepdims=True)
    relative = 2.0**-17 if weight.format == "bf16" else 2.0**-11
    of_input = np.abs(x) * relative + largest * 2.0**-38
    return of_input @ (size + of_weight).T + np.abs(x) @ of_weight.T
