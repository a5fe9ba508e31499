"""Drafts change how many rows a step has, and never a text: alone, and in company."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from engine import finished
from proposals import AUTO, CHOICES
from random_models import ModelCase, random_tokens

import akunu
from akunu import ArgumentError, SamplingOptions
from lines import each_line

Cases = Callable[..., ModelCase]
# Tokens that a text may have, besides the first three: so few that it often says what it has said.
N_WORDS = 3
KINDS = [("llama-gqa", "f32"), ("qwen3", "f32"), ("llama-32", "q8_0"), ("gemma3", "f32")]


@contextmanager
def opened(case: ModelCase, device: str = "cpu") -> Iterator[Any]:
    with akunu.load(case.path, device=device, context=1024, threads=2) as model:
        yield model


def start(model: Any, prompt: list[int], n: int, speculation: int, **more: Any) -> Any:
    stop_ids = more.pop("stop_ids", [])
    logprobs = more.pop("logprobs", None)
    n_words = more.pop("n_words", N_WORDS)
    return model._native.start(
        np.array(prompt, np.uint32),
        max_tokens=n,
        stop_ids=stop_ids,
        sampling=SamplingOptions(**more).packed(seed=0),
        logit_bias=dict.fromkeys(range(3 + n_words, model.config.vocab_size), -np.inf),
        logprobs=logprobs,
        speculation=speculation,
    )


def repeating(case: ModelCase, n: int, seed: int) -> list[int]:
    """A prompt that says the same again and again, so that there is something to draft."""
    phrase = random_tokens(case.spec, 17, seed=seed)
    return (phrase * (n // len(phrase) + 1))[:n]


@each_line("choice", CHOICES)
@each_line(("kind", "weight_format"), KINDS)
def test_a_text_is_the_one_without_drafts(
    model_case: Cases, kind: str, weight_format: str, choice: str
) -> None:
    case = model_case(kind, weight_format)
    options = CHOICES[choice]
    n_drafted = n_held = 0
    with opened(case) as model:
        for n_prompt in (60, 250):
            prompt = repeating(case, n_prompt, seed=n_prompt)
            expected = finished(start(model, prompt, 90, 0, **options))
            for speculation in (1, 4, 15, AUTO):
                generation = start(model, prompt, 90, speculation, **options)
                assert finished(generation) == expected
                assert generation.held_tokens <= generation.drafted_tokens
                n_drafted += generation.drafted_tokens
                n_held += generation.held_tokens
    assert 0 < n_held <= n_drafted
    assert choice != "hot" or n_held < n_drafted


def test_every_device_checks_drafts(model_case: Cases, device: str) -> None:
    case = model_case("llama-32", "q8_0")
    prompt = repeating(case, 40, seed=1)
    with opened(case, device) as model:
        # A GPU chooses tens of tokens before the host sees one.
        expected = finished(start(model, prompt, 150, 0))
        generation = start(model, prompt, 150, 6)
        assert finished(generation) == expected
        assert generation.drafted_tokens > 0


def test_in_company_each_is_the_text_alone(model_case: Cases) -> None:
    case = model_case("llama-gqa")
    prompts = [repeating(case, 30 + 7 * i, seed=i) for i in range(12)]
    options = [{"temperature": 0.4 * (i % 3), "seed": i} for i in range(12)]
    with opened(case) as model:
        alone = [
            finished(start(model, prompt, 60, 0, **each))
            for prompt, each in zip(prompts, options, strict=True)
        ]
        running = [
            start(model, prompt, 60, (0, 3, 15, AUTO)[i % 4], **each)
            for i, (prompt, each) in enumerate(zip(prompts, options, strict=True))
        ]
        assert [finished(each) for each in running] == alone
        assert sum(each.drafted_tokens for each in running) > 0


@pytest.mark.parametrize("n", [1, 2, 3, 50])
def test_it_ends_where_it_ends_without(model_case: Cases, n: int) -> None:
    """Behind the last token, and at a stop token, what was drafted beyond is not there."""
    case = model_case("llama")
    prompt = repeating(case, 50, seed=3)
    with opened(case) as model:
        text = finished(start(model, prompt, 80, 0))
        assert finished(start(model, prompt, n, 15)) == text[:n]
        place = text.index(text[n])
        generation = start(model, prompt, 80, 15, stop_ids=[text[n]])
        assert finished(generation) == text[:place]
        assert generation.finish_reason == "stop"
        again = start(model, [*prompt, *text], 20, 0)
        expected = finished(again)
        assert finished(start(model, [*prompt, *text], 20, 15)) == expected


def test_logprobs_are_those_without(model_case: Cases) -> None:
    case = model_case("qwen3")
    prompt = repeating(case, 50, seed=3)
    with opened(case) as model:
        plain = start(model, prompt, 60, 0, logprobs=4)
        drafted = start(model, prompt, 60, 15, logprobs=4)
        assert finished(drafted) == finished(plain)
        assert drafted.drafted_tokens > 0
        for found, expected in zip(drafted.logprobs(0, 60), plain.logprobs(0, 60), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_of_a_text_of_one_word_all_drafts_hold(model_case: Cases) -> None:
    """Its first tokens have nothing to be drafted from, and the last draft is cut."""
    case = model_case("llama")
    with opened(case) as model:
        prompt = random_tokens(case.spec, 8, seed=1)
        banned = {"n_words": 0, "temperature": 0.0}
        for speculation, least in ((1, 190), (15, 360), (AUTO, 0)):
            generation = start(model, prompt, 400, speculation, **banned)
            text = finished(generation)
            assert text == finished(start(model, prompt, 400, 0, **banned))
            assert generation.held_tokens >= least


def test_too_many_are_refused(model_case: Cases) -> None:
    with (
        opened(model_case("llama")) as model,
        pytest.raises(ArgumentError, match="speculation is 16; at most 15 tokens"),
    ):
        start(model, [1, 2], 5, 16)
