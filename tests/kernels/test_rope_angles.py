"""rope_angles: the angle is a float32 product, its cosine and sine are within a unit."""

from __future__ import annotations

import numpy as np
from harness import On, Run, assert_same_bits, assert_within, make_step, pack_params, poisoned, run
from reference import UNIT
from tables import table


def angles_of(target, frequencies, step, threads=1, growth=(0.0, 0), factor=1.0, axes=()):
    out = poisoned((len(step.rows), 2 * len(frequencies)))
    words = [0] * 8
    for pair, axis in enumerate(axes):
        words[pair // 16] |= axis << 2 * (pair % 16)
    run(
        "rope_angles",
        [frequencies, out],
        pack_params("rope_angles", len(frequencies), *growth, factor, *words),
        step,
        On(target, threads),
    )
    return out


@table(n_pairs=[1, 20, 32, 63])
def test_agrees_with_float64(target, n_pairs):
    base = 500000.0
    frequencies = (base ** (-np.arange(n_pairs) / n_pairs)).astype(np.float32)
    step = make_step([Run(0, 0, 3), Run(1, 255, 3), Run(2, 131070, 2)], max_positions=131072)
    out = angles_of(target, frequencies, step)
    angle = step.rows["position"].astype(np.float32)[:, None] * frequencies
    # libm: within a unit in the last place; the result is at most 1.
    bound = np.full(angle.shape, 2 * UNIT)
    assert_within(out[:, 0::2], np.cos(angle.astype(np.float64)), bound)
    assert_within(out[:, 1::2], np.sin(angle.astype(np.float64)), bound)
    assert_same_bits(angles_of(target, frequencies, step, threads=3), out)
    alone = make_step([Run(1, 256, 1)], max_positions=131072)
    assert_same_bits(angles_of(target, frequencies, alone), out[4:5])


def test_grows_with_the_logarithm_of_the_position(target):
    frequencies = (10000.0 ** (-np.arange(9) / 9)).astype(np.float32)
    step = make_step([Run(0, 0, 3), Run(1, 62, 4), Run(2, 16383, 2)], max_positions=16385)
    out = angles_of(target, frequencies, step, growth=(0.1, 64))
    positions = step.rows["position"]
    angle = (positions.astype(np.float32)[:, None] * frequencies).astype(np.float64)
    factor = 1 + 0.1 * np.log(1 + positions // 64)[:, None]
    # Cosine and sine 2 u, logarithm 2 ulp of at most 6, two sums and two products.
    bound = np.full(angle.shape, 16 * UNIT)
    assert_within(out[:, 0::2], np.cos(angle) * factor, bound)
    assert_within(out[:, 1::2], np.sin(angle) * factor, bound)
    assert_same_bits(out[:4], angles_of(target, frequencies, step)[:4])  # within the first 64


def test_a_factor_multiplies_cosine_and_sine(target):
    frequencies = (10000.0 ** (-np.arange(9) / 9)).astype(np.float32)
    step = make_step([Run(0, 0, 3), Run(1, 62, 4)], max_positions=1024)
    plain = angles_of(target, frequencies, step)
    np.testing.assert_array_equal(
        angles_of(target, frequencies, step, factor=1.25), plain * np.float32(1.25)
    )


@table(n_pairs=[3, 40, 128, 150])
def test_each_pair_turns_by_its_axis(target, n_pairs):
    frequencies = (10000.0 ** (-np.arange(n_pairs) / n_pairs)).astype(np.float32)
    step = make_step([Run(0, 5, 3), Run(1, 900, 2)], max_positions=1024)
    step.rows["rope_offsets"] = [[0, 0, 0], [-6, 7, 11], [-2, -1, 900], [3, 0, -900], [0, 1, 2]]
    axes = np.random.default_rng(1).integers(0, 3, min(n_pairs, 128))
    out = angles_of(target, frequencies, step, axes=[int(axis) for axis in axes])
    of_pairs = np.concatenate([axes, np.zeros(n_pairs - len(axes), np.int64)])
    offsets = step.rows["rope_offsets"].astype(np.int64)[:, of_pairs]
    positions = (step.rows["position"].astype(np.int64)[:, None] + offsets).astype(np.float32)
    angle = (positions * frequencies).astype(np.float64)
    bound = np.full(angle.shape, 2 * UNIT)
    assert_within(out[:, 0::2], np.cos(angle), bound)
    assert_within(out[:, 1::2], np.sin(angle), bound)
