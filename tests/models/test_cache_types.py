"""Caches in blocks: near the text of F16, the same text however it is computed, refused by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dense_golden
import numpy as np
import pytest
from engine import (
    GPU_PATHS,
    GPUS,
    PATHS,
    chunked,
    finished,
    opened,
    relative_error,
    settle,
)
from golden_values import N_TOKENS
from random_models import ModelCase, random_tokens
from test_speculation import repeating, start

import akunu

Cases = Callable[..., ModelCase]

BLOCKS = ["q8_0", "q4_0"]
# Of the largest logit, beside a cache in F32: half a code of 127 or of 8, through some layers.
FAR = {"q8_0": 3e-2, "q4_0": 0.3}


@pytest.mark.parametrize("kv_type", BLOCKS)
@pytest.mark.parametrize(
    ("kind", "weight_format"), [("llama-32", "f32"), ("qwen3-256", "f16"), ("gemma3-256", "q4_k")]
)
def test_logits_are_near_those_of_f32(
    model_case: Cases, kind: str, weight_format: str, kv_type: str
) -> None:
    case = model_case(kind, weight_format)
    tokens = random_tokens(case.spec, 300, seed=1)
    with opened(case.path) as model:
        expected = model.logits(tokens)
    with opened(case.path, kv_type=kv_type) as model:
        error = relative_error(model.logits(tokens), expected)
    assert 1e-5 < error < FAR[kv_type]


@pytest.mark.parametrize("kv_type", BLOCKS)
def test_texts_are_the_same_in_company_and_with_drafts(model_case: Cases, kv_type: str) -> None:
    case = model_case("llama-32", "q8_0")
    prompts = [repeating(case, n, seed=n) for n in (60, 250, 300)]
    with akunu.load(case.path, context=512, threads=2, kv_type=kv_type) as model:
        alone = [finished(start(model, prompt, 60, 0)) for prompt in prompts]
    with akunu.load(case.path, context=512, threads=2, kv_type=kv_type) as model:
        running = [start(model, prompt, 60, 4) for prompt in prompts]
        assert [finished(each) for each in running] == alone
        assert sum(each.drafted_tokens for each in running) > 0


@pytest.mark.parametrize("kv_type", BLOCKS)
def test_a_window_is_rewound_and_shared(model_case: Cases, kv_type: str) -> None:
    case = model_case("gemma3-256", "q4_k")
    tokens = random_tokens(case.spec, 400, seed=3)
    with (
        akunu.load(case.path, context=512, kv_type=kv_type, prefix_cache=False) as cold,
        akunu.load(case.path, context=512, kv_type=kv_type) as warm,
    ):
        warm.logits(tokens, last=1)
        for n in (270, 390):
            np.testing.assert_array_equal(
                warm.logits(tokens[:n], last=5), cold.logits(tokens[:n], last=5)
            )


@pytest.mark.parametrize("kv_type", BLOCKS)
def test_heads_of_parts_of_blocks_are_refused(model_case: Cases, kv_type: str) -> None:
    message = rf"kv_type is {kv_type}; heads of layer 0 have 26 numbers.*multiple of 32.*f16 or f32"
    with pytest.raises(akunu.ArgumentError, match=message):
        akunu.load(model_case("llama").path, kv_type=kv_type)


@pytest.mark.parametrize("kv_type", BLOCKS)
def test_latents_are_refused(tmp_path: Path, kv_type: str) -> None:
    folder = dense_golden.write(tmp_path / "model", dense_golden.load("deepseek2"))
    with pytest.raises(akunu.ArgumentError, match=rf"kv_type is {kv_type}; layer 0 keeps latents"):
        akunu.load(folder, kv_type=kv_type)


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("kv_type", BLOCKS)
def test_a_gpu_is_near_f32_and_each_role_has_its_bits(
    model_case: Cases, gpu: str, kv_type: str
) -> None:
    case = model_case("llama-32", "q8_0")
    tokens = random_tokens(case.spec, N_TOKENS, seed=1)
    with opened(case.path) as model:
        expected = model.logits(tokens)
    with opened(case.path, device=gpu, kv_type=kv_type) as model:
        for path, role in (("mixed-prompt", "prefill"), ("mixed-generated", "few-16")):
            whole = chunked(model, tokens, *PATHS[role])
            assert 1e-5 < relative_error(whole, expected) < FAR[kv_type]
            np.testing.assert_array_equal(chunked(model, tokens, *GPU_PATHS[path]), whole)


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("kv_type", BLOCKS)
def test_on_a_gpu_positions_are_saved_and_restored(
    model_case: Cases, gpu: str, kv_type: str
) -> None:
    case = model_case("llama-32", "q8_0")
    tokens = random_tokens(case.spec, 300, seed=4)
    with opened(case.path, device=gpu, kv_type=kv_type) as model:
        text = finished(start(model, tokens, 20, 0))
        settle(model)
        entries, saved = model._native.save_positions(np.array(tokens, np.uint32))
    with opened(case.path, device=gpu, kv_type=kv_type) as model:
        model._native.restore_positions(np.array(tokens, np.uint32), entries, saved)
        again = start(model, tokens, 20, 0)
        assert finished(again) == text
        assert again.cached_tokens == 299


@pytest.mark.nightly_emulated("llama-32", "q8_0")
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("kv_type", BLOCKS)
@pytest.mark.parametrize("kind", ["llama-32", "gemma3-256"])
def test_what_a_gpu_finds_on_the_disk_has_the_bits_that_are_computed(
    model_case: Cases, tmp_path: Path, gpu: str, kv_type: str, kind: str
) -> None:
    """Models with a folder, one after the other: pages of blocks, and those that a window sees."""
    case = model_case(kind, "q8_0" if kind == "llama-32" else "q4_k")
    tokens = random_tokens(case.spec, 300, seed=4)
    other = [*tokens[:290], 5, 6]

    def loaded(cache_dir: Path | None) -> akunu.Model:
        return akunu.load(
            case.path, device=gpu, context=512, threads=2, kv_type=kv_type, cache_dir=cache_dir
        )

    def positions(model: Any) -> list[Any]:
        return list(model._native.save_positions(np.array(tokens, np.uint32)))

    with loaded(None) as model:
        expected = {
            n: finished(start(model, text, 12, 0)) for n, text in ((299, tokens), (290, other))
        }
        logits = model.logits(tokens, last=3)
        entries, saved = positions(model)
    with loaded(tmp_path) as model:
        finished(start(model, tokens, 1, 0))
    for text, n in ((tokens, 299), (other, 290)):
        with loaded(tmp_path) as model:
            found = start(model, text, 12, 0)
            assert finished(found) == expected[n]
            assert found.cached_tokens == n
    with loaded(tmp_path) as model:
        again, restored = positions(model)
        disk = model.occupancy.disk
        assert disk is not None
        assert disk.restored >= 290
        assert again == entries
        np.testing.assert_array_equal(restored, saved)
        np.testing.assert_array_equal(model.logits(tokens, last=3), logits)
