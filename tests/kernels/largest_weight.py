"""Weights at both ends of what a number format can hold."""

from __future__ import annotations

import numpy as np
import reference as ref


def largest_weight(
    format_name: str, n: int, k: int, rng: np.random.Generator, most: float = np.inf
) -> ref.Weight:
    """The largest codes, scales and minima of a format, of both signs; no part above `most`."""
    made = ref.FORMATS[format_name]
    signs = rng.choice([-1.0, 1.0], (n, k))
    groups = signs[:, :: made.group]

    def with_scale(d: float) -> ref.Weight:
        halves = np.float16(d) * signs[:, :: made.block]
        return ref.block_weight(
            ref.make_blocks(
                format_name,
                np.where(signs > 0, made.levels - 1, 0),
                halves,
                scale=np.where(groups > 0, *made.scales[::-1]),
                m=-halves,
                minimum=np.where(groups > 0, *made.minima),
            )
        )

    return with_scale(min(65504.0, most / with_scale(1.0).magnitude.max()))
