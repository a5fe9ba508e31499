"""sample in float64: the steps of docs/kernels.md, and how close a pick was.

z, penalties and comparisons with them are float32 as in the contract; masses and noise are float64,
with the error that a float32 evaluation may have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from reference import UNIT
from remembered import remembered

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


def history(log: Array, position: int, record: np.void, most: int) -> Array:
    """The tokens that penalties look back at, the row's own included."""
    first = 0 if record["penalize_prompt"] else int(record["n_prompt"])
    return log[max(first, position + 1 - most) : position + 1]


def penalise(logits: Array, log: Array, position: int, record: np.void) -> Array:
    """Penalties, float32 operation by operation."""
    out = logits.astype(np.float32).copy()
    window = history(log, position, record, int(record["penalty_window"]))
    tokens, counts = np.unique(window, return_counts=True)
    for token, count in zip(tokens, counts, strict=True):
        if token < len(out):
            value = out[token]
            repetition = record["repetition_penalty"]
            value = value / repetition if value > 0 else value * repetition
            rest = np.float32(count) * record["frequency_penalty"] + record["presence_penalty"]
            out[token] = value - rest
    return out


Breakers = Sequence[tuple[int, ...]]  # single tokens, or several in a row


def dry(
    logits: Array, log: Array, position: int, record: np.void, breakers: Breakers = ()
) -> Array:
    """DRY as it was published (text-generation-webui, pull request 5677), token by token: of every
    token that was said, how long a piece before it is what the text ends with. That is no longer
    than what follows the latest breaker."""
    out = logits.astype(np.float32).copy()
    text = history(log, position, record, int(record["dry_penalty_last_n"])).tolist()
    allowed = int(record["dry_allowed_length"])
    if len(text) <= allowed:
        return out
    longest = len(text)
    for i in reversed(range(len(text))):
        found = [b for b in breakers if tuple(text[i : i + len(b)]) == b]
        if found:
            longest = len(text) - i - max(map(len, found))
            break
    repeats: dict[int, int] = {}
    for i in range(1, len(text)):
        length = 0
        while length < min(longest, i) and text[i - 1 - length] == text[-1 - length]:
            length += 1
        if length >= allowed <= longest:
            repeats[text[i]] = max(length, repeats.get(text[i], 0))
    for token, length in repeats.items():
        if token < len(out) and (token,) not in breakers:
            penalty = record["dry_multiplier"]
            for _ in range(length - allowed):
                penalty = np.float32(min(float(penalty) * float(record["dry_base"]), 1e30))
            out[token] = out[token] - min(penalty, np.float32(1e30))
    return out


def bias(logits: Array, biases: Mapping[int, float]) -> Array:
    """Step 2."""
    out = logits.astype(np.float32).copy()
    for token, each in biases.items():
        if token < len(out):
            out[token] = -np.inf if each == -np.inf else out[token] + np.float32(each)
    return out


def ban_stop_ids(logits: Array, draw: int, record: np.void) -> Array:
    """Step 3."""
    out = logits.astype(np.float32).copy()
    if draw < record["min_tokens"]:
        out[record["stop_ids"][: record["n_stop_ids"]]] = -np.inf
    return out


def mask(logits: Array, allowed: Array) -> Array:
    """Step 4; `allowed`: bool [vocab_size]."""
    return np.where(allowed, logits, np.float32(-np.inf)).astype(np.float32)


# --- The samplers, in the order of their numbers in a record --------------------------------------
# Each takes z, float32 [vocab_size], -inf where a token is no candidate any more, and returns it
# so. `slack` moves every cut by that share, outwards if positive.

SAMPLERS = (
    "penalties", "dry", "top_n_sigma", "top_k", "typical_p", "top_p", "min_p", "xtc", "temperature",
)  # fmt: skip


def by_rank(z: Array) -> Array:
    """All candidates, best first, the lowest of equals first."""
    order = np.lexsort((np.arange(len(z)), -z.astype(np.float64)))
    return order[z[order] > -np.inf]


def kept(z: Array, tokens: Array) -> Array:
    out = np.full_like(z, -np.inf)
    out[tokens] = z[tokens]
    return out


def weights_of(z: Array, tokens: Array) -> Array:
    return np.exp(z[tokens].astype(np.float64) - float(z.max()))


def shortest(weights: Array, share: float) -> int:
    """How many of the first weights reach this share of all."""
    reached = np.cumsum(weights) / weights.sum()
    return int(np.searchsorted(reached, share)) + 1


def top_n_sigma(z: Array, record: np.void, slack: float) -> Array:
    if not record["top_n_sigma"] > 0:
        return z
    finite = z[z > -np.inf].astype(np.float64)
    width = float(record["top_n_sigma"]) * finite.std()
    return np.where(
        z >= finite.max() - width * (1 + 4 * slack) - slack * abs(finite.max()), z, -np.inf
    )


def top_k(z: Array, record: np.void, slack: float) -> Array:
    return kept(z, by_rank(z)[: int(record["top_k"])]) if record["top_k"] > 0 else z


def typical_p(z: Array, record: np.void, slack: float) -> Array:
    if not record["typical_p"] < 1:
        return z
    tokens = by_rank(z)
    p = weights_of(z, tokens)
    p /= p.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -np.nansum(p * np.log(p))
        distance = np.abs(-np.log(p) - entropy * (1 + slack))
    order = np.lexsort((tokens, distance))
    return kept(z, tokens[order][: shortest(p[order], float(record["typical_p"]) + slack)])


def top_p(z: Array, record: np.void, slack: float) -> Array:
    if not record["top_p"] < 1:
        return z
    tokens = by_rank(z)
    return kept(z, tokens[: shortest(weights_of(z, tokens), float(record["top_p"]) + slack)])


def min_p(z: Array, record: np.void, slack: float) -> Array:
    tokens = by_rank(z)
    return kept(z, tokens[weights_of(z, tokens) >= float(record["min_p"]) * (1 - slack)])


def xtc(z: Array, record: np.void, slack: float, draw: int) -> Array:
    if record["xtc_probability"] == 0:
        return z
    counter = np.array([[0, draw, record["choice"], 1]], np.uint32)
    word = philox4x32_10(counter, (int(record["seed_low"]), int(record["seed_high"])))[0, 0]
    if (int(word) >> 8) * 2.0**-24 >= record["xtc_probability"]:
        return z
    tokens = by_rank(z)
    weights = weights_of(z, tokens)
    reach = weights >= float(record["xtc_threshold"]) * (1 + slack) * weights.sum()
    return kept(z, tokens[max(0, int(reach.sum()) - 1) :])


def candidates_of(
    logits: Array,
    record: np.void,
    slack: float = 0.0,
    *,
    draw: int = 0,
    log: Array | None = None,
    position: int = 0,
    breakers: Breakers = (),
) -> Array:
    """Step 5: z of the tokens that are left, -inf of the others."""
    z = logits.astype(np.float32)
    order = int(record["samplers_low"]) + (int(record["samplers_high"]) << 32)
    while order:
        name = SAMPLERS[order % 16 - 1]
        if name == "penalties" and log is not None:
            z = penalise(z, log, position, record)
        elif name == "dry" and log is not None and record["dry_multiplier"] > 0:
            z = dry(z, log, position, record, breakers)
        elif name == "temperature":
            z = z / record["temperature"] if record["temperature"] > 0 else kept(z, by_rank(z)[:1])
        elif name == "xtc":
            z = xtc(z, record, slack, draw)
        elif name in FILTERS:
            z = FILTERS[name](z, record, slack)
        order //= 16
    return z.astype(np.float32)


FILTERS = {
    "top_n_sigma": top_n_sigma,
    "top_k": top_k,
    "typical_p": typical_p,
    "top_p": top_p,
    "min_p": min_p,
}


@dataclass
class Pick:
    token: int
    certain: bool  # no decision was closer than float32 can tell


@remembered
def pick(logits: Array, record: np.void, draw: int, **text: Any) -> Pick:
    """Steps 5 and 6 for logits that biases and masks have changed already. `text`: log, position
    and breakers, as for `candidates_of`."""
    tokens, certain = [], True
    for slack in (0.0, MASS_ERROR, -MASS_ERROR):
        z = candidates_of(logits, record, slack, draw=draw, **text)
        left = np.flatnonzero(z > -np.inf)
        if record["temperature"] == 0:
            tokens.append(int(left[0]))
            continue
        g = noise(left, draw, record)
        noisy = z[left].astype(np.float64) + g
        error = noise_error(g) + UNIT * np.abs(noisy)
        best = noisy.argmax()
        tokens.append(int(left[best]))
        rivals = np.delete(noisy + error, best)
        certain = certain and not (rivals.size and rivals.max() >= noisy[best] - error[best])
    return Pick(tokens[0], certain and len(set(tokens)) == 1)
