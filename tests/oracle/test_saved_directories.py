"""Directories, as transformers itself loads them, on transformers and on akunu."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import hf_directory
import pytest
from engine import BOUND_F16_CACHE, BOUND_F32_CACHE, MUTATION_FACTOR, opened, relative_error
from random_models import ModelCase, random_tokens

pytestmark = pytest.mark.oracle

_LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 128,
}
SCALINGS: dict[str, dict[str, Any]] = {
    "linear": {"rope_type": "linear", "factor": 4.0},
    "dynamic": {"rope_type": "dynamic", "factor": 4.0},
    "longrope": {
        "rope_type": "longrope",
        "short_factor": [1.0 + i / 12 for i in range(12)],
        "long_factor": [1.0 + i for i in range(12)],
        "original_max_position_embeddings": 256,
    },
    "llama3": _LLAMA3,
    "yarn": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128},
    "yarn-not-truncated": {
        "rope_type": "yarn",
        "factor": 8.0,
        "original_max_position_embeddings": 64,
        "beta_fast": 16.0,
        "beta_slow": 2.0,
        "truncate": False,
        "attention_factor": 1.5,
    },
    "yarn-mscale": {
        "rope_type": "yarn",
        "factor": 8.0,
        "original_max_position_embeddings": 64,
        "mscale": 1.0,
        "mscale_all_dim": 0.5,
    },
}


@pytest.mark.parametrize("name", SCALINGS)
def test_scaled_positions_are_those_of_transformers(
    model_case: Callable[..., ModelCase],
    oracle: Any,
    measured: Callable[[str, str, float], None],
    tmp_path: Path,
    name: str,
) -> None:
    case = model_case("qwen3-32")
    parameters = {"rope_theta": 10000.0, **SCALINGS[name]}
    folder = hf_directory.write(
        tmp_path / "model", case.spec, case.weights, changes={"rope_parameters": parameters}
    )
    tokens = random_tokens(case.spec, 300, seed=3)
    expected = oracle.logits(oracle.from_directory(folder), tokens)
    with opened(folder) as model:
        error = relative_error(model.logits(tokens), expected)
    measured("directory, scaled positions", name, error)
    assert error <= BOUND_F32_CACHE
    if name != "dynamic":  # up to 512 positions it changes nothing; without the others, all differs
        plain = hf_directory.write(
            tmp_path / "plain",
            case.spec,
            case.weights,
            changes={"rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}},
        )
        with opened(plain) as model:
            unscaled = relative_error(model.logits(tokens), expected)
        assert unscaled >= MUTATION_FACTOR * BOUND_F32_CACHE


def test_dynamic_ntk_is_that_of_transformers_for_a_text_as_long_as_the_context(
    model_case: Callable[..., ModelCase], oracle: Any, tmp_path: Path
) -> None:
    case = model_case("qwen3-32")
    scaling = {"rope_theta": 10000.0, "rope_type": "dynamic", "factor": 4.0}
    folder = hf_directory.write(
        tmp_path / "model",
        case.spec,
        case.weights,
        changes={"rope_parameters": scaling, "max_position_embeddings": 128},
    )
    tokens = random_tokens(case.spec, 300, seed=3)
    expected = oracle.logits(oracle.from_directory(folder), tokens)
    with opened(folder, context=300) as model:
        assert relative_error(model.logits(tokens), expected) <= BOUND_F32_CACHE


WINDOWS: dict[str, tuple[str, dict[str, Any]]] = {
    "mistral": ("llama-32", {"model_type": "mistral"}),
    "qwen2": ("qwen2-32", {"use_sliding_window": True, "max_window_layers": 1}),
    "qwen3": ("qwen3-32", {"use_sliding_window": True, "max_window_layers": 2}),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_are_those_of_transformers(
    model_case: Callable[..., ModelCase], oracle: Any, tmp_path: Path, name: str
) -> None:
    kind, changes = WINDOWS[name]
    case = model_case(kind)
    folder = hf_directory.write(
        tmp_path / "model",
        case.spec,
        case.weights,
        changes={"sliding_window": 70, "layer_types": None, **changes},
    )
    tokens = random_tokens(case.spec, 300, seed=3)
    expected = oracle.logits(oracle.from_directory(folder), tokens)
    with opened(folder) as model:
        assert relative_error(model.logits(tokens), expected) <= BOUND_F32_CACHE


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("kind", ["llama-gqa", "qwen2", "qwen3", "gemma", "gemma2", "gemma3"])
def test_what_transformers_saves_is_what_akunu_loads(
    model_case: Callable[..., ModelCase],
    oracle: Any,
    measured: Callable[[str, str, float], None],
    tmp_path: Path,
    kind: str,
    dtype: str,
) -> None:
    case, folder = model_case(kind), tmp_path / "model"
    oracle.save(oracle.load(case.spec, case.weights), folder, dtype)
    hf_directory.write_tokenizer(folder, case.spec.vocab_size)
    tokens = random_tokens(case.spec, 100, seed=3)
    expected = oracle.logits(oracle.from_directory(folder), tokens)
    with opened(folder) as model:
        error = relative_error(model.logits(tokens), expected)
    measured(f"directory, {dtype}", kind, error)
    # With weights in halves, rows are rounded to halves too.
    assert error <= (BOUND_F32_CACHE if dtype == "float32" else BOUND_F16_CACHE)
