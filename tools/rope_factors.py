"""Llama 3.1's scaling of the rotary frequencies (`rope_type` "llama3").

For models that tools and tests make.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class RopeFactors:
    """Slow frequencies are divided by `factor`: a stretched context."""

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_context: int

    def divisors(self, head_dim: int, rope_theta: float) -> NDArray[np.float64]:
        """What each rotary frequency is divided by, `[head_dim / 2]`.

        What turns often within the original context stays as it is, what turns rarely is divided
        by the factor, and what lies between is interpolated.
        """
        exponents = np.arange(0, head_dim, 2) / head_dim
        turns = self.original_context / (2 * np.pi * rope_theta**exponents)
        low, high = self.low_freq_factor, self.high_freq_factor
        often = np.clip((turns - low) / (high - low), 0.0, 1.0)
        divisors: NDArray[np.float64] = 1 / ((1 - often) / self.factor + often)
        return divisors
