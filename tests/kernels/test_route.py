"""route: which experts a row goes to, and with which weights, against NumPy in float64."""

from __future__ import annotations

import numpy as np
import pytest
import reference as ref
from expert_cases import ROUTE
from harness import On, assert_same_bits, assert_within, pack_params, plain_step, poisoned, run
from tables import table

SOFTMAX, CHOSEN, SIGMOID = 0, 1, 2

# experts, chosen, scoring, normalised, scale, groups, groups chosen, best of a group that count
CASES = {
    "mixtral": (8, 2, CHOSEN, 0, 1.0, 1, 1, 1),
    "qwen2": (60, 4, SOFTMAX, 0, 1.0, 1, 1, 1),
    "qwen3": (128, 8, SOFTMAX, 1, 1.0, 1, 1, 1),
    "deepseek-2": (160, 6, SOFTMAX, 0, 16.0, 8, 3, 1),
    "deepseek-3": (256, 8, SIGMOID, 1, 2.5, 8, 4, 2),
    "glm": (32, 3, SIGMOID, 1, 1.5, 1, 1, 1),
    "one": (1, 1, SIGMOID, 0, 1.0, 1, 1, 1),
    "all": (5, 5, SOFTMAX, 1, 1.0, 1, 1, 1),
    "many": (512, 10, SOFTMAX, 1, 1.0, 1, 1, 1),
}


def route(target, logits, bias, case, *, scales=None, threads=1, **part):
    step = plain_step(len(logits))
    routes = poisoned((len(logits), case[1]), ROUTE)
    operands = [logits, bias, routes, scales]
    params = pack_params("route", *case)
    statuses = run("route", operands, params, step, On(target, threads), **part)
    assert not statuses
    return routes


def scores_of(logits, scoring):
    """float64 [rows, experts], and how far float32 ones are from them, relative."""
    x = logits.astype(np.float64)
    if scoring == SIGMOID:
        return 1 / (1 + np.exp(-x)), ref.growth(7)
    top = x.max(axis=1, keepdims=True)
    e = np.exp(x - top)
    # x - top is rounded: a relative error of |x - top| roundings in its exponential.
    return e / e.sum(axis=1, keepdims=True), ref.growth(12 + logits.shape[1] + np.ptp(x))


def expected_routes(logits, bias, case):
    """Experts [rows, chosen], and their weights with bounds. The experts are the best by what the
    float64 scores say; rows whose choice a rounding could change are not made by these tests."""
    n, n_chosen, scoring, normalised, scale, n_groups, n_groups_chosen, group_best = case
    scores, error = scores_of(logits, scoring)
    ranks = scores + (0 if bias is None else bias.astype(np.float64))
    if scoring == CHOSEN:
        ranks = logits.astype(np.float64)
    groups = ranks.reshape(len(logits), n_groups, -1)
    best = np.sort(groups, axis=2)[:, :, -group_best:].sum(axis=2)
    kept = np.argsort(-best, axis=1, kind="stable")[:, :n_groups_chosen]
    mask = np.zeros((len(logits), n_groups), bool)
    np.put_along_axis(mask, kept, True, axis=1)
    ranks = np.where(np.repeat(mask, n // n_groups, axis=1), ranks, -np.inf)
    experts = np.argsort(-ranks, axis=1, kind="stable")[:, :n_chosen]
    weights = np.take_along_axis(scores, experts, axis=1)
    if scoring == CHOSEN:
        weights = weights / weights.sum(axis=1, keepdims=True)
    if normalised:
        weights = weights / weights.sum(axis=1, keepdims=True)
    weights = weights * scale
    return experts, weights, (2 * error + ref.growth(2 * n_chosen + 4)) * np.abs(weights) + 1e-30


def distinct(rng, rows, n, spread):
    """Logits no two of which in a row are near each other, in random order."""
    steps = np.linspace(-1, 1, n) if n > 1 else np.zeros(1)
    x = np.stack([rng.permutation(steps) for _ in range(rows)]) * spread
    return (x + rng.uniform(-0.1, 0.1, (rows, n)) * spread / n).astype(np.float32)


@table(with_bias=[False, True], name=list(CASES), spread=[0.5, 6.0])
def test_agrees_with_float64(target, rng, name, with_bias, spread):
    case = CASES[name]
    if with_bias and case[2] == CHOSEN:
        pytest.skip("no model chooses by a bias and weighs the chosen ones alone")
    rows, n = 23, case[0]
    logits = distinct(rng, rows, n, spread)
    # So coarse that what the choice goes by lies as far apart as the logits do.
    bias = (2.0 * rng.permutation(n) - n).astype(np.float32) if with_bias else None
    routes = route(target, logits, bias, case)
    experts, weights, bound = expected_routes(logits, bias, case)
    np.testing.assert_array_equal(routes["expert"], experts)
    assert_within(routes["weight"], weights, bound)


@table(name=list(CASES))
def test_a_row_has_the_same_bits_alone_and_beside_others(target, rng, name):
    case = CASES[name]
    logits = rng.standard_normal((40, case[0])).astype(np.float32)
    together = route(target, logits, None, case)
    assert_same_bits(route(target, logits, None, case, threads=3), together)
    for first, n in [(0, 1), (17, 1), (3, 16)]:
        part = route(target, logits, None, case, first_row=first, n_rows=n)
        assert_same_bits(part[first : first + n], together[first : first + n])
        outside = np.delete(part, np.arange(first, first + n), axis=0)
        assert (outside.view(np.uint8) == 0xFF).all(), "wrote rows that are not its own"


def test_the_first_of_equals_comes_first(target):
    routes = route(target, np.zeros((2, 40), np.float32), None, (40, 4, SOFTMAX, 1, 1.0, 1, 1, 1))
    np.testing.assert_array_equal(routes["expert"], np.tile(np.arange(4), (2, 1)))
    np.testing.assert_allclose(routes["weight"], 0.25, rtol=1e-6)


@table(bad=[np.nan, np.inf, -np.inf], name=list(CASES))
def test_what_is_no_number_chooses_experts_that_there_are(target, rng, name, bad):
    """Weights may be no number then; an expert's number is one, or memory is read at random."""
    case = CASES[name]
    logits = rng.standard_normal((3, case[0])).astype(np.float32)
    logits[0], logits[1, case[0] // 2] = bad, bad
    clean = route(target, logits[2:], None, case)
    routes = route(target, logits, None, case)
    assert (routes["expert"] < case[0]).all()
    assert_same_bits(routes[2:], clean)


@table(name=["qwen3", "mixtral", "deepseek-3"])
def test_scales_of_experts_multiply_the_weights(target, rng, name):
    case = CASES[name]
    logits = distinct(rng, 9, case[0], 3.0)
    scales = rng.uniform(0.3, 3.0, case[0]).astype(np.float32)
    plain = route(target, logits, None, case)
    scaled = route(target, logits, None, case, scales=scales)
    np.testing.assert_array_equal(scaled["expert"], plain["expert"])
    np.testing.assert_array_equal(scaled["weight"], plain["weight"] * scales[plain["expert"]])
