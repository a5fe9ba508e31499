"""sample in float64: the steps of docs/kernels.md, and how close a pick was.

z, penalties and comparisons with them are float32 as in the contract; masses and noise are float64,
with the error that a float32 evaluation may have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from reference import UNIT

Array = np.ndarray
MASS_ERROR = 1e-6  # relative: e^z to 2 ulp and a subtraction of numbers up to 20, sums in double


def philox4x32_10(counter: Array, key: tuple[int, int]) -> Array:
    """uint32 [..., 4]: ten rounds of Philox over counters [..., 4]."""
    c0, c1, c2, c3 = (counter[..., i].astype(np.uint64) for i in range(4))
    k0, k1 = np.uint64(key[0]), np.uint64(key[1])
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    for _ in range(10):
        p0, p1 = c0 * np.uint64(0xD2511F53), c2 * np.uint64(0xCD9E8D57)
        c0, c1, c2, c3 = (p1 >> shift) ^ c1 ^ k0, p1 & low, (p0 >> shift) ^ c3 ^ k1, p0 & low
        k0 = (k0 + np.uint64(0x9E3779B9)) & low
        k1 = (k1 + np.uint64(0xBB67AE85)) & low
    return np.stack([c0, c1, c2, c3], axis=-1).astype(np.uint32)


def noise(tokens: Array, draw: int, record: np.void) -> Array:
    """Gumbel noise of tokens at one draw, float64."""
    counter = np.zeros((len(tokens), 4), np.uint32)
    counter[:, 0], counter[:, 1], counter[:, 2] = tokens, draw, record["choice"]
    words = philox4x32_10(counter, (int(record["seed_low"]), int(record["seed_high"])))
    return gumbel(words[:, 0])


def gumbel(words: Array) -> Array:
    u = ((words >> 8).astype(np.float64) + 0.5) * 2.0**-24
    return -np.log(-np.log(u))


def noise_error(g: Array) -> Array:
    """Inner logarithm to 8 units relative, the outer to 3 ulp of at most 17.4, negation exact."""
    return 8 * UNIT + 8 * UNIT * np.maximum(np.abs(g), 1)


def penalise(logits: Array, log: Array, position: int, record: np.void) -> Array:
    """Step 3, float32 operation by operation."""
    out = logits.astype(np.float32).copy()
    begin = max(0, position + 1 - int(record["penalty_window"]))
    tokens, counts = np.unique(log[begin : position + 1], return_counts=True)
    for token, count in zip(tokens, counts, strict=True):
        if token < len(out):
            value = out[token]
            repetition = record["repetition_penalty"]
            value = value / repetition if value > 0 else value * repetition
            rest = np.float32(count) * record["frequency_penalty"] + record["presence_penalty"]
            out[token] = value - rest
    return out


def bias(logits: Array, biases: Mapping[int, float]) -> Array:
    """Step 2."""
    out = logits.astype(np.float32).copy()
    for token, each in biases.items():
        if token < len(out):
            out[token] = -np.inf if each == -np.inf else out[token] + np.float32(each)
    return out


def mask(logits: Array, allowed: Array) -> Array:
    """Step 4; `allowed`: bool [vocab_size]."""
    return np.where(allowed, logits, np.float32(-np.inf)).astype(np.float32)


@dataclass
class Pick:
    token: int
    certain: bool  # no decision was closer than float32 can tell


def candidates_of(z: Array, record: np.void, slack: float = 0.0) -> Array:
    """Step 6: the tokens by rank. `slack` moves every cut by that share, outwards if positive."""
    order = np.lexsort((np.arange(len(z)), -z.astype(np.float64)))
    if record["top_k"] > 0:
        order = order[: int(record["top_k"])]
    weights = np.exp(z[order].astype(np.float64) - float(z[order[0]]))
    if record["top_p"] < 1:
        reached = np.cumsum(weights) / weights.sum()
        keep = int(np.searchsorted(reached, float(record["top_p"]) + slack)) + 1
        order, weights = order[:keep], weights[:keep]
    if record["min_p"] > 0:
        order = order[weights >= float(record["min_p"]) * (1 - slack)]
    return order


def pick(logits: Array, record: np.void, draw: int) -> Pick:
    """Steps 5 to 7 for logits that are changed already."""
    if record["temperature"] == 0:
        return Pick(int(np.argmax(logits)), True)
    z = logits.astype(np.float32) / record["temperature"]
    tokens = candidates_of(z, record, MASS_ERROR)
    tokens = tokens[z[tokens] > -np.inf]  # what a mask or a bias bans has no chance
    g = noise(tokens, draw, record)
    noisy = z[tokens].astype(np.float64) + g
    best = noisy.argmax()
    error = noise_error(g) + UNIT * np.abs(noisy)
    # The best of all possible candidates is the pick, if it is surely one and nobody comes near.
    certain = bool(np.isin(tokens[best], candidates_of(z, record, -MASS_ERROR)))
    rivals = np.delete(noisy + error, best)
    if rivals.size and rivals.max() >= noisy[best] - error[best]:
        certain = False
    return Pick(int(tokens[best]), certain)
