"""A text that goes on with turned keys, beside transformers, whose cache is turned by hand.

All layers: values of those above the first remember what was dropped, in both alike. The cache of
transformers is rounded where akunu's is: beside one in F32, other experts are chosen where two are
near, and all that follows differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import hf_shift
import random_decoders
import random_experts
from engine import BOUND_F32_CACHE, MUTATION_FACTOR, finished, opened, start
from numpy.typing import NDArray
from random_models import ModelCase
from shifting import check_serves_nobody, shifted

pytestmark = pytest.mark.oracle

Measured = Callable[[str, str, float], None]

# Both round to halves, and seldom to different ones. Measured: 5.2e-4.
BOUND_HALVES = 1e-3
N_LIKELY = 20
N_NEW = 24
CONTEXT = 320
# Over the edges of pages; windows of these models are 70 tokens and less than a page of keys.
CUTS = [(20, 90), (0, 128), (70, 64)]
HOT: dict[str, Any] = {"temperature": 1.5, "ignore_eos": True, "logprobs": N_LIKELY}

KINDS = ["llama-gqa", "llama-factors", "llama-linear", "qwen3", "gemma2", "gemma3"]
MOVED = [
    *("qwen3-moe", "gpt-oss", "granite-4-nope", "smollm3", "olmo3", "glm4", "ministral3"),
    *("exaone4-windows", "cohere2", "gemma4", "gemma4-small", "gemma4-moe", "gemma3n"),
    *("deepseek2", "deepseek2-lite", "deepseek3", "deepseek3-moe", "minicpm3"),
]
# A norm behind the rotation, and convolutions.
REREAD = ["hunyuan", "hunyuan-moe", "lfm2"]


class Pair:
    """One model: as transformers has it, and where akunu finds it."""

    def __init__(self, theirs: Any, path: Path, n_vocab: int) -> None:
        self.theirs, self.path = theirs, path
        self.tokens = np.random.RandomState(5).randint(0, n_vocab, CONTEXT).tolist()


@pytest.fixture(scope="module", params=[*KINDS, *MOVED])
def pair(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    model_case: Callable[..., ModelCase],
    oracle: Any,
) -> Iterator[Pair]:
    if request.param in KINDS:
        case = model_case(request.param)
        yield Pair(oracle.load(case.spec, case.weights), case.path, case.spec.vocab_size)
    else:
        yield family(request.param, tmp_path_factory.mktemp("moved") / "model")


def family(name: str, folder: Path) -> Pair:
    families = random_decoders if name in random_decoders.FAMILIES else random_experts
    model = families.model_of(name)
    return Pair(model, families.save(folder, model), random_decoders.VOCAB)


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
    kv_type: str = "f32",
    turned_by: int | None = None,
) -> list[NDArray[np.float32]]:
    """Logits of transformers for the tokens that akunu chose."""
    text = hf_shift.Text(pair.theirs, kv_type)
    text.read(pair.tokens)
    logits = []
    for (first, by), (new, _, _) in zip(cuts, parts, strict=True):
        text.drop(first, by, turned_by=turned_by)
        logits.append(text.read([*last, *new[:-1]]))
        last = new[-1:]
    return logits


@pytest.mark.parametrize(("kv_type", "bound"), [("f32", BOUND_F32_CACHE), ("f16", BOUND_HALVES)])
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
    error = largest_error(parts, turned(pair, CUTS, last, parts, kv_type))
    measured(f"moved keys, {kv_type} cache", name, error)
    assert error <= bound
    if kv_type == "f32":
        far = MUTATION_FACTOR * bound
        assert largest_error(parts, read_again(oracle, pair, CUTS, last, parts)) > far
        if name != "granite-4-nope":  # it has no positions
            assert largest_error(parts, turned(pair, CUTS, last, parts, turned_by=0)) > far


@pytest.mark.parametrize("name", REREAD)
def test_what_does_not_turn_is_what_transformers_reads_again(
    tmp_path: Path, oracle: Any, measured: Measured, name: str
) -> None:
    pair = family(name, tmp_path / "model")
    last, parts = ours(pair, CUTS, lambda n: 0, "f32")
    error = largest_error(parts, read_again(oracle, pair, CUTS, last, parts))
    measured("read again, f32 cache", name, error)
    assert error <= BOUND_F32_CACHE


def test_halves_choose_other_experts_where_two_are_near(tmp_path: Path) -> None:
    """Of transformers alone, before anything moves: why its cache is rounded above."""
    pair = family("qwen3-moe", tmp_path / "model")
    scores: dict[str, list[NDArray[np.float32]]] = {"f32": [], "f16": []}
    for kv_type, found in scores.items():
        hooks = [
            layer.mlp.gate.register_forward_hook(
                lambda _, __, out, found=found: found.append(out[0].numpy())
            )
            for layer in pair.theirs.model.layers
        ]
        hf_shift.Text(pair.theirs, kv_type).read(pair.tokens)
        for hook in hooks:
            hook.remove()
    n_chosen = pair.theirs.config.num_experts_per_tok
    exact, rounded = (np.stack(each) for each in scores.values())  # [layers, tokens, experts]
    ordered = np.sort(exact)
    gap = ordered[..., -n_chosen] - ordered[..., -n_chosen - 1]
    chosen, others = (np.sort(np.argsort(each)[..., -n_chosen:]) for each in (exact, rounded))
    differ = (chosen != others).any(-1)
    first = int(np.argmax(differ.any(-1)))  # layers above it had other inputs
    assert differ[first].any()
    assert gap[first][differ[first]].max() < 1e-3 * exact[first].std()


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


OTHERS = ["gpt-oss", "gemma3n", "gemma4-small", "gemma4-moe", "deepseek3-moe"]


@pytest.mark.parametrize("name", [*OTHERS, "lfm2"])
def test_beside_others_it_is_the_text_alone(tmp_path: Path, name: str) -> None:
    """Sinks, experts, shared layers, latents and convolutions; drafts or none."""
    pair = family(name, tmp_path / "model")
    with opened(pair.path, context=CONTEXT, kv_type="f16") as model:

        def begun(i: int, **more: Any) -> Any:
            text = [*pair.tokens[i:], *pair.tokens[:i]]
            return shifted(model, text, *CUTS[i], 40, **{**HOT, "seed": i, **more})

        one_by_one = [begun(i) for i in range(3)]
        alone = [finished(each) for each in one_by_one]
        moved = [0 if name == "lfm2" else CONTEXT - by for _, by in CUTS]
        assert [each.moved_tokens for each in one_by_one] == moved
        together = [begun(i, speculation=4 * i) for i in range(3)]
        others = [start(model, pair.tokens[i : i + 60], 40, seed=i, **HOT) for i in range(3)]
        assert [finished(each) for each in together] == alone
        for each in others:
            finished(each)


@pytest.mark.parametrize("name", ["qwen3-moe", *OTHERS])
def test_what_was_moved_serves_no_other_text(tmp_path: Path, name: str) -> None:
    pair = family(name, tmp_path / "model")

    def load() -> AbstractContextManager[Any]:
        return opened(pair.path, context=CONTEXT, kv_type="f16")

    check_serves_nobody(load, pair.tokens, 40, 90, temperature=1.5, ignore_eos=True)
