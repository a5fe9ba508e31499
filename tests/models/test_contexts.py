"""A second context of a model generates what a model loaded alone does, for a cache more."""

from __future__ import annotations

import gc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from random_models import ModelCase, random_tokens

import akunu
from akunu.errors import AkunuError, ArgumentError, MisuseError, OutOfMemoryError
from lines import each_line

Cases = Callable[..., ModelCase]
WEIGHTS = ("weights", "weights (converted)", "weights (mapped)")
# Shorter than the first context of 512 positions in f16.
SECOND = {"context": 300, "kv_type": "f32", "prefix_cache": False}
# Attention; windows; layers with states; experts.
FAMILIES = ("llama-32", "gemma3", "qwen3")


def computed(model: Any, tokens: list[int]) -> tuple[list[int], Any]:
    """What a model generates after a prompt, and the logits of the prompt."""
    text = model.generate(tokens, max_tokens=60, temperature=1.5, seed=7)
    return text.token_ids, model.logits(tokens)


@each_line("family", FAMILIES)
def test_it_computes_what_a_model_loaded_alone_does(model_case: Cases, family: str) -> None:
    case = model_case(family, "f32")
    tokens = random_tokens(case.spec, 70, seed=3)
    options: dict[str, Any] = {"device": "cpu", "threads": 2}
    with akunu.load(case.path, context=512, **options) as model:
        alone = computed(model, tokens)
    with akunu.load(case.path, **SECOND, **options) as model:
        second_alone = computed(model, tokens)
    assert not np.array_equal(alone[1], second_alone[1]), "the two caches round alike"
    with (
        akunu.load(case.path, context=512, **options) as model,
        model.new_context(**SECOND) as second,
        ThreadPoolExecutor(2) as threads,
    ):
        assert (second.context, second.config, second.path) == (300, model.config, model.path)
        found = list(threads.map(computed, (model, second), (tokens, tokens)))
    for (ids, logits), (expected_ids, expected) in zip(found, (alone, second_alone), strict=True):
        assert ids == expected_ids
        assert np.array_equal(logits, expected)


def test_it_takes_its_cache_and_little_more(model_case: Cases) -> None:
    path = model_case("llama-32", "f32").path
    with akunu.load(path, context=300, kv_type="f32", device="cpu", threads=2) as alone:
        expected = dict(alone.memory)
    with akunu.load(path, context=512, device="cpu", threads=2) as model:
        before = dict(model.memory)
        with model.new_context(**SECOND) as second:
            found = dict(second.memory)
            assert dict(model.memory) == before
        assert dict(model.memory) == before
    assert any(expected.get(label) for label in WEIGHTS)
    assert not any(found.get(label) for label in WEIGHTS)
    for label in ("cache", "scratch"):
        assert found[label] == expected[label] > 0
    weights = sum(expected.get(label, 0) for label in WEIGHTS)
    assert found["total"] <= 1.05 * (expected["total"] - weights)


@each_line("first_goes", (True, False))
def test_they_are_closed_in_any_order(model_case: Cases, first_goes: bool) -> None:
    case = model_case("llama-32", "f32")
    tokens = random_tokens(case.spec, 40, seed=5)
    model = akunu.load(case.path, context=512, device="cpu", threads=2)
    second = model.new_context(context=512)
    goes, stays = (model, second) if first_goes else (second, model)
    expected = computed(stays, tokens)
    with stays.generate(tokens, max_tokens=200, stream=True) as stream:
        next(iter(stream))
        goes.close()
        with pytest.raises(AkunuError, match="closed"):
            goes.generate(tokens)
        list(stream)
    ids, logits = computed(stays, tokens)
    assert ids == expected[0]
    assert np.array_equal(logits, expected[1])
    with stays.new_context(context=256) as third:  # of one that stays, whichever it is
        assert third.generate(tokens, max_tokens=3).token_ids
    stays.close()


def mapped(path: Any) -> bool:
    """Whether this process maps a file."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return any(line.rstrip().endswith(str(path)) for line in maps)


def test_the_last_one_frees_the_weights(model_case: Cases) -> None:
    path = model_case("qwen3", "f32").path
    model = akunu.load(path, context=512, device="cpu", threads=2)
    second = model.new_context(context=256)
    gc.collect()
    model.close()
    assert mapped(path)
    second.close()
    gc.collect()
    assert not mapped(path)


def test_adapters_and_sessions_are_its_own() -> None:
    with akunu.load("ember", context=512) as model, model.new_context(context=256) as second:
        assert second.adapters == model.adapters == ()
        assert second.sampling_defaults == model.sampling_defaults
        session = second.session()
        session.append([{"role": "user", "content": "Hello!"}])
        assert session.generate(max_tokens=4).text
        assert model.occupancy.cache[0].cached == 0


def test_a_model_that_drafts_for_itself_has_its_weights_once(model_case: Cases) -> None:
    case = model_case("llama-32", "f32")
    tokens = random_tokens(case.spec, 40, seed=5)
    options: dict[str, Any] = {"context": 512, "device": "cpu", "threads": 2}
    with akunu.load(case.path, **options) as model:
        alone, memory = model.generate(tokens, max_tokens=60), dict(model.memory)
    with akunu.load(case.path, draft=case.path, **options) as model:
        drafted = model.generate(tokens, max_tokens=60, speculation=4)
        for label in WEIGHTS:
            assert model.memory.get(label) == memory.get(label)
    assert drafted.token_ids == alone.token_ids
    assert drafted.accepted_tokens > 0


def test_what_makes_no_sense_is_refused() -> None:
    with akunu.load("ember", context=512) as model:
        with pytest.raises(ArgumentError, match="context is 0"):
            model.new_context(context=0)
        with pytest.raises(ArgumentError, match="kv_type"):
            model.new_context(kv_type="q9")
        with pytest.raises(OutOfMemoryError, match="cache"):
            model.new_context(kv_memory=1)
        with pytest.raises(MisuseError, match="'device': that is decided when the model is loaded"):
            model.new_context(device="cpu")  # type: ignore[call-arg]
        with pytest.raises(MisuseError, match="did you mean 'context'"):
            model.new_context(n_ctx=512)  # type: ignore[call-arg]
        assert model.generate("Once", max_tokens=2).token_ids
    with pytest.raises(AkunuError, match="closed"):
        model.new_context(context=256)
