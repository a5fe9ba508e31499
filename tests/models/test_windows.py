"""Layers that see a window keep its pages only, and nothing of a text changes by that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from engine import (
    BOUND_F16_CACHE,
    BOUND_F32_CACHE,
    chunked,
    finished,
    relative_error,
    settle,
    start,
)
from numpy_forward import NumpyModel, Variant
from random_models import ModelCase, random_tokens

import akunu
from arithmetic import is_one_arithmetic

Cases = Callable[..., ModelCase]

PAGE = 256  # positions
CONTEXT = 8 * PAGE
MODELS = ["gemma3", "gemma2"]  # windows of 37 and 70 positions, beside layers that see everything
N_TOKENS = 1500  # many windows, and six pages


@contextmanager
def opened(
    case: ModelCase, *, context: int = CONTEXT, texts: float | None = None, **options: Any
) -> Iterator[Any]:
    """The model, its cache with as much memory as so many whole texts take (default: enough)."""
    with akunu.load(case.path, context=context, threads=2, **options) as model:
        memory = model.memory["cache"]
    kv_memory = None if texts is None else int(texts * memory)
    with akunu.load(case.path, context=context, threads=2, kv_memory=kv_memory, **options) as model:
        yield model


def cached(model: Any, prompt: list[int]) -> int:
    """How many positions the cache has of a prompt."""
    generation = start(model, prompt, 1)
    finished(generation)
    return int(generation.cached_tokens)


@pytest.mark.parametrize("kv_type", ["f32", "f16"])
def test_a_text_of_many_windows_agrees_with_numpy(model_case: Cases, kv_type: str) -> None:
    case = model_case("gemma3")
    tokens = random_tokens(case.spec, 900, seed=11)
    expected = NumpyModel(case.path).logits(tokens, Variant(f16_cache=kv_type == "f16"))[-40:]
    bound = BOUND_F32_CACHE if kv_type == "f32" else BOUND_F16_CACHE
    with opened(case, kv_type=kv_type) as model:
        assert relative_error(model.logits(tokens, last=40), expected) <= bound


@pytest.mark.parametrize("kind", MODELS)
def test_a_text_of_many_windows_does_not_depend_on_how_it_is_cut(
    model_case: Cases, kind: str
) -> None:
    case = model_case(kind)
    tokens = random_tokens(case.spec, N_TOKENS, seed=12)
    with opened(case, kv_type="f32", device="cpu") as model:
        whole = model.logits(tokens)
        roles = ["prompt", *["generated"] * is_one_arithmetic("f32", kv_type="f32")]
        for role in roles:
            for chunk in (16, 13):
                chunks = [chunk] * (N_TOKENS // chunk) + [N_TOKENS % chunk] * (N_TOKENS % chunk > 0)
                np.testing.assert_array_equal(chunked(model, tokens, chunks, role), whole)


@pytest.mark.parametrize("kind", MODELS)
def test_a_window_takes_as_much_memory_however_long_the_context(
    model_case: Cases, kind: str
) -> None:
    case = model_case(kind)
    layer_page = 2 * case.spec.kv_dim * PAGE * 2  # keys and values, of halves
    memory = {}
    for n_pages in (64, 128):
        with akunu.load(case.path, context=n_pages * PAGE, threads=2, device="cpu") as model:
            memory[n_pages] = model.memory["cache"]
    n_windowed = sum(case.spec.windowed)
    n_full = case.spec.n_layers - n_windowed
    assert memory[128] - memory[64] == 64 * n_full * layer_page
    windows, rest = divmod(memory[128] - 128 * n_full * layer_page, n_windowed * layer_page)
    assert rest == 0
    assert windows <= 12  # of one text at its prompt, and two beside it


@pytest.mark.parametrize("texts", [1.0, 4.0])
@pytest.mark.parametrize("kind", MODELS)
def test_logits_after_a_cached_prefix_are_those_without(
    model_case: Cases, kind: str, texts: float
) -> None:
    case = model_case(kind)
    with (
        opened(case, kv_type="f32", prefix_cache=False) as cold,
        opened(case, kv_type="f32", texts=texts) as warm,
    ):
        shared = random_tokens(case.spec, N_TOKENS, seed=13)
        for n_shared in (N_TOKENS, 1100, 700, 300, 20):
            tokens = shared[:n_shared] + random_tokens(case.spec, 45, seed=n_shared)
            expected = cold.logits(tokens)[-45:]
            np.testing.assert_array_equal(warm.logits(tokens, last=45), expected)
            np.testing.assert_array_equal(warm.logits(tokens, last=1), expected[-1:])


def test_the_beginning_that_many_texts_share_is_computed_twice(model_case: Cases) -> None:
    """Only the second one shows that it is shared; then its window is kept."""
    case = model_case("gemma3")
    shared = random_tokens(case.spec, 600, seed=14)
    with opened(case, texts=4) as model:
        found = [
            cached(model, [*shared, member, *random_tokens(case.spec, 900, seed=member)])
            for member in range(5)
        ]
    assert found[2:] == [600, 600, 600]


def test_turn_after_turn_only_what_is_new_is_computed(model_case: Cases) -> None:
    case = model_case("gemma3")
    with (
        opened(case, kv_type="f32", prefix_cache=False) as cold,
        opened(case, kv_type="f32") as warm,
    ):
        prompt = random_tokens(case.spec, 400, seed=15)
        for turn in range(5):
            text = finished(start(warm, prompt, 100, temperature=1.2, seed=turn))
            assert text == finished(start(cold, prompt, 100, temperature=1.2, seed=turn))
            settle(warm)
            # A template may write the last reply anew, other than it was generated.
            text = [*text[: -10 * turn], turn] if turn % 2 else text
            prompt += [*text, *random_tokens(case.spec, 33, seed=turn)]
            assert cached(warm, prompt) >= len(prompt) - 34


@pytest.mark.parametrize("texts", [1.0, 1.4])
@pytest.mark.parametrize("prefix_cache", [True, False], ids=["prefixes", "no prefixes"])
def test_whatever_runs_side_by_side_each_text_is_the_one_alone(
    model_case: Cases, texts: float, prefix_cache: bool
) -> None:
    """More than the cache has room for: texts step back and go on."""
    case = model_case("gemma3")
    shared = random_tokens(case.spec, 500, seed=16)
    requests: list[tuple[list[int], int, dict[str, Any]]] = [
        (
            [*shared[: 100 * member], member, *random_tokens(case.spec, 150, seed=member)],
            2**32 - 1 if member == 4 else 90 * member + 20,
            {"temperature": 1.5, "seed": member},
        )
        for member in range(6)
    ]
    context = 4 * PAGE
    with opened(case, context=context, prefix_cache=False) as alone:
        expected = [finished(start(alone, *request[:2], **request[2])) for request in requests]
    with opened(case, context=context, texts=texts, prefix_cache=prefix_cache) as model:
        generations = [start(model, *request[:2], **request[2]) for request in requests]
        generations.append(start(model, *requests[3][:2], **requests[3][2]))
        generations[-1].next(timeout_ms=5)
        generations[-1].cancel()
        for generation, text in zip(generations, expected, strict=False):
            assert finished(generation) == text
