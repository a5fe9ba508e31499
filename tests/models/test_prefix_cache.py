"""A prompt that begins like an earlier text takes it over from the cache, and nothing changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from engine import bytes_of, finished, settle, start
from random_models import ModelCase, random_tokens

import akunu
from lines import each_line

Cases = Callable[..., ModelCase]

MODELS = [
    ("llama-gqa", "f32"),
    ("llama-factors", "f32"),
    ("qwen2", "f16"),
    ("qwen3", "f32"),
    ("llama-32", "q8_0"),
    ("qwen2-32", "q4_0"),
]
PAGE = 256  # positions
EDGES = [1, 255, 256, 257, 300, 511]


@contextmanager
def opened(
    case: ModelCase,
    *,
    device: str = "cpu",
    kv_type: str = "f16",
    prefix_cache: bool = True,
    pages: int | None = None,
) -> Iterator[Any]:
    """The model with a context of three pages, and a pool of so many (default: the context's)."""
    page_bytes = case.spec.n_layers * bytes_of(kv_type, case.spec.kv_dim * PAGE)
    with akunu.load(
        case.path,
        device=device,
        context=3 * PAGE,
        threads=2,
        kv_type=kv_type,
        kv_memory=None if pages is None else pages * page_bytes,
        prefix_cache=prefix_cache,
    ) as model:
        yield model


def family(case: ModelCase, n_shared: int, n: int, *, member: int) -> list[int]:
    """`n` tokens, of which all members share the first; the next one differs for certain."""
    shared = random_tokens(case.spec, n_shared, seed=1)
    return [*shared, member, *random_tokens(case.spec, n - n_shared - 1, seed=100 + member)]


def cached(model: Any, prompt: Sequence[int]) -> int:
    """How many positions the cache has of a prompt."""
    generation = start(model, prompt, 1)
    finished(generation)
    return int(generation.cached_tokens)


@each_line(
    ("kind", "weight_format", "kv_type"),
    [
        *((*model, kv_type) for model in MODELS for kv_type in ("f32", "f16")),
        ("llama-32", "q8_0", "q8_0"),
    ],
)
def test_logits_after_a_cached_prefix_are_those_without(
    model_case: Cases, kind: str, weight_format: str, kv_type: str
) -> None:
    case = model_case(kind, weight_format)
    with (
        opened(case, kv_type=kv_type, prefix_cache=False) as cold,
        opened(case, kv_type=kv_type, pages=12) as warm,
    ):
        for n_shared in EDGES:
            finished(start(warm, family(case, n_shared, n_shared + 30, member=1), 20))
            tokens = family(case, n_shared, n_shared + 45, member=2)
            expected = cold.logits(tokens)
            # The rows from the first that differs on; then again, all but the last from the cache.
            np.testing.assert_array_equal(warm.logits(tokens, last=45), expected[-45:])
            np.testing.assert_array_equal(warm.logits(tokens, last=1), expected[-1:])
            np.testing.assert_array_equal(cold.logits(tokens, last=7), expected[-7:])
            assert cached(warm, tokens) == len(tokens) - 1
            assert cached(cold, tokens) == 0


@pytest.mark.parametrize("n_shared", EDGES)
def test_the_longest_common_prefix_is_found(model_case: Cases, n_shared: int) -> None:
    case = model_case("llama")
    with opened(case, pages=9) as model:
        first = family(case, n_shared, n_shared + 20, member=1)
        text = finished(start(model, first, 10))
        assert cached(model, family(case, n_shared, n_shared + 30, member=2)) == n_shared
        assert cached(model, first) == len(first) - 1  # one is always run
        settle(model)
        assert cached(model, [*first, *text, 5]) == len(first) + len(text)


@pytest.mark.nightly_emulated("True")
@pytest.mark.parametrize("is_read", [True, False], ids=["read", "unread"])
def test_turn_after_turn_a_text_is_the_one_of_a_cold_cache(
    model_case: Cases, device: str, is_read: bool
) -> None:
    """What was generated is part of the next prompt, in whichever arithmetic it was generated."""
    case = model_case("llama-32", "q8_0")
    with (
        opened(case, device=device, prefix_cache=False) as cold,
        opened(case, device=device) as warm,
    ):
        prompt = random_tokens(case.spec, 200, seed=3)
        for turn in range(3):
            text = finished(start(warm, prompt, 20, temperature=1.2, seed=turn))
            assert text == finished(start(cold, prompt, 20, temperature=1.2, seed=turn))
            prompt += text
            if is_read:
                settle(warm)
            np.testing.assert_array_equal(warm.logits(prompt, last=1), cold.logits(prompt, last=1))
            prompt += random_tokens(case.spec, 13, seed=turn)
            assert cached(warm, prompt) == len(prompt) - 13


def test_a_text_gives_way_when_its_pages_are_needed(model_case: Cases) -> None:
    case = model_case("llama")
    with opened(case) as model:
        old = random_tokens(case.spec, 500, seed=1)
        before = finished(start(model, old, 20))
        assert cached(model, old) == 499
        finished(start(model, random_tokens(case.spec, 3 * PAGE - 9, seed=2), 9))  # all pages
        assert cached(model, old) <= 2  # random tokens, alike by chance
        assert finished(start(model, old, 20)) == before


def test_without_a_prefix_cache_nothing_is_found(model_case: Cases) -> None:
    case = model_case("llama")
    with opened(case, prefix_cache=False) as model:
        prompt = random_tokens(case.spec, 300, seed=1)
        assert [cached(model, prompt) for _ in range(3)] == [0, 0, 0]


def test_a_cancelled_prompt_leaves_what_it_had_run(model_case: Cases) -> None:
    case = model_case("llama")
    prompt = random_tokens(case.spec, 3 * PAGE - 1, seed=4)
    with opened(case, prefix_cache=False) as cold:
        expected = finished(start(cold, prompt, 2))
    with opened(case) as model:
        for _ in range(20):
            generation = start(model, prompt, 2)
            while generation.prompt_tokens_done == 0 and generation.finish_reason == "":
                generation.next(timeout_ms=0)
            generation.cancel()
            finished(generation)
            again = start(model, prompt, 2)
            assert finished(again) == expected
            assert again.cached_tokens >= min(generation.prompt_tokens_done, len(prompt) - 1)


@pytest.mark.parametrize("pages", [3, 4, 7], ids=lambda n: f"{n} pages")
@pytest.mark.parametrize("prefix_cache", [True, False], ids=["prefixes", "no prefixes"])
def test_whatever_runs_side_by_side_each_text_is_the_one_alone(
    model_case: Cases, pages: int, prefix_cache: bool
) -> None:
    """Open-ended and short requests of one family, more than the pool has room for."""
    case = model_case("qwen3", "f16")
    random = np.random.RandomState(pages)
    requests: list[tuple[list[int], int, dict[str, Any]]] = []
    for member in range(7):
        n_shared = EDGES[member % len(EDGES)]
        n = n_shared + 1 + int(random.randint(1, 100))
        limit = 2**32 - 1 if member == 4 else int(random.randint(1, 120))
        settings = {"temperature": 1.5, "seed": member, "frequency_penalty": 0.2}
        requests.append((family(case, n_shared, n, member=member), limit, settings))
    with opened(case, prefix_cache=False) as alone:
        expected = [finished(start(alone, *request[:2], **request[2])) for request in requests]
    with opened(case, pages=pages, prefix_cache=prefix_cache) as model:
        order = random.permutation(len(requests))
        generations = {i: start(model, *requests[i][:2], **requests[i][2]) for i in order}
        given_up = [start(model, *requests[i][:2], **requests[i][2]) for i in order[:4]]
        for generation in given_up:
            generation.next(timeout_ms=int(random.randint(0, 20)))
            generation.cancel()
        for i in order:
            assert finished(generations[i]) == expected[i]
            assert generations[i].finish_reason == "length"


def test_open_ended_texts_run_side_by_side_in_the_default_pool(model_case: Cases) -> None:
    """Three pages, three texts that would each fill them."""
    case = model_case("llama")
    prompts = [random_tokens(case.spec, 10, seed=seed) for seed in range(3)]
    with opened(case) as model:
        generations = [start(model, prompt, 2**32 - 1) for prompt in prompts]
        while generations[0].finish_reason == "" and generations[0].completion_tokens < 200:
            generations[0].next(timeout_ms=10)
        assert all(generation.completion_tokens > 0 for generation in generations)
        for generation in generations:
            finished(generation)
            assert generation.completion_tokens == 3 * PAGE + 1 - 10
