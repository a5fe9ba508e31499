"""A draft model changes how many rows a step has, and never a text: alone, and in company."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import encoder_models as em
import numpy as np
import pytest
from engine import finished
from proposals import AUTO, CHOICES
from random_models import ModelCase, random_tokens

import akunu
from akunu import LoadOptions, SamplingOptions, UnsupportedModelError
from akunu.storage.native_load import begin_load
from lines import each_line

Cases = Callable[..., ModelCase]
# Targets and what drafts for them: the same model in another format, which mostly says the same;
# one with windows, itself; and one that knows nothing of the target.
PAIRS = {
    "alike": (("llama-32", "f32"), ("llama-32", "q8_0")),
    "windows": (("gemma3", "f32"), ("gemma3", "f32")),
    "strange": (("llama-gqa", "f32"), ("qwen3", "f32")),
}


def loaded(model_case: Cases, pair: str, device: str = "cpu", context: int = 512) -> Any:
    target, draft = (model_case(*each) for each in PAIRS[pair])
    return akunu.load(target.path, device=device, context=context, threads=2, draft=draft.path)


def start(model: Any, prompt: list[int], n: int, speculation: int, **more: Any) -> Any:
    stop_ids = more.pop("stop_ids", [])
    logprobs = more.pop("logprobs", None)
    logit_bias = more.pop("logit_bias", {})
    return model._native.start(
        np.array(prompt, np.uint32),
        max_tokens=n,
        stop_ids=stop_ids,
        sampling=SamplingOptions(**more).packed(seed=0),
        logit_bias=logit_bias,
        logprobs=logprobs,
        speculation=speculation,
    )


@each_line("choice", CHOICES)
@each_line("pair", PAIRS)
def test_a_text_is_the_one_without(model_case: Cases, pair: str, choice: str) -> None:
    spec = model_case(*PAIRS[pair][0]).spec
    options = CHOICES[choice]
    n_drafted = n_held = 0
    with loaded(model_case, pair) as model:
        for n_prompt in (3, 60, 250):
            prompt = random_tokens(spec, n_prompt, seed=n_prompt)
            expected = finished(start(model, prompt, 90, 0, **options))
            for speculation in (1, 4, 15, AUTO):
                generation = start(model, prompt, 90, speculation, **options)
                assert finished(generation) == expected
                assert generation.held_tokens <= generation.drafted_tokens
                n_drafted += generation.drafted_tokens
                n_held += generation.held_tokens
    assert n_drafted > 0
    if pair != "strange":
        # The draft has the request's own draws: where the models agree, so do sampled tokens.
        assert n_held > n_drafted / 3


def test_every_device_checks_drafts(model_case: Cases, device: str) -> None:
    prompt = random_tokens(model_case("llama-32").spec, 40, seed=1)
    with loaded(model_case, "alike", device) as model:
        expected = finished(start(model, prompt, 100, 0))
        generation = start(model, prompt, 100, 6)
        assert finished(generation) == expected
        assert generation.held_tokens > 0


def test_in_company_each_is_the_text_alone(model_case: Cases) -> None:
    spec = model_case("llama-32").spec
    prompts = [random_tokens(spec, 30 + 7 * i, seed=i) for i in range(12)]
    options = [{"temperature": 0.4 * (i % 3), "seed": i} for i in range(12)]
    with loaded(model_case, "alike") as model:
        alone = [
            finished(start(model, prompt, 60, 0, **each))
            for prompt, each in zip(prompts, options, strict=True)
        ]
        running = [
            start(model, prompt, 60, (0, 3, 15, AUTO)[i % 4], **each)
            for i, (prompt, each) in enumerate(zip(prompts, options, strict=True))
        ]
        assert [finished(each) for each in running] == alone
        assert sum(each.held_tokens for each in running) > 0


def test_where_pages_are_short_texts_step_back(model_case: Cases) -> None:
    """Both caches hold one full context: texts, and what the draft has of them, begin again."""
    spec = model_case("llama-32").spec
    prompts = [random_tokens(spec, 20 + 9 * i, seed=i) for i in range(10)]
    with loaded(model_case, "alike", context=128) as model:
        alone = [finished(start(model, prompt, 28, 0, temperature=0.5)) for prompt in prompts]
        running = [
            start(model, prompt, 28, (AUTO, 5, 15)[i % 3], temperature=0.5)
            for i, prompt in enumerate(prompts)
        ]
        running[4].cancel()
        for i, (each, expected) in enumerate(zip(running, alone, strict=True)):
            assert i == 4 or finished(each) == expected


def test_what_an_earlier_text_left_is_not_read_again(model_case: Cases) -> None:
    """Prompts that begin alike, and longer ones than the draft model reads at once."""
    spec = model_case("llama-32").spec
    prompt = random_tokens(spec, 300, seed=8)
    with loaded(model_case, "alike") as model:
        for n in (300, 260, 300, 20):
            expected = finished(start(model, prompt[:n], 40, 0))
            generation = start(model, prompt[:n], 40, 5)
            assert finished(generation) == expected
            assert generation.held_tokens > 10


@pytest.mark.parametrize("n", [1, 2, 3, 50])
def test_it_ends_where_it_ends_without(model_case: Cases, n: int) -> None:
    prompt = random_tokens(model_case("llama-32").spec, 50, seed=3)
    with loaded(model_case, "alike") as model:
        text = finished(start(model, prompt, 80, 0))
        assert finished(start(model, prompt, n, 15)) == text[:n]
        place = text.index(text[n])
        generation = start(model, prompt, 80, 15, stop_ids=[text[n]])
        assert finished(generation) == text[:place]
        assert generation.finish_reason == "stop"
        expected = finished(start(model, [*prompt, *text], 20, 0))
        assert finished(start(model, [*prompt, *text], 20, 15)) == expected


def test_it_goes_to_the_end_of_the_context(model_case: Cases) -> None:
    prompt = random_tokens(model_case("llama-32").spec, 60, seed=4)
    with loaded(model_case, "alike", context=128) as model:
        expected = finished(start(model, prompt, 69, 0))
        generation = start(model, prompt, 69, 15)
        assert finished(generation) == expected
        assert len(expected) == 69
        assert generation.held_tokens > 40


def test_logprobs_are_those_without(model_case: Cases) -> None:
    prompt = random_tokens(model_case("llama-32").spec, 50, seed=3)
    with loaded(model_case, "alike") as model:
        plain = start(model, prompt, 60, 0, logprobs=4)
        drafted = start(model, prompt, 60, 15, logprobs=4)
        assert finished(drafted) == finished(plain)
        assert drafted.held_tokens > 0
        for found, expected in zip(drafted.logprobs(0, 60), plain.logprobs(0, 60), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_a_bias_holds_for_the_draft_too(model_case: Cases) -> None:
    """With three tokens allowed the draft would hardly ever be right without it."""
    spec = model_case("llama-32").spec
    prompt = random_tokens(spec, 50, seed=3)
    bias = dict.fromkeys(range(6, spec.vocab_size), -np.inf)
    with loaded(model_case, "alike") as model:
        expected = finished(start(model, prompt, 60, 0, logit_bias=bias))
        generation = start(model, prompt, 60, 4, logit_bias=bias)
        assert finished(generation) == expected
        assert generation.held_tokens > generation.drafted_tokens / 2


def test_the_memory_of_both_is_counted(model_case: Cases) -> None:
    target, draft = (model_case(*each) for each in PAIRS["alike"])
    options = {"context": 128, "threads": 1}
    with akunu.load(target.path, **options) as alone, akunu.load(draft.path, **options) as other:
        expected = {
            label: alone.memory[label] + other.memory[label]
            for label in ("weights (mapped)", "cache", "sequences", "scratch")
        }
    with akunu.load(target.path, draft=draft.path, **options) as both:
        assert {label: both.memory[label] for label in expected} == expected


def test_another_vocabulary_is_refused(model_case: Cases) -> None:
    target = model_case("llama-32")
    with pytest.raises(UnsupportedModelError, match=r"cannot draft for .* token 0 is") as caught:
        akunu.load(target.path, draft="ember")
    assert str(target.path) in str(caught.value)


def test_an_encoder_is_no_draft(model_case: Cases, tmp_path: Path) -> None:
    """The engine's own refusal: with another vocabulary Python's comes first."""
    spec = em.EncoderSpec()
    encoder = em.write_gguf(tmp_path / "bert.gguf", spec, em.random_tensors(spec))
    loading = begin_load(model_case("llama-32").path, LoadOptions(), draft_path=encoder)
    with pytest.raises(UnsupportedModelError, match="the draft model is bert, an encoder"):
        loading.result()


def test_a_draft_that_is_not_there_is_refused(model_case: Cases, tmp_path: Path) -> None:
    with pytest.raises(akunu.ArgumentError, match=r"none\.gguf"):
        akunu.load(model_case("llama-32").path, draft=tmp_path / "none.gguf")
