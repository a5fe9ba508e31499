"""Adapters that peft saves, against peft on transformers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import peft_adapter
import pytest
from engine import BOUND_F32_CACHE, relative_error
from random_models import ModelCase, random_tokens

import akunu

pytestmark = pytest.mark.oracle

Cases = Callable[..., ModelCase]
ALL = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
# What akunu has to read of the file beside the matrices.
CONFIGS: dict[str, dict[str, Any]] = {
    "all": {"target_modules": ALL},
    "rslora": {"target_modules": ALL, "use_rslora": True},
    "patterns": {
        "target_modules": ["q_proj", "down_proj"],
        "rank_pattern": {"down_proj": 5, "layers.1.self_attn.q_proj": 2},
        "alpha_pattern": {"q_proj": 9, "^model.layers.0.mlp.down_proj": 1},
    },
}


@pytest.mark.filterwarnings("ignore")  # of peft and torch
@pytest.mark.parametrize("kind", ["llama-gqa", "qwen3"])
@pytest.mark.parametrize("name", CONFIGS)
def test_an_adapter_gives_the_logits_of_peft(
    model_case: Cases, tmp_path: Path, kind: str, name: str
) -> None:
    import hf_model
    import torch

    case = model_case(kind)
    model = hf_model.load(case.spec, case.weights)
    adapted = peft_adapter.adapted(model, tmp_path / "adapter", **CONFIGS[name])
    tokens = random_tokens(case.spec, 70, seed=5)
    with torch.no_grad():
        expected = adapted(torch.tensor([tokens])).logits[0].numpy()
    with akunu.load(case.path, kv_type="f32", adapters={"a": tmp_path / "adapter"}) as model:
        found = model.logits(tokens, adapters="a")
        bare = model.logits(tokens)
    assert relative_error(found, expected) < BOUND_F32_CACHE
    assert relative_error(bare, expected) > 100 * BOUND_F32_CACHE


LATENT_PROJECTIONS = r".*self_attn\.(q_a|q_b|kv_a|o)_proj(_with_mqa)?"
# Of a model with latents and experts: what peft is told to adapt, and what akunu says of it.
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "an expert of all rows": (  # peft adapts all experts' then
        {"target_modules": r".*shared_experts\.down_proj"},
        "target_parameters is a list; akunu adapts modules, not single parameters",
    ),
    "all networks": (  # peft makes patterns of them that experts have
        {"target_modules": ["gate_proj", "up_proj", "down_proj"]},
        "is a regular expression; akunu has names of modules",
    ),
    "keys and values": (
        {"target_modules": ["kv_b_proj"]},
        "self_attn.kv_b_proj, which is none of this model's projections",
    ),
    "experts": (
        {"target_modules": ["o_proj"], "target_parameters": ["mlp.experts.down_proj"]},
        "target_parameters is a list; akunu adapts modules, not single parameters",
    ),
}


def deepseek(tmp_path: Path, **config: Any) -> tuple[Any, Path, Path]:
    """A model of latents and experts that peft has adapted, its directory and the adapter's."""
    import random_experts

    model = random_experts.model_of("deepseek3-moe")
    folder = random_experts.save(tmp_path / "model", model)
    adapted = peft_adapter.adapted(model, tmp_path / "adapter", **config)
    return adapted, folder, tmp_path / "adapter"


@pytest.mark.filterwarnings("ignore")  # of peft and torch
def test_an_adapter_beside_experts_gives_the_logits_of_peft(tmp_path: Path) -> None:
    import torch
    from dense_golden import TOKENS

    adapted, folder, adapter = deepseek(tmp_path, target_modules=LATENT_PROJECTIONS)
    tokens = TOKENS[:70]
    with torch.no_grad():
        expected = adapted(torch.tensor([tokens])).logits[0].numpy()
    with akunu.load(folder, kv_type="f32", adapters={"a": adapter}) as model:
        found = model.logits(tokens, adapters="a")
        bare = model.logits(tokens)
    assert relative_error(found, expected) < BOUND_F32_CACHE
    assert relative_error(bare, expected) > 100 * BOUND_F32_CACHE


@pytest.mark.filterwarnings("ignore")  # of peft and torch
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_adapted_beside_projections_is_refused_by_name(tmp_path: Path, name: str) -> None:
    config, message = REFUSED[name]
    _, folder, adapter = deepseek(tmp_path, **config)
    with pytest.raises(akunu.UnsupportedModelError) as raised:
        akunu.load(folder, adapters={"a": adapter})
    assert message in str(raised.value)


@pytest.mark.filterwarnings("ignore")  # of peft and torch
def test_two_adapters_in_one_step_give_the_logits_of_peft_one_by_one(
    model_case: Cases, tmp_path: Path
) -> None:
    """They are loaded while the model runs."""
    import hf_model
    import torch

    case = model_case("llama-gqa")
    tokens = random_tokens(case.spec, 70, seed=5)
    expected = []
    for name, modules in (("a", ALL), ("b", ["k_proj", "down_proj"])):
        adapted = peft_adapter.adapted(
            hf_model.load(case.spec, case.weights), tmp_path / name, target_modules=modules
        )
        with torch.no_grad():
            expected.append(adapted(torch.tensor([tokens])).logits[0].numpy())
    with akunu.load(case.path, kv_type="f32", prefix_cache=False) as model:
        bare = model.logits(tokens)
        for name in ("a", "b"):
            model.load_adapter(name, tmp_path / name)
        alone = [model.logits(tokens, adapters=name) for name in ("a", "b")]
        native, ids = model._native, np.asarray(tokens, np.uint32)
        tasks = [native.start_logits(ids, adapters=chosen) for chosen in ({0: 1.0}, {}, {1: 1.0})]
        found = [task.result() for task in tasks]
    assert found[1].tobytes() == bare.tobytes()
    for logits, one, of_peft in zip(found[::2], alone, expected, strict=True):
        assert logits.tobytes() == one.tobytes()
        assert relative_error(logits, of_peft) < BOUND_F32_CACHE
        assert relative_error(bare, of_peft) > 100 * BOUND_F32_CACHE
