"""A model that several devices compute together: CPUs of this process, and two GPUs where they are.

What NumPy computes of the whole model is what its shares must add up to.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from engine import (
    BOUND_F16_CACHE,
    BOUND_F32_CACHE,
    HERE,
    MUTATION_FACTOR,
    PATHS,
    chunked,
    finished,
    relative_error,
    start,
)
from golden_values import N_TOKENS
from numpy_forward import NumpyModel
from random_models import build, random_tokens

import akunu
from akunu import _core
from lines import each_line

SEED = 5


def gpus_here() -> int:
    """How many GPUs of one kind there are."""
    return max((d.get("gpus", 1) for d in _core.devices() if d["backend"] == "cuda"), default=0)


PLACES = [
    "cpu",
    pytest.param(
        "cuda",
        marks=pytest.mark.skipif(
            "cuda" not in HERE or gpus_here() < 2, reason="there are no two NVIDIA GPUs here"
        ),
    ),
]

# Heads and columns that two devices can share; a kind's own where nothing is said.
SHAPES: dict[str, dict[str, Any]] = {
    "llama-gqa": {"ffn_dim": 210},
    "llama-factors": {"ffn_dim": 172},
    "llama-linear": {"n_heads": 4, "n_kv_heads": 2, "dim": 96, "ffn_dim": 134},
    "qwen2": {"ffn_dim": 212},
    "qwen3": {"ffn_dim": 148},
    "gemma2": {"ffn_dim": 148},
}


@contextmanager
def together(
    path: Path, gpus: int, *, device: str = "cpu", kv_type: str = "f32", **options: Any
) -> Iterator[Any]:
    """The engine's part of a model on so many devices."""
    native = _core.NativeLoad(
        path,
        device=device,
        context=512,
        threads=1,
        kv_type=kv_type,
        kv_memory=None,
        gpus=gpus,
        prefix_cache=True,
        max_waiting=16,
        **options,
    ).result()
    try:
        yield SimpleNamespace(_native=native)
    finally:
        native.close()


@each_line("device", PLACES)
@each_line("kind", SHAPES)
def test_shares_add_up_to_the_model(kind: str, device: str, tmp_path: Path) -> None:
    case = build(kind, tmp_path / "model.gguf", seed=SEED, **SHAPES[kind])
    tokens = random_tokens(case.spec, N_TOKENS, seed=SEED)
    expected = NumpyModel(case.path).logits(tokens)
    with together(case.path, 2, device=device) as model:
        for path in ("prefill-chunks", "single", "few"):
            error = relative_error(chunked(model, tokens, *PATHS[path]), expected)
            assert error < BOUND_F32_CACHE, path


@pytest.mark.parametrize("weight_format", ["q8_0", "q4_0", "f16"])
@pytest.mark.parametrize("gpus", [2, 4])
def test_blocks_of_a_row_are_shared(gpus: int, weight_format: str, tmp_path: Path) -> None:
    shape = {"n_heads": 8, "n_kv_heads": 4, "head_dim": 32, "ffn_dim": 256}
    case = build(
        "qwen3-32", tmp_path / "model.gguf", seed=SEED, weight_format=weight_format, **shape
    )
    tokens = random_tokens(case.spec, N_TOKENS, seed=SEED)
    with together(case.path, 1) as model:
        whole = chunked(model, tokens, *PATHS["few"])
        text = finished(start(model, tokens[:20], 40))
    with together(case.path, gpus) as model:
        error = relative_error(chunked(model, tokens, *PATHS["few"]), whole)
        assert error < BOUND_F16_CACHE
        assert finished(start(model, tokens[:20], 40)) == text


@pytest.mark.parametrize("device", PLACES)
def test_a_text_is_the_same_alone_and_beside_others(device: str, tmp_path: Path) -> None:
    case = build("llama-gqa", tmp_path / "model.gguf", seed=SEED, **SHAPES["llama-gqa"])
    prompts = [random_tokens(case.spec, n, seed=n) for n in (3, 60, 270)]
    with together(case.path, 2, device=device) as model:
        alone = [finished(start(model, prompt, 30)) for prompt in prompts]
        beside = [start(model, prompt, 30) for prompt in prompts]
        assert [finished(each) for each in beside] == alone
        sampled = [start(model, prompts[0], 30, temperature=1.0, top_k=20) for _ in range(2)]
        first, second = (finished(each) for each in sampled)
        assert first == second


def test_a_share_that_is_missing_is_felt(tmp_path: Path) -> None:
    def half(spec: Any, weights: Any) -> Any:
        changed = dict(weights)
        name = "model.layers.1.mlp.down_proj.weight"
        changed[name] = weights[name].copy()
        changed[name][:, : weights[name].shape[1] // 2] = 0
        return changed

    case = build("llama-gqa", tmp_path / "a.gguf", seed=SEED, **SHAPES["llama-gqa"])
    other = build("llama-gqa", tmp_path / "b.gguf", seed=SEED, change=half, **SHAPES["llama-gqa"])
    tokens = random_tokens(case.spec, 50, seed=SEED)
    expected = NumpyModel(case.path).logits(tokens)
    with together(other.path, 2) as model:
        error = relative_error(chunked(model, tokens, [], "prompt"), expected)
    assert error > MUTATION_FACTOR * BOUND_F32_CACHE


@pytest.mark.parametrize(
    ("kind", "gpus", "says"),
    [
        ("llama", 2, "the model has 3 heads in a layer; it cannot be divided among 2 GPUs"),
        ("gemma3-256", 2, "1 heads of keys and values"),
        ("llama-gqa", 2, "207 columns in a feed-forward network"),
    ],
)
def test_what_does_not_divide_is_refused(kind: str, gpus: int, says: str, tmp_path: Path) -> None:
    case = build(kind, tmp_path / "model.gguf", seed=SEED)
    with (
        pytest.raises(akunu.UnsupportedModelError, match=says),
        together(case.path, gpus),
    ):
        pass


def test_blocks_that_do_not_divide_are_refused(tmp_path: Path) -> None:
    shape = {"n_heads": 2, "n_kv_heads": 2, "head_dim": 32, "ffn_dim": 160}
    case = build("llama-32", tmp_path / "model.gguf", seed=SEED, weight_format="q8_0", **shape)
    with (
        pytest.raises(akunu.UnsupportedModelError, match=r"ffn_down.* has 5 blocks of numbers"),
        together(case.path, 2),
    ):
        pass


def test_a_saved_text_is_refused(tmp_path: Path) -> None:
    case = build("llama-gqa", tmp_path / "model.gguf", seed=SEED, **SHAPES["llama-gqa"])
    with together(case.path, 2) as model:
        tokens = np.array([1, 2, 3], np.uint32)
        with pytest.raises(akunu.UnsupportedModelError, match="computed by 2 GPUs"):
            model._native.save_positions(tokens)


def test_options() -> None:
    with pytest.raises(akunu.ArgumentError, match="gpus is 2, but device is 'cpu'"):
        akunu.LoadOptions(gpus=2, device="cpu")
    with pytest.raises(akunu.ArgumentError, match="cache_dir"):
        akunu.LoadOptions(gpus=2, cache_dir="here")
    with pytest.raises(akunu.ArgumentError, match="gpus"):
        akunu.LoadOptions(gpus=9)
