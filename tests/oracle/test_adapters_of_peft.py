"""Adapters that peft saves, against peft on transformers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

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
    import peft
    import torch

    case = model_case(kind)
    torch.manual_seed(3)
    config = peft.LoraConfig(r=3, lora_alpha=7, task_type="CAUSAL_LM", **CONFIGS[name])
    adapted = peft.get_peft_model(hf_model.load(case.spec, case.weights), config).eval()
    with torch.no_grad():
        for key, parameter in adapted.named_parameters():
            if "lora_" in key:
                parameter.normal_(std=0.2)
    adapted.save_pretrained(tmp_path / "adapter")
    tokens = random_tokens(case.spec, 70, seed=5)
    with torch.no_grad():
        expected = adapted(torch.tensor([tokens])).logits[0].numpy()
    with akunu.load(case.path, kv_type="f32", adapters={"a": tmp_path / "adapter"}) as model:
        found = model.logits(tokens, adapters="a")
        bare = model.logits(tokens)
    assert relative_error(found, expected) < BOUND_F32_CACHE
    assert relative_error(bare, expected) > 100 * BOUND_F32_CACHE
