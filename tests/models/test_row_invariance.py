"""A row's logits depend, bit for bit, on its own history only."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from engine import (
    GPU_PATHS,
    GPUS,
    PATHS,
    chunked,
    finished,
    nightly_but,
    opened,
    random_chunks,
    start,
)
from golden_values import N_TOKENS
from random_models import ModelCase, random_tokens

from arithmetic import is_one_arithmetic
from lines import each_line

Cases = Callable[..., ModelCase]

MODELS = [
    ("llama-gqa", "f32"),
    ("llama-factors", "f32"),
    ("llama-linear", "f16"),
    ("qwen2", "f32"),
    ("qwen3", "f16"),
    ("llama-32", "q8_0"),
    ("llama-32", "q4_0"),
    ("qwen2-32", "q4_0"),
    ("qwen3-32", "q8_0"),
    ("gemma3", "f32"),
    ("gemma2-32", "q8_0"),
    ("gemma3-256", "q4_k"),
]


IN_BLOCKS = [
    ("llama-32", "q8_0", "q8_0"),
    ("qwen3-256", "q4_k", "q8_0"),
    ("gemma2-32", "q8_0", "q8_0"),
    ("gemma3-256", "q4_k", "q8_0"),
    ("llama-32", "q4_0", "q4_0"),
    ("gemma3-256", "q4_k", "q4_0"),
]


@each_line(
    ("kind", "weight_format", "kv_type"),
    nightly_but(
        [(*model, kv_type) for model in MODELS for kv_type in ("f32", "f16")],
        [(*model, ("f32", "f16")[i % 2]) for i, model in enumerate(MODELS)],
    )
    + IN_BLOCKS,
)
def test_logits_do_not_depend_on_how_the_tokens_are_cut(
    model_case: Cases, cpu: str, kind: str, weight_format: str, kv_type: str
) -> None:
    case = model_case(kind, weight_format)
    tokens = random_tokens(case.spec, N_TOKENS, seed=5)
    with opened(case.path, kv_type=kv_type) as model:
        prompt = model.logits(tokens)
        one = is_one_arithmetic(weight_format, kv_type=kv_type)
        generated = prompt if one else chunked(model, tokens, *PATHS["few-16"])
        for chunks, roles in PATHS.values():
            whole = {"prompt": prompt, "generated": generated}[roles]
            np.testing.assert_array_equal(chunked(model, tokens, chunks, roles), whole)


@each_line("kv_type", ["f32", "f16"])
@each_line(("kind", "weight_format"), MODELS)
def test_on_a_matrix_unit_each_role_has_its_bits(
    model_case: Cases, matrix_unit: None, kind: str, weight_format: str, kv_type: str
) -> None:
    case = model_case(kind, weight_format)
    tokens = random_tokens(case.spec, N_TOKENS, seed=5)
    with opened(case.path, kv_type=kv_type, threads=2) as model:
        whole = {
            "prompt": model.logits(tokens),
            "generated": chunked(model, tokens, *PATHS["few-16"]),
        }
        for chunks, roles in PATHS.values():
            np.testing.assert_array_equal(chunked(model, tokens, chunks, roles), whole[roles])


GPU_MODELS = [("llama-gqa", "f32"), ("qwen2-32", "q4_0"), ("qwen3-256", "q4_k_m")]
# Ways for tokens to reach the cache, and another way with the same rows.
ROLES = {
    "prefill-chunks": "prefill",
    "mixed-prompt": "prefill",
    "few": "few-16",
    "mixed-generated": "few-16",
}


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize(
    ("kind", "weight_format", "path"),
    nightly_but(
        [(*model, path) for model in GPU_MODELS for path in ROLES],
        [("qwen2-32", "q4_0", "prefill-chunks")],  # of generated rows: test_gpu_generation.py
    ),
)
def test_on_a_gpu_each_role_has_its_bits(
    model_case: Cases, gpu: str, kind: str, weight_format: str, path: str
) -> None:
    """Prompt rows and others are two arithmetics there, each its own whatever the cut."""
    case = model_case(kind, weight_format)
    tokens = random_tokens(case.spec, N_TOKENS, seed=5)
    with opened(case.path, device=gpu, kv_type="f16") as model:
        whole = chunked(model, tokens, *PATHS[ROLES[path]])
        np.testing.assert_array_equal(chunked(model, tokens, *GPU_PATHS[path]), whole)


@pytest.mark.parametrize("gpu", GPUS)
def test_a_text_has_its_bits_in_a_crowd(model_case: Cases, gpu: str) -> None:
    """Beside as many texts as fill passes, tiles and launches of every size that a GPU has."""
    n_texts, n_tokens = (150, 12) if gpu == "cuda" else (20, 3)
    case = model_case("qwen3-256", "q4_k_m")
    prompts = [random_tokens(case.spec, 3 + i % 40, seed=i) for i in range(n_texts)]

    with opened(case.path, device=gpu, kv_type="f16", kv_memory=64 << 20) as model:

        def texts(which: range) -> list[tuple[list[int], bytes]]:
            under_way = [start(model, prompts[i], n_tokens, logprobs=0) for i in which]
            tokens = [finished(each) for each in under_way]
            return [
                (text, each.logprobs(0, len(text))[0].tobytes())
                for text, each in zip(tokens, under_way, strict=True)
            ]

        together = texts(range(n_texts))
        for i in range(0, n_texts, 7):
            assert texts(range(i, i + 1)) == together[i : i + 1]


@each_line("threads", [2, 3])
@each_line(("kind", "weight_format"), MODELS)
def test_logits_do_not_depend_on_the_number_of_threads(
    model_case: Cases, kind: str, weight_format: str, threads: int
) -> None:
    case = model_case(kind, weight_format)
    tokens = random_tokens(case.spec, N_TOKENS, seed=5)
    few = random_chunks(N_TOKENS, 16, seed=3)
    with opened(case.path, threads=1) as model:
        prompt = model.logits(tokens)
        generated = chunked(model, tokens, few, "generated")
    with opened(case.path, threads=threads) as model:
        np.testing.assert_array_equal(model.logits(tokens), prompt)
        np.testing.assert_array_equal(chunked(model, tokens, few, "generated"), generated)


@each_line(("kind", "weight_format"), MODELS)
def test_later_tokens_change_nothing_before_them(
    model_case: Cases, kind: str, weight_format: str
) -> None:
    case = model_case(kind, weight_format)
    tokens = random_tokens(case.spec, N_TOKENS, seed=5)
    others = tokens[:260] + random_tokens(case.spec, N_TOKENS - 260, seed=6)
    with opened(case.path) as model:
        first, second = model.logits(tokens), model.logits(others)
    np.testing.assert_array_equal(first[:260], second[:260])
    assert not np.array_equal(first[260:], second[260:])
