"""Our samplers beside llama.cpp's: what the reference of tests/kernels leaves of logits."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "kernels"))
sys.path.insert(0, str(Path(__file__).parents[2]))

import peer_samplers
import sample_reference as ref
from harness import neutral_sequences
from tools.compare.accuracy import EMBER

import akunu
from akunu.options.dry_breakers import breaker_words

pytestmark = pytest.mark.oracle

# Fields of a record, and the samplers of llama.cpp that do the same.
ORDERS: list[tuple[dict[str, float], list[list[Any]]]] = [
    ({"top_k": 7}, [["top_k", 7]]),
    ({"top_p": 0.7}, [["top_p", 0.7, 0]]),
    ({"min_p": 0.1}, [["min_p", 0.1, 0]]),
    ({"typical_p": 0.6}, [["typical", 0.6, 0]]),
    ({"typical_p": 0.9}, [["typical", 0.9, 0]]),
    ({"top_n_sigma": 1.0}, [["top_n_sigma", 1.0]]),
    ({"xtc_probability": 1, "xtc_threshold": 0.05}, [["xtc", 1.0, 0.05, 0, 1]]),
    (
        {"repetition_penalty": 1.3, "frequency_penalty": 0.2, "presence_penalty": 0.4}
        | {"penalty_window": 64},
        [["penalties", 300, 64, 1.3, 0.2, 0.4]],
    ),
    (
        {"top_n_sigma": 2, "top_k": 60, "typical_p": 0.9, "top_p": 0.9, "min_p": 0.05}
        | {"xtc_probability": 1, "xtc_threshold": 0.1, "temperature": 1.7},
        [
            ["top_n_sigma", 2.0],
            ["top_k", 60],
            ["typical", 0.9, 0],
            ["top_p", 0.9, 0],
            ["min_p", 0.05, 0],
            ["xtc", 1.0, 0.1, 0, 1],
            ["temp", 1.7],
        ],
    ),
]


def record_of(**fields: float) -> np.void:
    records = neutral_sequences(1)
    records["temperature"] = 1
    for name, value in fields.items():
        records[name] = value
    return records[0]


def assert_alike(z: np.ndarray, peers: list[tuple[int, float]], what: str = "") -> None:
    # What llama.cpp's DRY makes impossible is -1e30 here.
    ours = {int(t): float(z[t]) for t in np.flatnonzero(z > -1e29)}
    theirs = dict(peers)
    assert set(ours) == set(theirs), what
    for token, logit in theirs.items():
        assert ours[token] == pytest.approx(logit, rel=1e-5, abs=1e-5), what


def test_filters_leave_what_llama_cpp_leaves(peer: str) -> None:
    rng = np.random.default_rng(11)
    cases, ours = [], []
    for fields, samplers in ORDERS:
        for _ in range(10):
            logits = (rng.standard_normal(300) * 3).astype(np.float32)
            text = rng.integers(0, 300, 50).astype(np.uint32)
            cases.append({"logits": logits.tolist(), "tokens": text.tolist(), "samplers": samplers})
            ours.append(ref.candidates_of(logits, record_of(**fields), log=text, position=49))
    answers = peer_samplers.asked(peer, EMBER, cases)
    for case, z, peers in zip(cases, ours, answers, strict=True):
        assert_alike(z, peers, str(case["samplers"]))


def breakers_in(words: list[int]) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    while words:
        n_tail, n_heads = words[:2]
        tail, heads = words[2 : 2 + n_tail], words[2 + n_tail : 2 + n_tail + n_heads]
        found += [(head, *tail) for head in heads]
        words = words[2 + n_tail + n_heads :]
    return found


@pytest.mark.parametrize(
    "breakers", [["\n", ":", '"', "*"], ["sea", ". "], ["the sea is"], ["zzz"]]
)
def test_dry_costs_what_it_costs_in_llama_cpp(peer: str, breakers: list[str]) -> None:
    tokenizer = akunu.Tokenizer.from_gguf(EMBER)
    said = (
        "The sea is blue: so is the sky. The sea is deep, and the sea is cold.\n"
        'She said: "The sea is blue, so is the sky. The sea is deep, and the sea is '
    )
    table = breakers_in(breaker_words(tokenizer, tuple(breakers)))
    rng = np.random.default_rng(3)
    cases, ours = [], []
    for length in range(5, 60, 5):
        for base, allowed, last_n in ((1.75, 2, 1000), (2.0, 1, 20), (1.0, 3, 40)):
            tokens = tokenizer.encode(said * 2)[: 20 + length]
            logits = rng.standard_normal(tokenizer.vocab_size).astype(np.float32)
            cases.append(
                {
                    "logits": logits.tolist(),
                    "tokens": tokens,
                    "samplers": [["dry", 0.8, base, allowed, last_n, breakers]],
                }
            )
            record = record_of(
                dry_multiplier=0.8,
                dry_base=base,
                dry_allowed_length=allowed,
                dry_penalty_last_n=last_n,
            )
            log = np.array(tokens, np.uint32)
            ours.append(ref.dry(logits, log, len(tokens) - 1, record, table))
    for z, peers in zip(ours, peer_samplers.asked(peer, EMBER, cases), strict=True):
        assert_alike(z, peers)
    changed = sum(
        bool((z != np.array(case["logits"], np.float32)).any())
        for z, case in zip(ours, cases, strict=True)
    )
    assert changed > len(cases) // 3, "many of them cost something"
