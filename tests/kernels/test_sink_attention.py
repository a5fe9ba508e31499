"""sink_attention: attention whose softmax has a score more for each head, against float64."""

from __future__ import annotations

import numpy as np
import pytest
import reference as ref
from harness import On, Run, assert_same_bits, pack_params, run
from reference import AttentionShape
from tables import table
from test_attention import Setting

SHAPES = [
    pytest.param(AttentionShape(1, 1, 8), id="1x8"),
    pytest.param(AttentionShape(6, 2, 80), id="gqa-3:1-80"),
    pytest.param(AttentionShape(16, 2, 64, window=33), id="gqa-8:1-64-window"),
    pytest.param(AttentionShape(4, 2, 64, soft_cap=20.0), id="gqa-2:1-64-cap"),
]
RUNS = [
    pytest.param([Run(0, 0, 1)], id="first"),
    pytest.param([Run(1, 254, 1), Run(0, 255, 1), Run(2, 256, 1)], id="page-edges"),
    pytest.param([Run(0, 200, 70)], id="70-rows-over-an-edge"),
]


def attend(setting, target, kind, sinks, step=None, *, threads=1, row_class="", **part):
    shape, step = setting.shape, step or setting.step
    out = ref.activation_array(kind, len(step.rows), shape.n_heads * shape.head_dim)
    numbers = (shape.n_heads, shape.n_kv_heads, shape.head_dim, shape.window, shape.scale)
    params = pack_params(
        "sink_attention", *numbers, shape.soft_cap, step.page_stride, step.page_base
    )
    on = On(target, threads, kind, setting.cache, row_class)
    run("sink_attention", [setting.query, setting.keys, setting.values, out, sinks], params, step,
        on, **part)  # fmt: skip
    return out


@table(cache=["f32", "f16"], runs=RUNS, shape=SHAPES, size=[1.0, 30.0])
def test_agrees_with_float64(target, rng, shape, runs, cache, size):
    setting = Setting(rng, shape, runs, cache)
    sinks = (size * rng.standard_normal(shape.n_heads)).astype(np.float32)
    expected, bound = setting.expected(sinks=sinks)
    ref.assert_activation("f32", attend(setting, target, "f32", sinks), expected, bound)


@table(rounding=["q8_32", "q16_32", "bf16", "bf16_pair"], sink=[-1e30, -3.0, 2.0, 1e30])
def test_prompts_divide_by_the_sum_with_the_sink(target, rng, rounding, sink):
    """Whatever the kernel multiplies: the sink takes the same share of every number of a head."""
    if rounding not in target.kinds:
        pytest.skip(f"{target} has no {rounding}")
    shape = AttentionShape(4, 2, 64)
    setting = Setting(rng, shape, [Run(0, 100, 40)], "f16")
    sinks = np.full(4, sink, np.float32)
    plain, _ = setting.expected()
    expected, bound = setting.expected(sinks=sinks)
    out = attend(setting, target, "f32", sinks, row_class="many")
    without = setting.run(target, "f32", row_class="many")
    rounded = attend(setting, target, rounding, sinks, row_class="many")
    assert np.isfinite(out).all()
    share = np.abs(expected).sum() / np.abs(plain).sum()
    slack = 2.0**-6 * np.abs(plain).max()
    ref.assert_activation("f32", out, expected, bound + 1e-30)
    loose = np.full_like(expected, slack * share + 1e-30)
    if rounding == "q8_32":  # more than one code is within such a bound
        codes, scales, _ = ref.split_q8_32(rounded, expected.shape[1])
        scale = np.repeat(scales, 32, axis=1)
        values = codes.reshape(expected.shape) * scale
        assert (np.abs(values - expected) <= loose + 0.5001 * scale).all()
    else:
        ref.assert_activation(rounding, rounded, expected, loose)
    if sink == -1e30:
        assert_same_bits(out, without)


def test_a_row_has_the_same_bits_alone_and_beside_others(target, rng):
    shape = AttentionShape(6, 2, 64)
    setting = Setting(rng, shape, [Run(0, 250, 12), Run(1, 3, 4)], "f16")
    sinks = rng.standard_normal(6).astype(np.float32)
    together = attend(setting, target, "f32", sinks)
    assert_same_bits(attend(setting, target, "f32", sinks, threads=3), together)
    alone = attend(setting, target, "f32", sinks, first_row=12, n_rows=4, first_span=1)
    assert_same_bits(alone[12:], together[12:])
