"""Texts on a GPU, where a chain of steps is submitted before the one before it has ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from engine import BOUND_F32_CACHE, GPUS, finished, nightly_but, opened, start
from numpy.typing import NDArray
from numpy_forward import NumpyModel
from random_models import ModelCase, random_tokens

from akunu import _core

Cases = Callable[..., ModelCase]

MODELS = [("llama-gqa", "f32"), ("qwen3", "f16"), ("qwen2-32", "q4_0"), ("qwen3-256", "q4_k_m")]


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize(
    ("kind", "weight_format"), nightly_but(MODELS, [("llama-gqa", "f32"), ("qwen3", "f16")])
)
def test_greedy_text_is_the_argmax_of_the_exact_logits(
    model_case: Cases, gpu: str, kind: str, weight_format: str
) -> None:
    case = model_case(kind, weight_format)
    reference = NumpyModel(case.path)
    with opened(case.path, device=gpu) as model:
        for n_prompt in (1, 40, 250):
            prompt = random_tokens(case.spec, n_prompt, seed=n_prompt)
            text = finished(start(model, prompt, 30))
            assert len(text) == 30
            exact = reference.logits(prompt + text[:-1])[n_prompt - 1 :]
            chosen = np.take_along_axis(exact, np.array(text)[:, None], axis=1)[:, 0]
            behind = exact.max(axis=1) - chosen
            assert (behind <= 2 * BOUND_F32_CACHE * np.abs(exact).max()).all()


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize(("kind", "weight_format"), nightly_but(MODELS, [("qwen2-32", "q4_0")]))
def test_texts_side_by_side_are_those_alone(
    model_case: Cases, gpu: str, kind: str, weight_format: str
) -> None:
    case = model_case(kind, weight_format)
    prompts = [random_tokens(case.spec, n, seed=n) for n in (3, 20, 50)]
    sampling = [{"temperature": 1.5, "seed": 7 + i, "choice": i} for i in range(3)]
    lengths = [50, 17, 34]  # they leave at different steps
    with opened(case.path, device=gpu) as model:
        alone = [
            finished(start(model, prompt, n, **settings))
            for prompt, n, settings in zip(prompts, lengths, sampling, strict=True)
        ]
        together = [
            start(model, prompt, n, **settings)
            for prompt, n, settings in zip(prompts, lengths, sampling, strict=True)
        ]
        assert [finished(generation) for generation in together] == alone
        stop = alone[0][20]
        first = alone[0].index(stop)
        stopped = finished(start(model, prompts[0], 50, **sampling[0], stop_ids=[stop]))
        assert stopped == alone[0][:first]


def assert_exact_logprobs(generation: Any, exact: NDArray[np.floating], text: list[int]) -> None:
    """That the logprobs of a text are those of the logits before each token."""
    chosen, tokens, most_likely = generation.logprobs(0, len(text))
    bound = 2 * BOUND_F32_CACHE * np.abs(exact).max()
    shifted = exact - exact.max(axis=1, keepdims=True)
    logprobs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    places = np.arange(len(text))
    assert np.abs(chosen - logprobs[places, text]).max() <= bound
    best = np.sort(logprobs, axis=1)[:, ::-1][:, :3]
    assert np.abs(most_likely[:, :3] - best).max() <= bound
    assert np.abs(logprobs[places[:, None], tokens[:, :3]] - best).max() <= 2 * bound


@pytest.mark.parametrize("gpu", GPUS)
def test_logprobs_are_those_of_the_exact_logits(model_case: Cases, gpu: str) -> None:
    """Texts side by side, one of them sampled, and a prompt."""
    case = model_case("llama-gqa")
    prompts = [random_tokens(case.spec, n, seed=n) for n in (3, 70)]
    reference = NumpyModel(case.path)
    with opened(case.path, device=gpu) as model:
        texts = [
            start(model, prompt, 20, logprobs=3, temperature=temperature)
            for prompt, temperature in zip(prompts, (0.0, 1.5), strict=True)
        ]
        for prompt, generation in zip(prompts, texts, strict=True):
            text = finished(generation)
            exact = reference.logits(prompt + text[:-1])[len(prompt) - 1 :]
            assert_exact_logprobs(generation, exact, text)


@pytest.mark.parametrize("gpu", GPUS)
def test_drafted_rows_go_on_as_the_exact_logits_do(model_case: Cases, gpu: str) -> None:
    """Four tokens that are free, nine that are written and so drafted, and free ones behind."""
    case = model_case("llama-gqa")
    prompt, written = (random_tokens(case.spec, n, seed=n) for n in (40, 9))
    reference = NumpyModel(case.path)
    with opened(case.path, device=gpu) as model:
        free = finished(start(model, prompt, 4))
        constraint = _core.Constraint(None, "", ([], [tuple(written)], 4, tuple(written)))
        generation = start(model, prompt, 24, logprobs=3, constraint=constraint)
        text = finished(generation)
    assert text[:13] == free + written
    exact = reference.logits(prompt + text[:-1])[len(prompt) - 1 :]
    assert_exact_logprobs(generation, exact, text)
    behind = exact.max(axis=1) - exact[np.arange(len(text)), text]
    assert (behind[13:] <= 2 * BOUND_F32_CACHE * np.abs(exact).max()).all()
    assert len(text) == 24


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize(("kind", "n_commands"), [("qwen3-256", 5), ("gemma3-256", 7)])
def test_a_layer_of_one_row_is_few_commands(
    model_case: Cases, gpu: str, kind: str, n_commands: int
) -> None:
    """A launch more: attention is two, its parts and their sum. Norms behind are a command each."""
    case = model_case(kind, "q4_0")
    with opened(case.path, device=gpu) as model:
        labels = model._native.labels("single")
    in_layers = [label for label in labels if label.startswith("layer ")]
    assert len(in_layers) == n_commands * case.spec.n_layers
    n_bases = 2 if case.spec.architecture == "gemma3" else 1
    assert len(labels) - len(in_layers) <= 3 + n_bases
