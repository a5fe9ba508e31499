"""Golden values: logits that Hugging Face computed for the random models, committed.

A file holds the tokens, a set of positions (beginning, powers of two, both sides of the cache's
page of 256, end) with all their logits, a fingerprint of the weights, and how it was made.
`tests/oracle/make_golden.py` writes them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from random_models import Weights

FOLDER = Path(__file__).parent / "golden"
SEED = 1
N_TOKENS = 307  # crosses the cache's page of 256 positions, and is a multiple of nothing
POSITIONS = (
    *(0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 63, 64, 100, 127, 128),
    *(200, 254, 255, 256, 257, 258, 300, 305, 306),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Golden:
    """What one file says."""

    tokens: list[int]
    positions: NDArray[np.int64]
    logits: NDArray[np.float32]  # [len(positions), vocab_size]
    fingerprint: NDArray[np.float64]
    recipe: dict[str, str]


def fingerprint(weights: Weights) -> NDArray[np.float64]:
    """Per tensor, sorted by name: the sum and the sum of squares."""
    sums = []
    for name in sorted(weights):
        values = weights[name].astype(np.float64)
        sums += [values.sum(), (values * values).sum()]
    return np.array(sums)


def save(
    kind: str,
    tokens: Sequence[int],
    logits: NDArray[np.float32],
    weights: Weights,
    recipe: dict[str, str],
) -> Path:
    """Write the golden values of `kind` from its full logits."""
    path = FOLDER / f"{kind}.npz"
    np.savez_compressed(
        path,
        tokens=np.array(tokens, np.uint16),
        positions=np.array(POSITIONS, np.uint16),
        logits=logits[list(POSITIONS)],
        fingerprint=fingerprint(weights),
        recipe=np.array(json.dumps(recipe, sort_keys=True)),
    )
    return path


def load(kind: str) -> Golden:
    """The golden values of `kind`."""
    with np.load(FOLDER / f"{kind}.npz") as data:
        return Golden(
            tokens=[int(token) for token in data["tokens"]],
            positions=data["positions"].astype(np.int64),
            logits=data["logits"],
            fingerprint=data["fingerprint"],
            recipe=json.loads(str(data["recipe"])),
        )
