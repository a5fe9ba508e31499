"""expert_matmul: rows times those experts that they were given, as matmul has it, bit for bit."""

from __future__ import annotations

import numpy as np
import reference as ref
from expert_cases import make_routes
from harness import (
    MAX_FEW_ROWS,
    On,
    assert_same_bits,
    assert_within,
    pack_params,
    plain_step,
    poisoned,
    row_class_of,
    run,
)
from rounded_inputs import is_streamed
from tables import table

# experts, chosen, n, k: k is rounded up to whole blocks. 2,880 is no multiple of 256.
# 130 columns are three tiles of a prompt on a GPU.
SHAPES = [(1, 1, 5, 40), (4, 2, 37, 96), (16, 4, 64, 288), (5, 2, 130, 96)]


def fit(format_name: str, k: int) -> int:
    block = 1 if format_name in ref.FLOAT_FORMATS else ref.FORMATS[format_name].block
    return -(-k // block) * block


def multiply(target, weight, activation, routes, n_inputs, bias=None, *, threads=1, **part):
    rows, n_chosen = routes.shape
    n_experts_n, k = weight.values.shape
    n_experts = part.pop("n_experts")
    n = n_experts_n // n_experts
    out = poisoned((rows, n_chosen * n))
    row_class = part.pop("row_class", "") or row_class_of(rows)
    statuses = run(
        "expert_matmul",
        [activation.data, weight, routes, bias, out],
        pack_params("expert_matmul", n, k, n_experts, n_chosen, n_inputs),
        plain_step(rows),
        On(target, threads, activation.kind, row_class=row_class),
        **part,
    )
    assert not statuses
    return out


def exact(weight, activation, routes, n_inputs, n_experts):
    """[rows, chosen * n] and its bound, of all products of every input with every expert."""
    rows, n_chosen = routes.shape
    all_values, all_bounds = ref.matmul(weight, activation)
    n = all_values.shape[1] // n_experts
    values = np.empty((rows, n_chosen, n))
    bounds = np.empty_like(values)
    for r in range(rows):
        for s in range(n_chosen):
            i = r if n_inputs == 1 else r * n_chosen + s
            own = slice(routes["expert"][r, s] * n, (routes["expert"][r, s] + 1) * n)
            values[r, s], bounds[r, s] = all_values[i, own], all_bounds[i, own]
    return values.reshape(rows, -1), bounds.reshape(rows, -1)


@table(
    format_name=ref.ALL_FORMATS,
    how=["even", "skewed"],
    rows=[1, 16, 75],
    functions=("format_name", "rows"),
)
def test_agrees_with_float64(target, rng, format_name, rows, how):
    check(target, rng, format_name, SHAPES[1], rows, how)


@table(format_name=["f32", "bf16", "q4_0", "q6_k"], shape=SHAPES, rows=[1, 2, 30])
def test_other_shapes_agree_with_float64(target, rng, format_name, shape, rows):
    check(target, rng, format_name, shape, rows, "even")


def check(target, rng, format_name, shape, rows, how):
    n_experts, n_chosen, n, k = shape
    k = fit(format_name, k)
    weight = ref.random_weight(format_name, n_experts * n, k, rng)
    routes = make_routes(rng, rows, n_experts, n_chosen, how)
    n_inputs = n_chosen if how == "even" else 1
    kind = target.kind_of(format_name, row_class_of(rows))
    activation = ref.make_activation(kind, rng.standard_normal((rows * n_inputs, k)))
    expected, bound = exact(weight, activation, routes, n_inputs, n_experts)
    out = multiply(target, weight, activation, routes, n_inputs, n_experts=n_experts)
    assert_within(out, expected, bound)


@table(format_name=["bf16", "q4_0", "q4_k", "mxfp4"], rows=[1, 40])
def test_a_width_that_is_no_multiple_of_256(target, rng, format_name, rows):
    n_experts, n_chosen, n, k = 4, 2, 90, fit(format_name, 2880)
    weight = ref.random_weight(format_name, n_experts * n, k, rng)
    routes = make_routes(rng, rows, n_experts, n_chosen, "even")
    kind = target.kind_of(format_name, row_class_of(rows))
    activation = ref.make_activation(kind, rng.standard_normal((rows, k)))
    expected, bound = exact(weight, activation, routes, 1, n_experts)
    out = multiply(target, weight, activation, routes, 1, n_experts=n_experts)
    assert_within(out, expected, bound)


@table(format_name=["f32", "f16", "q8_0", "q6_k"], rows=[1, 9, 70])
def test_a_bias_is_added_once_rounded(target, rng, format_name, rows):
    n_experts, n_chosen, n, k = 6, 2, 45, fit(format_name, 64)
    weight = ref.random_weight(format_name, n_experts * n, k, rng)
    bias = rng.standard_normal(n_experts * n).astype(np.float32)
    routes = make_routes(rng, rows, n_experts, n_chosen, "skewed")
    kind = target.kind_of(format_name, row_class_of(rows))
    activation = ref.make_activation(kind, rng.standard_normal((rows, k)))
    plain = multiply(target, weight, activation, routes, 1, n_experts=n_experts)
    found = multiply(target, weight, activation, routes, 1, bias, n_experts=n_experts)
    own = bias.reshape(n_experts, n)[routes["expert"]].reshape(rows, -1)
    assert_same_bits(found, plain + own)


@table(
    {"row_class, rows": [("few", 16), ("many", 141)]},
    format_name=ref.ALL_FORMATS,
    how=["even", "skewed"],
)
def test_a_row_has_the_same_bits_whoever_shares_its_experts(
    target, rng, format_name, row_class, rows, how
):
    n_experts, n_chosen, n, k = 8, 2, 43, fit(format_name, 320)
    weight = ref.random_weight(format_name, n_experts * n, k, rng)
    routes = make_routes(rng, rows, n_experts, n_chosen, how)
    kind = target.kind_of(format_name, row_class)
    activation = ref.make_activation(kind, rng.standard_normal((rows, k)))
    more = {"n_experts": n_experts, "row_class": row_class}
    together = multiply(target, weight, activation, routes, 1, **more)
    several = multiply(target, weight, activation, routes, 1, threads=3, **more)
    assert_same_bits(several, together)
    for first, count in [(0, 1), (9, 1), (1, 2), (13, 3), (0, 16), (77, 64)]:
        if first + count > rows:
            continue
        own_class = "single" if (row_class, count) == ("few", 1) else row_class
        part = multiply(
            target, weight, activation, routes, 1, first_row=first, n_rows=count,
            n_experts=n_experts, row_class=own_class,
        )  # fmt: skip
        own = slice(first, first + count)
        assert_same_bits(part[own], together[own])
        outside = np.delete(part, np.arange(rows)[own], axis=0)
        assert (outside.view(np.uint8) == 0xFF).all(), "wrote rows that are not its own"


@table(format_name=ref.ALL_FORMATS, rows=[1, 5, 50])
def test_an_expert_is_a_matmul_of_its_own(target, rng, format_name, rows):
    """The bits of `matmul` with that expert's weight alone, where it is not streamed."""
    n_experts, n, k = 3, 40, fit(format_name, 64)
    weight = ref.random_weight(format_name, n_experts * n, k, rng)
    kind = target.kind_of(format_name, row_class_of(rows))
    activation = ref.make_activation(kind, rng.standard_normal((rows, k)))
    routes = make_routes(rng, rows, n_experts, 1, "even")
    found = multiply(target, weight, activation, routes, 1, n_experts=n_experts)
    for expert in range(n_experts):
        own = slice(expert * n, (expert + 1) * n)
        alone = ref.Weight(
            weight.format, np.ascontiguousarray(weight.data[own]), weight.values[own],
            weight.magnitude[own], weight.block,
        )  # fmt: skip
        out = poisoned((rows, n))
        on = On(target, 1, kind, row_class=row_class_of(rows))
        params = pack_params("matmul", n, k)
        run("matmul", [activation.data, alone, out], params, plain_step(rows), on)
        chosen = routes["expert"][:, 0] == expert
        if target.device != "cuda" or (rows <= MAX_FEW_ROWS and not is_streamed(format_name, k)):
            assert_same_bits(found[chosen], out[chosen])
        else:
            exact, bound = ref.matmul(alone, activation)
            assert (np.abs(found - exact)[chosen] <= bound[chosen]).all()


def test_experts_that_nobody_chose_are_not_read(target, rng):
    """Their weights are no numbers here: one that was read would show."""
    n_experts, n, k, rows = 6, 32, 64, 20
    weight = ref.random_weight("f32", n_experts * n, k, rng)
    weight.data = weight.data.copy()
    weight.data[2 * n : 3 * n].view(np.float32)[...] = np.nan
    routes = make_routes(rng, rows, n_experts, 2, "even")
    routes["expert"][routes["expert"] == 2] = 5
    activation = ref.make_activation("f32", rng.standard_normal((rows, k)))
    out = multiply(target, weight, activation, routes, 1, n_experts=n_experts)
    assert np.isfinite(out).all()
