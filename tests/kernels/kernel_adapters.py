"""Adapters for the tests of adapter_down and adapter_up, and the two kernels."""

from __future__ import annotations

import numpy as np
from harness import OPTION_WORDS, On, Run, make_step, pack_params, poisoned, run

# Of each adapter the first row, the rank and the scale: one of rank 0 leaves the weight as it is.
PARTS = [(0, 3, 0.5), (3, 17, -2.0), (20, 0, 0.0), (20, 1, 1.25)]
RANK = 21
# Of each sequence, adapters and their shares; none: a row without an adapter.
SHARES = [{}, {0: 1.0}, {1: -0.5, 3: 2.0}, {0: 0.25, 1: 1.0, 2: 3.0, 3: -1.0}]
FIRST = 5  # the word of the options where a list begins


def parts(given=PARTS):
    found = np.zeros((len(given), 4), np.uint32)
    found[:, :2] = [each[:2] for each in given]
    found[:, 2] = np.array([each[2] for each in given], np.float32).view(np.uint32)
    return found


def step_of(shares, rows_each=2):
    """Rows of a sequence for each of the lists, and the options that these lie in."""
    step = make_step([Run(i, 0, rows_each) for i in range(len(shares))])
    options = poisoned((len(shares), OPTION_WORDS), np.uint32)
    for sequence, each in enumerate(shares):
        if not each:
            continue
        words = [len(each)]
        for adapter, share in each.items():
            words += [adapter, int(np.float32(share).view(np.uint32))]
        options[sequence, FIRST : FIRST + len(words)] = words
        step.rows["adapter"][step.rows["sequence"] == sequence] = FIRST
    return step, options


def down(target, activation, weight, step, options, *, threads=2, given=PARTS):
    rank, k = weight.values.shape
    out = poisoned((len(activation.data), rank))
    run(
        "adapter_down",
        [activation.data, weight, parts(given), options, out],
        pack_params("adapter_down", k, rank),
        step,
        On(target, threads, activation.kind),
    )
    return out


def up(target, low, weight, data, step, options, *, threads=2, given=PARTS):
    rank, n = weight.values.shape
    out = data.copy()
    run(
        "adapter_up",
        [low, weight, parts(given), options, out],
        pack_params("adapter_up", n, rank),
        step,
        On(target, threads),
    )
    return out


def rows_of(shares):
    """The rows of the stacked weights that a list of adapters has."""
    return [j for a in shares for j in range(PARTS[a][0], PARTS[a][0] + PARTS[a][1])]
