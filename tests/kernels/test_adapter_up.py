"""adapter_up: against float64; with adapter_down the same bits whatever stands beside a row."""

from __future__ import annotations

import numpy as np
import reference as ref
from harness import assert_same_bits, assert_within
from kernel_adapters import PARTS, RANK, SHARES, down, rows_of, step_of, up
from tables import table


@table(format_name=ref.FLOAT_FORMATS, n=[1, 7, 33, 512, 1030])
def test_up_agrees_with_float64_and_leaves_other_rows(target, rng, format_name, n):
    step, options = step_of(SHARES)
    weight = ref.random_weight(format_name, RANK, n, rng)
    low = rng.standard_normal((len(step.rows), RANK)).astype(np.float32)
    data = rng.standard_normal((len(step.rows), n)).astype(np.float32)
    out = up(target, low, weight, data, step, options)
    for row, sequence in enumerate(step.rows["sequence"]):
        if not SHARES[sequence]:
            assert_same_bits(out[row], data[row])
            continue
        exact, magnitude = data[row].astype(np.float64), np.abs(data[row]).astype(np.float64)
        for adapter, share in SHARES[sequence].items():
            first, rank, scale = PARTS[adapter]
            at = slice(first, first + rank)
            exact = exact + share * scale * (low[row, at].astype(np.float64) @ weight.values[at])
            magnitude += abs(share * scale) * (np.abs(low[row, at]) @ np.abs(weight.values[at]))
        assert_within(out[row], exact, ref.growth(RANK + 4) * magnitude)


def test_a_row_has_the_same_bits_beside_others_and_other_adapters(target, rng):
    """Alone, and stacked between others: its numbers are summed in the same order."""
    k, n = 96, 70
    whole_down = ref.random_weight("f32", RANK, k, rng)
    whole_up = ref.random_weight("f32", RANK, n, rng)
    shares = [{0: 1.0}, {1: -0.5, 3: 2.0}, {}, {1: 1.0}]
    step, options = step_of(shares)
    x = rng.standard_normal((len(step.rows), k))
    data = rng.standard_normal((len(step.rows), n)).astype(np.float32)
    kind = target.kind_of("f32")
    activation = ref.make_activation(kind, x)
    low = down(target, activation, whole_down, step, options)
    together = up(target, low, whole_up, data, step, options)

    # Adapters 1 and 3 alone are 0 and 1 of a smaller stack.
    own = rows_of([1, 3])
    given = [(0, 17, -2.0), (17, 1, 1.25)]
    few, few_options = step_of([{0: -0.5, 1: 2.0}], rows_each=1)
    small_down = ref.float_weight("f32", whole_down.values[own])
    small_up = ref.float_weight("f32", whole_up.values[own])
    alone = down(
        target, ref.make_activation(kind, x[2:3]), small_down, few, few_options, given=given
    )
    assert_same_bits(alone[0], low[2][own])
    assert_same_bits(
        up(target, alone, small_up, data[2:3], few, few_options, given=given)[0], together[2]
    )


def test_threads_change_no_bit(target, rng):
    step, options = step_of(SHARES, rows_each=9)
    weight = ref.random_weight("f16", RANK, 1030, rng)
    x = rng.standard_normal((len(step.rows), 1030))
    low = rng.standard_normal((len(step.rows), RANK)).astype(np.float32)
    activation = ref.make_activation(target.kind_of("f32"), x)
    data = x.astype(np.float32)
    for threads in (1, 3):
        found = down(target, activation, weight, step, options, threads=threads)
        sums = up(target, low, weight, data, step, options, threads=threads)
        if threads == 1:
            expected = found, sums
    assert_same_bits(found, expected[0])
    assert_same_bits(sums, expected[1])
