"""Families of random_decoders.py that recur: short convolutions, Mamba-2, the gated delta rule."""

from __future__ import annotations

from typing import Any

from random_family import EPSILON, GRANITE, GRANITE_CHANGES, LATENT, WIDE, Family

# Scans of 6 heads of 32 numbers, and no experts.
SCANS: dict[str, Any] = {
    "num_local_experts": 0,
    "num_experts_per_tok": 0,
    "shared_intermediate_size": 160,
    "mamba_n_heads": 6,
    "mamba_d_state": 48,
}

RECALLING: dict[str, Any] = {
    "rms_norm_eps": 1e-6,  # in llama.cpp it is in the lengths of keys, too
    **WIDE,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 6,
    "linear_key_head_dim": 32,
    "linear_value_head_dim": 32,
    "linear_conv_kernel_dim": 4,
}


def qwen35_rope(part: float, base: float = 10000.0) -> dict[str, Any]:
    return {
        "rope_type": "default",
        "rope_theta": base,
        "partial_rotary_factor": part,
        "mrope_section": [3, 3, 2],
        "mrope_interleaved": True,
    }


# Kimi-Linear's: latent attention in one layer, in others the delta rule whose channels decay apart.
CHANNELS: dict[str, Any] = {
    **LATENT,
    "rms_norm_eps": 1e-6,  # in llama.cpp it is in the lengths of keys, too
    "q_lora_rank": None,
    "linear_num_heads": 6,  # llama.cpp has one number for both kinds of layers
    "linear_head_dim": 32,
    "linear_conv_kernel_dim": 4,
    "layer_types": ["linear_attention", "linear_attention", "full_attention", "linear_attention"],
}

# Falcon-H1's multipliers. Powers of two: quantised weights times them are exact in their format.
FACTORS: dict[str, Any] = {
    "embedding_multiplier": 4.0,
    "lm_head_multiplier": 0.5,
    "key_multiplier": 0.5,
    "attention_in_multiplier": 0.5,
    "attention_out_multiplier": 2.0,
    "ssm_in_multiplier": 0.5,
    "ssm_out_multiplier": 0.5,
    "ssm_multipliers": [2.0, 1.0, 0.5, 0.5, 2.0],
    "mlp_multipliers": [0.5, 2.0],
}
BESIDE: dict[str, Any] = {
    **EPSILON,
    **FACTORS,
    "mamba_d_ssm": 192,
    "mamba_n_heads": 6,
    "mamba_d_head": 32,
    "mamba_n_groups": 2,
    "mamba_d_state": 48,
    "mamba_norm_before_gate": False,
}


def other_factors(key: str) -> dict[str, dict[str, Any]]:
    """Each of the numbers of a list is one that another model has otherwise."""
    numbers = FACTORS[key]
    return {
        f"{key} {i}": {key: [*numbers[:i], 1.5 * numbers[i], *numbers[i + 1 :]]}
        for i in range(len(numbers))
    }


RECURRENT: dict[str, Family] = {
    "falcon-h1": Family(
        name="FalconH1",
        architecture="falcon-h1",
        options={**BESIDE, "mamba_rms_norm": True},
        changes={
            **{
                key: {key: 1.5 * FACTORS[key]}
                for key in FACTORS
                if not isinstance(FACTORS[key], list)
            },
            **other_factors("ssm_multipliers"),
            **other_factors("mlp_multipliers"),
            "base": {"rope_parameters": {"rope_type": "default", "rope_theta": 20000.0}},
            "steps of time": {"time_step_limit": [0.3, 0.6]},
            "epsilon": {"rms_norm_eps": 0.3},
        },
    ),
    "falcon-h1-plain": Family(
        name="FalconH1",
        architecture="falcon-h1",
        options={
            **BESIDE,
            **WIDE,
            "mamba_n_groups": 1,
            "tie_word_embeddings": True,
        },
    ),
    "granitehybrid": Family(
        name="GraniteMoeHybrid",
        architecture="granitehybrid",
        options={
            **EPSILON,
            **GRANITE,
            **SCANS,
            "mamba_n_groups": 2,
            "layer_types": ["linear_attention", "attention", "linear_attention", "attention"],
            "position_embedding_type": "rope",
        },
        changes={
            **GRANITE_CHANGES,
            "no positions": {"position_embedding_type": "nope"},
            "steps of time": {"time_step_limit": [0.3, 0.6]},
        },
        not_in_llama_cpp="it lets no layer of such models rotate",
    ),
    "granitehybrid-nope": Family(
        name="GraniteMoeHybrid",
        architecture="granitehybrid",
        options={
            **EPSILON,
            **GRANITE,
            **SCANS,
            "mamba_conv_bias": False,
            "layer_types": [
                "linear_attention",
                "linear_attention",
                "attention",
                "linear_attention",
            ],
            "position_embedding_type": None,
        },
        changes={"positions": {"position_embedding_type": "rope"}},
        not_in_llama_cpp="it adds the convolution's bias without looking whether there is one",
    ),
    "nemotron-h": Family(
        name="NemotronH",
        architecture="nemotron_h",
        options={
            "layer_norm_epsilon": 0.03,
            "layers_block_type": [
                "linear_attention",
                "mlp",
                "full_attention",
                "mlp",
                "linear_attention",
                "full_attention",
            ],
            "head_dim": 32,
            "mamba_num_heads": 6,
            "mamba_head_dim": 32,
            "n_groups": 2,
            "ssm_state_size": 48,
        },
        changes={
            "epsilon": {"layer_norm_epsilon": 0.3},
            "steps of time": {"time_step_limit": [0.3, 0.6]},
        },
    ),
    "mamba2": Family(
        name="Mamba2",
        architecture="mamba2",
        options={
            "layer_norm_epsilon": 0.03,
            "num_heads": 6,
            "head_dim": 32,
            "n_groups": 2,
            "state_size": 48,
        },
        without=("intermediate_size", "num_attention_heads", "num_key_value_heads"),
        changes={
            "epsilon": {"layer_norm_epsilon": 0.3},
            "steps of time": {"time_step_limit": [0.3, 0.6]},
        },
    ),
    "lfm2": Family(
        name="Lfm2",
        architecture="lfm2",
        options={
            "norm_eps": 0.03,
            "conv_L_cache": 3,
            "block_multiple_of": 32,
            "layer_types": ["conv", "full_attention", "conv", "conv"],
        },
        changes={
            "epsilon": {"norm_eps": 1e-5},
            "base": {"rope_parameters": {"rope_type": "default", "rope_theta": 20000.0}},
        },
    ),
    "lfm2-wide": Family(
        name="Lfm2",
        architecture="lfm2",
        options={
            "norm_eps": 0.03,
            "conv_L_cache": 4,
            "block_auto_adjust_ff_dim": False,
            "layer_types": ["full_attention", "conv", "conv", "full_attention"],
            "tie_word_embeddings": False,
        },
    ),
    "qwen35": Family(
        name="Qwen3_5",
        config="Qwen3_5Text",
        architecture="qwen35",
        options={
            **RECALLING,
            "rms_norm_eps": 1e-3,  # of heads that recall little, numbers are not grown to any size
            "layer_types": ["linear_attention", "full_attention"] * 2,
            "rope_parameters": qwen35_rope(0.5),
        },
        changes={
            "what rotates": {"rope_parameters": qwen35_rope(0.25)},
            "base": {"rope_parameters": qwen35_rope(0.5, 20000.0)},
            "epsilon": {"rms_norm_eps": 0.03},
        },
    ),
    "qwen35-wide": Family(
        name="Qwen3_5",
        config="Qwen3_5Text",
        architecture="qwen35",
        options={
            **RECALLING,
            "rms_norm_eps": 1e-3,
            "linear_num_value_heads": 2,
            "linear_key_head_dim": 24,
            "linear_value_head_dim": 48,
            "linear_conv_kernel_dim": 3,
            "layer_types": ["linear_attention"] * 3 + ["full_attention"],
            "rope_parameters": qwen35_rope(0.25),
            "tie_word_embeddings": True,
        },
        not_in_llama_cpp="its heads' keys and values have the same length",
    ),
    "kimi-linear": Family(
        name="KimiLinear",
        architecture="kimi-linear",
        options={**CHANNELS, "rms_norm_eps": 1e-5, "mlp_layer_types": ["dense"] * 4},
        changes={"epsilon": {"rms_norm_eps": 0.03}},
    ),
    "kimi-linear-wide": Family(
        name="KimiLinear",
        architecture="kimi-linear",
        options={
            **CHANNELS,
            "rms_norm_eps": 1e-5,
            "q_lora_rank": 64,
            "linear_head_dim": 64,
            "linear_conv_kernel_dim": 3,
            "layer_types": ["full_attention", *["linear_attention"] * 3],
            "mlp_layer_types": ["dense"] * 4,
        },
        not_in_llama_cpp="it takes models without compressed queries only",
    ),
}
