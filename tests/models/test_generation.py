"""What is generated follows from the logits, whatever else runs beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import golden_values
import numpy as np
import pytest
from engine import GPUS, chunked, finished, opened, start
from golden_values import N_TOKENS
from random_models import (
    ALIGNED_KINDS,
    ODD_KINDS,
    ModelCase,
    ModelSpec,
    Weights,
    build,
    random_tokens,
)

import akunu
from lines import each_line

Cases = Callable[..., ModelCase]

MODELS = [(kind, "f32") for kind in ODD_KINDS] + [
    ("llama-32", "q8_0"),
    ("qwen2-32", "q4_0"),
    ("qwen3-32", "q8_0"),
    ("gemma2-32", "q8_0"),
    ("qwen3", "f16"),
]


@each_line("kind", ODD_KINDS)
def test_the_token_after_a_prompt_is_that_of_hugging_face(model_case: Cases, kind: str) -> None:
    """Whole prompts in one step of up to 307 rows, ending at each golden position."""
    golden = golden_values.load(kind)
    compared = 0
    with opened(model_case(kind).path) as model:
        for position, logits in zip(golden.positions, golden.logits, strict=True):
            second, first = np.sort(logits)[-2:]
            if first - second <= 2 * 2e-4 * np.abs(logits).max():
                continue
            (token,) = finished(start(model, golden.tokens[: position + 1], 1))
            assert token == logits.argmax()
            compared += 1
    assert compared >= 0.9 * len(golden.positions)


@pytest.mark.parametrize(("kind", "weight_format"), MODELS)
def test_greedy_text_is_the_argmax_of_the_logits(
    model_case: Cases, one_arithmetic: str, kind: str, weight_format: str
) -> None:
    """The prompt in one step, the text token by token; the logits in chunks of another size."""
    case = model_case(kind, weight_format)
    with opened(case.path) as model:
        for n_prompt in (1, 31, 250, 256, 300):
            prompt = random_tokens(case.spec, n_prompt, seed=n_prompt)
            text = finished(start(model, prompt, 40))
            assert len(text) == 40
            logits = model.logits(prompt + text[:-1])
            assert text == logits[n_prompt - 1 :].argmax(axis=1).tolist()


def room_for_four(case: ModelCase) -> int:
    """Bytes of a float32 cache that holds four full contexts, two pages of 256 each."""
    page = 2 * case.spec.n_layers * case.spec.kv_dim * 256 * 4
    return 4 * 2 * page


@each_line(("kind", "weight_format"), MODELS)
def test_texts_generated_side_by_side_are_those_generated_alone(
    model_case: Cases, kind: str, weight_format: str
) -> None:
    case = model_case(kind, weight_format)
    prompts = [random_tokens(case.spec, n, seed=n) for n in (3, 200, 255)]
    sampling = [{"temperature": 1.5, "seed": 7 + i, "choice": i} for i in range(3)]
    with opened(case.path, kv_memory=room_for_four(case)) as model:
        alone = [
            finished(start(model, prompt, 120, **settings))
            for prompt, settings in zip(prompts, sampling, strict=True)
        ]
        assert len({tuple(text) for text in alone}) == 3
        together = [
            start(model, prompt, 120, **settings)
            for prompt, settings in zip(prompts, sampling, strict=True)
        ]
        assert [finished(generation) for generation in together] == alone


@each_line(("kind", "weight_format"), MODELS)
def test_logits_beside_other_texts_are_those_alone(
    model_case: Cases, kind: str, weight_format: str
) -> None:
    case = model_case(kind, weight_format)
    tokens = random_tokens(case.spec, N_TOKENS, seed=5)
    prompts = [random_tokens(case.spec, n, seed=n) for n in (2, 17)]
    with opened(case.path, kv_memory=room_for_four(case)) as model:
        alone = chunked(model, tokens, [1] * N_TOKENS, "generated")
        texts = [finished(start(model, prompt, 450)) for prompt in prompts]
        # A step of the logits and a step of the texts take turns. On a busy machine the texts may
        # be done before the logits begin, so there are several attempts to meet.
        for _ in range(5):
            generations = [start(model, prompt, 450) for prompt in prompts]
            before = [generation.completion_tokens for generation in generations]
            beside = chunked(model, tokens, [1] * N_TOKENS, "generated")
            after = [generation.completion_tokens for generation in generations]
            assert [finished(generation) for generation in generations] == texts
            np.testing.assert_array_equal(beside, alone)
            if all(late > early + 50 for early, late in zip(before, after, strict=True)):
                break
        else:
            pytest.fail("the logits and the texts never ran side by side")


@pytest.mark.parametrize("device", ["cpu", *GPUS])
def test_a_text_that_goes_wrong_ends_alone(tmp_path: Path, device: str) -> None:
    """One token's embedding is NaN: texts without it are those of a sound model, beside it too."""
    prompts = [[1, 2, 3], [4, 5, 6, 7]]
    with opened(build("llama-32", tmp_path / "sound.gguf", seed=1).path, device=device) as model:
        sound = [finished(start(model, prompt, 40)) for prompt in prompts]
        vocab_size = model.config.vocab_size
    bad = next(token for token in range(10, vocab_size) if all(token not in text for text in sound))

    def damage(spec: ModelSpec, weights: Weights) -> Weights:
        table = weights["model.embed_tokens.weight"].copy()
        table[bad] = np.nan
        return {**weights, "model.embed_tokens.weight": table}

    path = build("llama-32", tmp_path / "damaged.gguf", seed=1, change=damage).path
    with opened(path, device=device) as model:
        for _ in range(2):  # what the first round leaves in the cache does the second no harm
            texts = [start(model, prompt, 40) for prompt in prompts]
            wrong = start(model, [1, 2, bad, 3], 40)
            with pytest.raises(akunu.DeviceError, match=r"^sample, position 3: .*NaN"):
                finished(wrong)
            assert [finished(text) for text in texts] == sound
            assert np.isnan(model.logits([1, 2, bad])[2]).all()
            assert np.isfinite(model.logits([1, 2, 3])).all()


def test_the_kinds_of_this_file_exist() -> None:
    assert {kind for kind, _ in MODELS} == {*ODD_KINDS, *ALIGNED_KINDS}
