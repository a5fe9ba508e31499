"""A text that goes on with turned keys, beside transformers, whose cache is turned by hand.

All layers: values of those above the first remember what was dropped, in both alike.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import hf_shift
from engine import BOUND_F16_CACHE, BOUND_F32_CACHE, MUTATION_FACTOR, finished, opened, start
from numpy.typing import NDArray
from random_models import ModelCase

pytestmark = pytest.mark.oracle

Measured = Callable[[str, str, float], None]

N_LIKELY = 20
N_NEW = 24
CONTEXT = 320
# Over the edges of pages; windows of these models are 70 tokens and less than a page of keys.
CUTS = [(20, 90), (0, 128), (70, 64)]
HOT: dict[str, Any] = {"temperature": 1.5, "ignore_eos": True, "logprobs": N_LIKELY}

KINDS = ["llama-gqa", "llama-factors", "llama-linear", "qwen3", "gemma2", "gemma3"]


class Pair:
    """One model: as transformers has it, and where akunu finds it."""

    def __init__(self, theirs: Any, path: Path, n_vocab: int) -> None:
        self.theirs, self.path = theirs, path
        self.tokens = np.random.RandomState(5).randint(0, n_vocab, CONTEXT).tolist()


@pytest.fixture(scope="module", params=KINDS)
def pair(
    request: pytest.FixtureRequest,
    model_case: Callable[..., ModelCase],
    oracle: Any,
) -> Pair:
    case = model_case(request.param)
    return Pair(oracle.load(case.spec, case.weights), case.path, case.spec.vocab_size)


Parts = list[tuple[list[int], NDArray[np.uint32], NDArray[np.float32]]]


def ours(
    pair: Pair, cuts: list[tuple[int, int]], n_moved: Callable[[int], int], kv_type: str
) -> tuple[list[int], Parts]:
    """Tokens chosen after each cut, the likely ones beside them, and their logprobs."""
    with opened(pair.path, context=CONTEXT, kv_type=kv_type) as model:
        part = start(model, pair.tokens, 1, keeps_positions=True)
        last = finished(part)
        text, parts = [*pair.tokens, *last], []
        for i, (first, by) in enumerate(cuts):
            text = [*text[:first], *text[first + by :]]
            before = part
            n_new = CONTEXT + 1 - len(text) if i + 1 < len(cuts) else N_NEW
            part = start(
                model, text, n_new, goes_on_from=before, keeps_positions=True, seed=i, **HOT
            )
            new = finished(part)
            assert part.moved_tokens == n_moved(len(text) - 1)
            _, likely, logprobs = part.logprobs(0, n_new)
            parts.append((new, likely, logprobs))
            text += new
    return last, parts


def largest_error(parts: Parts, logits: list[NDArray[np.float32]]) -> float:
    """Of logprobs, beside the largest logit."""
    error = 0.0
    for (_, likely, logprobs), theirs in zip(parts, logits, strict=True):
        wide = theirs.astype(np.float64)
        expected = wide - np.log(np.exp(wide - wide.max(-1, keepdims=True)).sum(-1, keepdims=True))
        expected -= wide.max(-1, keepdims=True)
        there = np.take_along_axis(expected, likely.astype(np.int64), axis=-1)
        error = max(error, float(np.abs(there - logprobs).max() / np.abs(wide).max()))
    return error


def turned(
    pair: Pair,
    cuts: list[tuple[int, int]],
    last: list[int],
    parts: Parts,
    turned_by: int | None = None,
) -> list[NDArray[np.float32]]:
    """Logits of transformers for the tokens that akunu chose."""
    text = hf_shift.Text(pair.theirs)
    text.read(pair.tokens)
    logits = []
    for (first, by), (new, _, _) in zip(cuts, parts, strict=True):
        text.drop(first, by, turned_by=turned_by)
        logits.append(text.read([*last, *new[:-1]]))
        last = new[-1:]
    return logits


@pytest.mark.parametrize(("kv_type", "bound"), [("f32", BOUND_F32_CACHE), ("f16", BOUND_F16_CACHE)])
def test_logits_behind_three_shifts_are_those_of_transformers(
    pair: Pair,
    oracle: Any,
    measured: Measured,
    kv_type: str,
    bound: float,
    request: pytest.FixtureRequest,
) -> None:
    name = request.node.callspec.params["pair"]
    last, parts = ours(pair, CUTS, lambda n: n, kv_type)
    error = largest_error(parts, turned(pair, CUTS, last, parts))
    measured(f"moved keys, {kv_type} cache", name, error)
    assert error <= bound
    if kv_type == "f32":
        far = MUTATION_FACTOR * bound
        assert largest_error(parts, read_again(oracle, pair, CUTS, last, parts)) > far
        assert largest_error(parts, turned(pair, CUTS, last, parts, turned_by=0)) > far


def read_again(
    oracle: Any, pair: Pair, cuts: list[tuple[int, int]], last: list[int], parts: Parts
) -> list[NDArray[np.float32]]:
    """Logits of transformers where each part reads all of what is kept."""
    text, logits = [*pair.tokens, *last], []
    for (first, by), (new, _, _) in zip(cuts, parts, strict=True):
        text = [*text[:first], *text[first + by :]]
        logits.append(oracle.logits(pair.theirs, [*text, *new[:-1]])[len(text) - 1 :])
        text += new
    return logits
