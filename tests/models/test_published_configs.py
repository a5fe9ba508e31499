"""Keys of published config.json files, beside those that transformers writes now."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import hf_directory
import numpy as np
import pytest
from random_models import ModelCase, Weights

import akunu

Cases = Callable[..., ModelCase]

# Their numbers that say how large a model is are left out: those of the small model hold.
PUBLISHED: dict[str, dict[str, Any]] = {
    "Granite 3.3": {
        "model_type": "granite",
        "architectures": ["GraniteForCausalLM"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "attention_multiplier": 0.0078125,
        "embedding_multiplier": 12.0,
        "hidden_act": "silu",
        "initializer_range": 0.02,
        "logits_scaling": 16.0,
        "mlp_bias": False,
        "residual_multiplier": 0.22,
        "rope_scaling": None,
        "rope_theta": 10000000.0,
    },
    "Granite 4.0 350M": {
        "model_type": "granitemoehybrid",
        "attention_multiplier": 0.015625,
        "embedding_multiplier": 12,
        "init_method": "mup",
        "intermediate_size": 512,
        "layer_types": ["attention"] * 3,
        "logits_scaling": 4,
        "mamba_chunk_size": 256,
        "mamba_conv_bias": True,
        "mamba_d_conv": 4,
        "mamba_d_head": 16,
        "mamba_d_state": 128,
        "mamba_expand": 2,
        "mamba_n_groups": 1,
        "mamba_n_heads": 12,
        "mamba_proj_bias": False,
        "normalization_function": "rmsnorm",
        "num_experts_per_tok": 0,
        "num_local_experts": 0,
        "output_router_logits": False,
        "position_embedding_type": "rope",
        "residual_multiplier": 0.246,
        "rope_scaling": None,
        "rope_theta": 10000000,
        "router_aux_loss_coef": 0.01,
        "shared_intermediate_size": 160,
    },
    "SmolLM3 3B": {
        "model_type": "smollm3",
        "attention_bias": False,
        "layer_types": ["full_attention"] * 3,
        "max_window_layers": 28,
        "mlp_bias": False,
        "no_rope_layer_interval": 4,
        "no_rope_layers": [1, 1, 0],
        "pretraining_tp": 2,
        "rope_scaling": None,
        "rope_theta": 5000000.0,
        "sliding_window": None,
        "use_sliding_window": False,
    },
    "Mistral Nemo": {
        "model_type": "mistral",
        "hidden_act": "silu",
        "rope_theta": 1000000.0,
        "sliding_window": None,
    },
    "Hunyuan 4B": {
        "model_type": "hunyuan_v1_dense",
        "add_classification_head": False,
        "attention_bias": False,
        "attention_dropout": 0.1,
        "attention_head_dim": 32,
        "cla_share_factor": 2,
        "class_num": 0,
        "dense_list": [3072, 0],
        "eod_token_id": 3,
        "im_end_id": 5,
        "im_newline_id": 11,
        "im_start_id": 4,
        "mask_init_id": 12,
        "mlp_bias": False,
        "norm_type": "rms",
        "num_experts": 1,
        "num_media_embeds": 257,
        "org_vocab_size": 128167,
        "pad_id": 127961,
        "pool_type": "last",
        "position_embedding_xdrope": False,
        "rope_scaling": {
            "alpha": 1000.0,
            "beta_fast": 32,
            "beta_slow": 1,
            "factor": 1.0,
            "mscale": 1.0,
            "mscale_all_dim": 1.0,
            "type": "dynamic",
        },
        "rope_theta": 10000.0,
        "sep_token_id": 4,
        "text_end_id": 7,
        "text_start_id": 6,
        "use_cla": False,
        "use_qk_norm": True,
        "use_rotary_pos_emb": True,
    },
    "ERNIE 4.5 0.3B": {
        "model_type": "ernie4_5",
        "rope_theta": 500000.0,
        "use_bias": False,
    },
    "Seed-OSS 36B": {
        "model_type": "seed_oss",
        "attention_bias": True,
        "attention_dropout": 0.1,
        "attention_out_bias": False,
        "mlp_bias": False,
        "pretraining_tp": 1,
        "residual_dropout": 0.1,
        "rope_scaling": {"rope_type": "default"},
        "rope_theta": 10000000.0,
    },
}


def more_weights(name: str, weights: Weights) -> Weights:
    """Llama's weights under the family's names."""
    result = dict(weights)
    if name.startswith("Granite 4"):
        for layer in range(3):
            at = f"model.layers.{layer}."
            parts = [result.pop(f"{at}mlp.{part}_proj.weight") for part in ("gate", "up")]
            result[at + "shared_mlp.input_linear.weight"] = np.concatenate(parts)
            result[at + "shared_mlp.output_linear.weight"] = result.pop(at + "mlp.down_proj.weight")
    if name.startswith("Hunyuan"):
        for layer in range(3):
            for letter in ("query", "key"):
                result[f"model.layers.{layer}.self_attn.{letter}_layernorm.weight"] = np.ones(
                    32, np.float32
                )
    return result


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_config_is_read_without_a_word(
    model_case: Cases, tmp_path: Path, name: str
) -> None:
    case = model_case("llama-32")
    changes = {"rope_parameters": None, **PUBLISHED[name]}
    weights = more_weights(name, case.weights)
    folder = hf_directory.write(tmp_path / "model", case.spec, weights, style=4, changes=changes)
    with akunu.load(folder, device="cpu", threads=1) as model:
        assert [note for note in model.notes if "does not know" in note] == []
        assert np.isfinite(model.logits([1, 2, 3])).all()
