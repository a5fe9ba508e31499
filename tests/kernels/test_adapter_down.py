"""adapter_down: against float64, and nothing written but what a row's adapters have."""

from __future__ import annotations

import numpy as np
import reference as ref
from harness import assert_within
from kernel_adapters import RANK, SHARES, down, rows_of, step_of
from tables import table


@table(format_name=ref.FLOAT_FORMATS, k=[32, 96, 416, 1024])
def test_down_agrees_with_float64_and_writes_nothing_else(target, kind, rng, format_name, k):
    step, options = step_of(SHARES)
    weight = ref.random_weight(format_name, RANK, k, rng)
    activation = ref.make_activation(kind, rng.standard_normal((len(step.rows), k)))
    out = down(target, activation, weight, step, options)
    for row, sequence in enumerate(step.rows["sequence"]):
        own = rows_of(SHARES[sequence])
        exact = weight.values[own] @ activation.values[row]
        magnitude = np.abs(weight.values[own]) @ np.abs(activation.values[row])
        # The input in float32 is rounded once where it is kept as a number and a scale.
        assert_within(out[row][own], exact, ref.growth(k / 8 + 8) * magnitude + ref.TINY)
        others = np.delete(out[row], own)
        assert (others.view(np.uint8) == 0xFF).all()
