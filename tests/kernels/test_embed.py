"""embed: exact in every format, one rounding for the scale."""

from __future__ import annotations

import numpy as np
import pytest
import reference as ref
from harness import On, Run, assert_same_bits, make_step, pack_params, poisoned, run

LOG_STRIDE = 40


def embed(isa, table, log, step, scale, dim):
    out = poisoned((len(step.rows), dim))
    status = run(
        "embed",
        [log, table, out],
        pack_params("embed", dim, len(table.values), log.shape[1], scale),
        step,
        On(isa, 2),
    )
    return out, status


@pytest.mark.parametrize("format_name", ["f32", "f16", "q8_0", "q4_0"])
@pytest.mark.parametrize("scale", [1.0, 11.3137085])
def test_takes_the_row_of_the_token_at_the_row_s_position(isa, rng, format_name, scale):
    vocab_size, dim = 50, 96
    table = ref.random_weight(format_name, vocab_size, dim, rng)
    log = rng.integers(0, vocab_size, (2, LOG_STRIDE)).astype(np.uint32)
    step = make_step([Run(1, 30, 3), Run(0, 0, 1)])
    out, status = embed(isa, table, log, step, scale, dim)
    tokens = [log[1, 30], log[1, 31], log[1, 32], log[0, 0]]
    expected = table.values.astype(np.float32)[tokens] * np.float32(scale)
    assert status[0] == 0
    assert_same_bits(out, expected)


@pytest.mark.parametrize("dim", [1, 7, 33])
def test_dim_needs_no_multiple(isa, rng, dim):
    table = ref.random_weight("f16", 4, dim, rng)
    log = np.array([[3, 1]], np.uint32)
    out, _ = embed(isa, table, log, make_step([Run(0, 0, 2)]), 1.0, dim)
    assert_same_bits(out, table.values.astype(np.float32)[[3, 1]])


def test_a_token_outside_the_vocabulary_is_recorded_and_gives_zeros(isa, rng):
    table = ref.random_weight("f32", 8, 32, rng)
    log = np.array([[3, 8, 0xFFFFFFFF]], np.uint32)
    out, status = embed(isa, table, log, make_step([Run(0, 0, 3)]), 1.0, 32)
    assert status[0] == 2
    assert status[1:] in [(1, 8), (2, 0xFFFFFFFF)]  # whichever a worker met first
    assert (out[1:] == 0).all()
    assert_same_bits(out[:1], table.values.astype(np.float32)[[3]])


def test_an_inactive_row_s_token_is_nobody_s_error(isa, rng):
    table = ref.random_weight("f32", 8, 32, rng)
    step = make_step([Run(0, 0, 1)])
    step.rows["flags"] = 0
    _, status = embed(isa, table, np.array([[99]], np.uint32), step, 1.0, 32)
    assert status[0] == 0
