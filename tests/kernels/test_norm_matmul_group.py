"""norm_matmul_group: rms_norm folded into up to three matmuls, against float64."""

from __future__ import annotations

import numpy as np
import reference as ref
from harness import On, assert_same_bits, assert_within, pack_params, plain_step, poisoned, run
from tables import table

EPSILON = 1e-5
GROUPS = [
    (("f32",), (False,)),
    (("f16", "bf16"), (True, False)),
    (("q4_0", "q4_0", "q4_0"), (False, False, False)),
    (("q8_0", "q8_0", "q8_0"), (True, True, True)),
    (("q4_k", "q4_k", "q6_k"), (False, True, False)),
    (("q5_1", "q3_k", "q2_k"), (True, False, True)),
    (("q5_0", "q4_1", "q5_k"), (False, False, False)),
]
SIZES = [70, 13, 24]


def three(items: list) -> list:
    return items + [None] * (3 - len(items))


def project(target, x, weights, biases, norm):
    k = x.shape[1]
    outs = [poisoned((len(x), len(weight.data))) for weight in weights]
    operands = [x, *three(weights), *three(biases), *three(outs), norm]
    sizes = [len(weight.data) for weight in weights] + [0] * (3 - len(weights))
    params = pack_params("norm_matmul_group", k, *sizes, EPSILON)
    on = On(target, row_class="few" if len(x) > 1 else "single")
    assert run("norm_matmul_group", operands, params, plain_step(len(x)), on) == {}
    return outs


def expected(x, weight, bias, norm, device):
    """What the group makes of one weight, and the bound of docs/kernels.md."""
    normed, norm_bound = ref.rms_norm(x, norm, EPSILON)
    values, bound = ref.matmul(weight, ref.Activation("f32", x, normed), device)
    bound = bound + norm_bound @ weight.magnitude.T
    if bias is not None:
        values = values + bias
        bound = bound + np.abs(values) * ref.growth(1)
    return values, bound


@table(
    {"formats, with_bias": GROUPS},
    rows=[1, 2, 5, 16],
    k=[256, 768],
    functions=("formats", "rows"),
)
def test_agrees_with_float64(gpu_target, rng, formats, with_bias, rows, k):
    x = rng.standard_normal((rows, k)).astype(np.float32)
    x[0] *= 1e-4  # epsilon matters here
    norm = rng.uniform(0.5, 1.5, k).astype(np.float32)
    weights = [ref.random_weight(f, n, k, rng) for f, n in zip(formats, SIZES, strict=False)]
    biases = [
        rng.standard_normal(n).astype(np.float32) if bound else None
        for n, bound in zip(SIZES, with_bias, strict=False)
    ]
    outs = project(gpu_target, x, weights, biases, norm)
    for out, weight, bias in zip(outs, weights, biases, strict=True):
        assert_within(out, *expected(x, weight, bias, norm, gpu_target.device))


def test_zeros_give_zeros(gpu_target, rng):
    weight = ref.random_weight("q4_0", 9, 64, rng)
    out = project(gpu_target, np.zeros((2, 64), np.float32), [weight], [None], np.ones(64, "f4"))
    assert (out[0] == 0).all()


@table(formats=[("q4_k", "q8_0"), ("q4_0", "q4_0"), ("q4_k", "q5_k")], rows=[16, 50, 150])
def test_rows_have_the_same_bits_alone_and_together(gpu_target, rng, formats, rows):
    x = rng.standard_normal((rows, 512)).astype(np.float32)
    norm = rng.uniform(0.5, 1.5, 512).astype(np.float32)
    weights = [ref.random_weight(f, n, 512, rng) for f, n in zip(formats, (70, 13), strict=True)]
    together = project(gpu_target, x, weights, [None, None], norm)
    for first, n in [(0, 1), (rows - 1, 1), (3, 2), (4, 7)]:
        part = project(gpu_target, x[first : first + n], weights, [None, None], norm)
        for own, all_rows in zip(part, together, strict=True):
            assert_same_bits(own, all_rows[first : first + n])
