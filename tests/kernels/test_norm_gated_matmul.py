"""norm_gated_matmul: rms_norm, gate and up, and their activation in one kernel, against float64."""

from __future__ import annotations

import numpy as np
import reference as ref
from harness import On, assert_same_bits, assert_within, pack_params, plain_step, poisoned, run
from tables import table
from test_norm_matmul_group import EPSILON, expected
from test_planes import ALL_BITS, SCALES, mlx_weight

# The largest slope of silu is 1.0998, of gelu_tanh 1.1290.
LARGEST_SLOPE = 9 / 8 + 1 / 128


def feed(target, x, gate, up, norm, activation):
    n, k = gate.values.shape
    out = poisoned((len(x), n))
    params = pack_params("norm_gated_matmul", k, n, activation, EPSILON)
    statuses = run(
        "norm_gated_matmul", [x, gate, up, norm, out], params, plain_step(len(x)),
        On(target, row_class="few" if len(x) > 1 else "single"),
    )  # fmt: skip
    assert not statuses
    return out


@table(
    formats=[(name, name) for name in ref.ALL_FORMATS] + [("q4_k", "q6_k"), ("f16", "q8_0")],
    activation=[0, 1],
    rows=[1, 6, 16],
    functions=("formats", "rows"),
)
def test_agrees_with_float64(gpu_target, rng, formats, activation, rows):
    check(
        gpu_target,
        rng,
        [ref.random_weight(name, 45, 512, rng) for name in formats],
        activation,
        rows,
    )


@table(bits=ALL_BITS, scale=SCALES, rows=[1, 6], functions=("bits", "scale", "rows"))
def test_mlx_s_formats_agree_with_float64(gpu_target, rng, bits, scale, rows):
    check(gpu_target, rng, [mlx_weight(bits, 45, 512, rng, 64, scale) for _ in range(2)], 0, rows)


def check(gpu_target, rng, weights, activation, rows):
    gate, up = weights
    k = gate.values.shape[1]
    x = rng.standard_normal((rows, k)).astype(np.float32)
    norm = rng.uniform(0.5, 1.5, k).astype(np.float32)
    (gates, gate_bound), (ups, up_bound) = (
        expected(x, w, None, norm, gpu_target.device) for w in (gate, up)
    )
    values, bound = ref.gated_activation(gates, ups, activation)
    act, _ = ref.gated_activation(gates, np.ones_like(ups), activation)
    through = LARGEST_SLOPE * gate_bound
    bound = bound + np.abs(ups) * through + (np.abs(act) + through) * up_bound
    assert_within(feed(gpu_target, x, gate, up, norm, activation), values, bound)


@table(formats=[("q5_k", "q5_k"), ("q4_0", "q4_0"), ("q4_k", "q6_k")], rows=[16, 50, 150])
def test_rows_have_the_same_bits_alone_and_together(gpu_target, rng, formats, rows):
    x = rng.standard_normal((rows, 512)).astype(np.float32)
    norm = rng.uniform(0.5, 1.5, 512).astype(np.float32)
    gate, up = (ref.random_weight(name, 77, 512, rng) for name in formats)
    together = feed(gpu_target, x, gate, up, norm, 0)
    for first, n in [(0, 1), (rows - 1, 1), (3, 2), (4, 7)]:
        part = feed(gpu_target, x[first : first + n], gate, up, norm, 0)
        assert_same_bits(part, together[first : first + n])
