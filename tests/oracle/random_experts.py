"""Small random models of transformers with experts, one per family, saved as directories.

    folder = save(tmp_path / "model", model_of("qwen3-moe"))

As random_decoders.py has the dense families; the numbers of a tensor follow from its name.
"""

from __future__ import annotations

import zlib
from typing import Any

import gguf
import numpy as np
import torch
import transformers
from dense_golden import tensor_of
from gguf.quants import dequantize, quantize
from random_decoders import (
    ALPHA,
    GEMMA4,
    LATENT_YARN,
    changed,
    save,
    stored_buffers,
    with_keys_apart,
)
from random_family import GRANITE, LATENT, SIZES, Family
from random_recurrent import CHANNELS, RECALLING, SCANS, qwen35_rope

__all__ = ["FAMILIES", "changed", "model_of", "rounded", "save"]

_COMMON: dict[str, Any] = {"rms_norm_eps": 0.03}
_LATENT: dict[str, Any] = {
    **LATENT,
    "rms_norm_eps": 1e-6,
    "n_routed_experts": 16,
    "num_experts_per_tok": 3,
    "moe_intermediate_size": 64,
    "first_k_dense_replace": 1,
}
_YARN_3: dict[str, Any] = {**LATENT_YARN, "factor": 4.0, "mscale": 1.0, "mscale_all_dim": 1.0}

_RECALLING: dict[str, Any] = {
    **RECALLING,
    "num_experts": 12,
    "num_experts_per_tok": 3,
    "moe_intermediate_size": 64,
    "shared_expert_intermediate_size": 96,
    "layer_types": ["linear_attention", "full_attention"] * 2,
    "rope_parameters": qwen35_rope(0.5),
}
_NEXT_ROPE: dict[str, Any] = {
    "rope_type": "default",
    "rope_theta": 10000.0,
    "partial_rotary_factor": 0.5,
}

FAMILIES: dict[str, Family] = {
    "qwen3-moe": Family(
        name="Qwen3Moe",
        architecture="qwen3moe",
        options={
            **_COMMON,
            "head_dim": 32,
            "num_experts": 12,
            "num_experts_per_tok": 3,
            "moe_intermediate_size": 64,
            "norm_topk_prob": True,
        },
        changes={
            "fewer experts": {"num_experts_per_tok": 2},
            "weights as they are": {"norm_topk_prob": False},
        },
    ),
    "qwen2-moe": Family(
        name="Qwen2Moe",
        architecture="qwen2moe",
        options={
            **_COMMON,
            "num_experts": 10,
            "num_experts_per_tok": 4,
            "moe_intermediate_size": 64,
            "shared_expert_intermediate_size": 96,
        },
        changes={
            "fewer experts": {"num_experts_per_tok": 3},
            "weights normalised": {"norm_topk_prob": True},
        },
    ),
    "qwen3.5-moe": Family(
        name="Qwen3_5Moe",
        config="Qwen3_5MoeText",
        architecture="qwen35moe",
        options=_RECALLING,
        changes={"fewer experts": {"num_experts_per_tok": 2}},
    ),
    "qwen3-next": Family(
        name="Qwen3Next",
        architecture="qwen3next",
        options={**_RECALLING, "rope_parameters": _NEXT_ROPE, "norm_topk_prob": True},
        changes={
            "fewer experts": {"num_experts_per_tok": 2},
            "weights as they are": {"norm_topk_prob": False},
            "what rotates": {"rope_parameters": {**_NEXT_ROPE, "partial_rotary_factor": 0.25}},
        },
    ),
    "gemma4-moe": Family(
        name="Gemma4",
        config="Gemma4Text",
        architecture="gemma4",
        options={
            **GEMMA4,
            "attention_k_eq_v": True,
            "num_global_key_value_heads": 3,
            "enable_moe_block": True,
            "num_experts": 12,
            "top_k_experts": 3,
            "moe_intermediate_size": 64,
        },
        changes={"fewer experts": {"top_k_experts": 2}},
    ),
    "mixtral": Family(
        name="Mixtral",
        architecture="llama",
        options={**_COMMON, "num_local_experts": 6, "num_experts_per_tok": 2},
        changes={"one expert": {"num_experts_per_tok": 1}},
    ),
    "olmoe": Family(
        name="Olmoe",
        architecture="olmoe",
        options={
            **_COMMON,
            "num_key_value_heads": 6,  # llama.cpp wants as many as there are heads
            "num_experts": 12,
            "num_experts_per_tok": 3,
            "intermediate_size": 64,
        },
        changes={
            "fewer experts": {"num_experts_per_tok": 2},
            "weights normalised": {"norm_topk_prob": True},
        },
    ),
    "granite-moe": Family(
        name="GraniteMoe",
        architecture="granitemoe",
        options={
            **_COMMON,
            "embedding_multiplier": 3.0,
            "residual_multiplier": 0.4,
            "attention_multiplier": 0.11,
            "logits_scaling": 5.0,
            "num_local_experts": 8,
            "num_experts_per_tok": 3,
            "intermediate_size": 64,
        },
        changes={
            "fewer experts": {"num_experts_per_tok": 2},
            "residual": {"residual_multiplier": 0.5},
        },
    ),
    "glm-4.5": Family(
        name="Glm4Moe",
        architecture="glm4moe",
        options={
            **_COMMON,
            "head_dim": 32,
            "attention_bias": True,
            "use_qk_norm": True,
            "n_routed_experts": 12,
            "num_experts_per_tok": 3,
            "moe_intermediate_size": 64,
            "n_shared_experts": 2,
            "first_k_dense_replace": 1,
            "routed_scaling_factor": 1.7,
            "norm_topk_prob": True,
            "num_mtp_layers": 0,
        },
        changes={
            "fewer experts": {"num_experts_per_tok": 2},
            "scale": {"routed_scaling_factor": 1.0},
            "weights as they are": {"norm_topk_prob": False},
            "groups": {"n_group": 4, "topk_group": 2},
        },
    ),
    "glm-4.5-groups": Family(
        name="Glm4Moe",
        architecture="glm4moe",
        options={
            **_COMMON,
            "head_dim": 32,
            "n_routed_experts": 16,
            "num_experts_per_tok": 3,
            "moe_intermediate_size": 64,
            "n_shared_experts": 1,
            "first_k_dense_replace": 2,
            "n_group": 4,
            "topk_group": 2,
            "num_mtp_layers": 0,
        },
        changes={
            "other groups": {"topk_group": 3},
            "no groups": {"n_group": 1, "topk_group": 1},
        },
        not_in_llama_cpp="it reads groups of deepseek2 and bailingmoe2 alone",
    ),
    "ernie4.5-moe": Family(
        name="Ernie4_5_Moe",
        architecture="ernie4_5-moe",
        options={
            **_COMMON,
            "head_dim": 32,
            "moe_num_experts": 8,
            "moe_k": 3,
            "moe_intermediate_size": 64,
            "moe_num_shared_experts": 2,
            "moe_layer_start_index": 1,
        },
        changes={"fewer experts": {"moe_k": 2}},
    ),
    "granite-moe-shared": Family(
        name="GraniteMoeShared",
        architecture="granitemoe",
        options={
            **_COMMON,
            "embedding_multiplier": 3.0,
            "residual_multiplier": 0.4,
            "attention_multiplier": 0.11,
            "logits_scaling": 5.0,
            "num_local_experts": 8,
            "num_experts_per_tok": 3,
            "intermediate_size": 64,
            "shared_intermediate_size": 96,
        },
        changes={"fewer experts": {"num_experts_per_tok": 2}},
    ),
    "granitehybrid-moe": Family(
        name="GraniteMoeHybrid",
        architecture="granitehybrid",
        options={
            **_COMMON,
            **GRANITE,
            **SCANS,
            "num_local_experts": 8,
            "num_experts_per_tok": 3,
            "intermediate_size": 64,
            "shared_intermediate_size": 96,
            "layer_types": [
                "linear_attention",
                "linear_attention",
                "attention",
                "linear_attention",
            ],
            "position_embedding_type": None,
        },
        changes={
            "fewer experts": {"num_experts_per_tok": 2},
            "residual": {"residual_multiplier": 0.5},
            "positions": {"position_embedding_type": "rope"},
            "steps of time": {"time_step_limit": [0.3, 0.6]},
        },
    ),
    "nemotron-h-moe": Family(
        name="NemotronH",
        architecture="nemotron_h_moe",
        options={
            "layer_norm_epsilon": 0.03,
            "layers_block_type": [
                "linear_attention",
                "moe",
                "full_attention",
                "moe",
                "linear_attention",
                "moe",
            ],
            "head_dim": 32,
            "mamba_num_heads": 6,
            "mamba_head_dim": 32,
            "n_groups": 2,
            "ssm_state_size": 48,
            "n_routed_experts": 16,
            "num_experts_per_tok": 3,
            "moe_intermediate_size": 64,
            "moe_shared_expert_intermediate_size": 128,
            "routed_scaling_factor": 2.5,
            "n_group": 1,
            "topk_group": 1,
        },
        changes={
            "fewer experts": {"num_experts_per_tok": 2},
            "scale": {"routed_scaling_factor": 1.0},
            "weights as they are": {"norm_topk_prob": False},
            "groups": {"n_group": 4, "topk_group": 2},
        },
    ),
    "hunyuan-moe": Family(
        name="HunYuanMoEV1",
        architecture="hunyuan-moe",
        options={
            **_COMMON,
            "head_dim": 32,
            "num_experts": 8,
            "moe_topk": 3,
            "intermediate_size": 64,
            "rope_parameters": ALPHA,
        },
        changes={
            "fewer experts": {"moe_topk": [2, 2, 2, 2]},
            "alpha": {"rope_parameters": {**ALPHA, "alpha": 1.0}},
        },
    ),
    "deepseek2-lite-moe": Family(
        name="DeepseekV2",
        architecture="deepseek2",
        options={
            **_LATENT,
            "q_lora_rank": None,
            "n_shared_experts": 2,
            "n_group": 1,
            "topk_group": 1,
        },
        changes={
            "fewer experts": {"num_experts_per_tok": 2},
            "scale": {"routed_scaling_factor": 2.0},
            "groups": {"topk_method": "group_limited_greedy", "n_group": 4, "topk_group": 1},
        },
        not_in_llama_cpp="it takes models without compressed queries of 27 layers only",
    ),
    "deepseek2-moe": Family(
        name="DeepseekV2",
        architecture="deepseek2",
        options={
            **_LATENT,
            "n_shared_experts": 1,
            "routed_scaling_factor": 4.0,
            "rope_parameters": LATENT_YARN,
        },
        changes={
            "fewer experts": {"num_experts_per_tok": 2},
            "scale": {"routed_scaling_factor": 2.0},
            "attention": {"rope_parameters": _YARN_3},
        },
    ),
    "deepseek2-moe-groups": Family(
        name="DeepseekV2",
        architecture="deepseek2",
        options={
            **_LATENT,
            "n_shared_experts": 2,
            "topk_method": "group_limited_greedy",
            "n_group": 4,
            "topk_group": 2,
            "routed_scaling_factor": 4.0,
        },
        changes={
            "other groups": {"topk_group": 3},
            "no groups": {"topk_method": "greedy"},
        },
        not_in_llama_cpp="a group counts there as much as its two best experts together",
    ),
    "deepseek3-moe": Family(
        name="DeepseekV3",
        architecture="deepseek2",
        options={
            **_LATENT,
            "n_shared_experts": 1,
            "n_group": 4,
            "topk_group": 2,
            "rope_parameters": _YARN_3,
            "num_mtp_layers": 0,
        },
        changes={
            "fewer experts": {"num_experts_per_tok": 2},
            "scale": {"routed_scaling_factor": 2.0},
            "weights as they are": {"norm_topk_prob": False},
            "other groups": {"topk_group": 3},
            "no groups": {"n_group": 1, "topk_group": 1},
        },
    ),
    "kimi-k2-moe": Family(
        name="DeepseekV3",
        architecture="deepseek2",
        options={
            **_LATENT,
            "first_k_dense_replace": 0,
            "n_shared_experts": 1,
            "n_group": 1,
            "topk_group": 1,
            "num_mtp_layers": 0,
        },
        changes={
            "scale": {"routed_scaling_factor": 2.0},
        },
    ),
    "kimi-linear-moe": Family(
        name="KimiLinear",
        architecture="kimi-linear",
        options={
            **CHANNELS,
            "num_local_experts": 16,
            "num_experts_per_tok": 3,
            "moe_intermediate_size": 64,
            "n_shared_experts": 1,
            "n_group": 1,
            "topk_group": 1,
        },
        changes={
            "fewer experts": {"num_experts_per_token": 2},
            "scale": {"routed_scaling_factor": 2.0},
            "weights as they are": {"moe_renormalize": False},
            "groups": {"num_expert_group": 4, "topk_group": 2},
        },
    ),
    "gpt-oss": Family(
        name="GptOss",
        architecture="gpt-oss",
        options={
            **_COMMON,
            "head_dim": 32,
            "num_local_experts": 8,
            "num_experts_per_tok": 3,
            "intermediate_size": 64,
            "sliding_window": 70,
            "rope_parameters": {
                "rope_type": "yarn",
                "rope_theta": 10000.0,
                "factor": 4.0,
                "original_max_position_embeddings": 128,
                "beta_fast": 32.0,
                "beta_slow": 1.0,
                "truncate": True,
            },
        },
        changes={
            "window": {"sliding_window": 71},
            "limit": {"swiglu_limit": 6.0},
            "alpha": {"swiglu_alpha": 1.0},
            "fewer experts": {"num_experts_per_tok": 2},
        },
    ),
}


def _numbers(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Stacks of matrices, and routers whose choices are seldom close."""
    stream = np.random.RandomState([5, zlib.crc32(name.encode())])
    if name.endswith(("router.scale", "per_expert_scale")):  # gemma4's: numbers of a norm
        values = (10 if name.endswith("router.scale") else 1) * stream.uniform(0.5, 1.5, shape)
    elif len(shape) == 3:
        values = 1.5 / np.sqrt(shape[-1]) * stream.standard_normal(shape)
    elif any(
        part in name
        for part in (
            "mlp.gate.weight",
            "mixer.gate.weight",
            "mlp.gate.wg",
            "router",
            "block_sparse_moe.gate",
        )
    ):
        values = 3 / np.sqrt(shape[-1]) * stream.standard_normal(shape)
    else:
        return tensor_of(name, shape)
    return values.astype(np.float32)


def model_of(family: str, **more: Any) -> Any:
    """A model in evaluation mode."""
    described = FAMILIES[family]
    config_class = getattr(transformers, f"{described.config or described.name}Config")
    config = config_class(**{**SIZES, **described.options, **more}, attn_implementation="eager")
    model = getattr(transformers, f"{described.name}ForCausalLM")(config).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.copy_(torch.from_numpy(_numbers(name, tuple(weight.shape))))
            if family == "gpt-oss" and name.endswith("gate_up_proj"):
                weight.mul_(3)  # so that the limit of its activation is met
        for name, buffer in stored_buffers(model).items():
            buffer.copy_(torch.from_numpy(_numbers(name, tuple(buffer.shape))))
            if "e_score_correction" in name:
                stream = np.random.RandomState([5, zlib.crc32(name.encode())])
                buffer.copy_(torch.from_numpy(stream.uniform(-0.3, 0.3, tuple(buffer.shape))))
    return model


def rounded(model: Any, number_format: str) -> Any:
    """The model, its matrices as a format of GGUF's blocks has rounded them."""
    kind = gguf.GGMLQuantizationType[number_format]
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim < 2 or 1 in weight.shape[:2]:
                continue
            # The matrices of gpt-oss have the inputs in their columns.
            turned = model.config.model_type == "gpt_oss" and weight.ndim == 3
            rows = (weight.transpose(1, 2) if turned else weight).detach().contiguous()
            exact = torch.from_numpy(dequantize(quantize(rows.numpy(), kind), kind).copy())
            weight.copy_(exact.transpose(1, 2) if turned else exact)
    return with_keys_apart(model)
