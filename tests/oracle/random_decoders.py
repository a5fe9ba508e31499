"""Small random models of transformers, one per dense family, saved as directories with a tokenizer.

    folder = save(tmp_path / "granite", model_of("granite"))

`FAMILIES` says what a model of a family is, and what of its config.json must be felt: each of
`changes` makes another model of the same tensors. A family's golden values may describe it, too
(`described`); then nothing else has to.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
import transformers
from gguf.quants import dequantize, quantize
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).parents[1] / "models"))

import hf_directory
from dense_golden import VOCAB, descriptions, tensor_of
from random_family import EPSILON, GRANITE, GRANITE_CHANGES, LATENT, SIZES, WIDE, Family
from random_recurrent import RECURRENT

# A pattern that begins with a layer that sees everything, unlike any family's own.
_MIXED = ["full_attention", "sliding_attention", "sliding_attention", "full_attention"]


ALPHA: dict[str, Any] = {
    "rope_type": "dynamic",
    "alpha": 50.0,
    "rope_theta": 10000.0,
    "factor": 1.0,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
    "beta_fast": 32,
    "beta_slow": 1,
}
_GROWING: dict[str, Any] = {
    "rope_type": "yarn",
    "rope_theta": 10000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 64,
    "beta_fast": 16.0,
    "beta_slow": 1.0,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
    "llama_4_scaling_beta": 0.3,
}
_DENSE: dict[str, Any] = {"first_k_dense_replace": 4, "rms_norm_eps": 1e-6}
LATENT_YARN: dict[str, Any] = {
    "rope_type": "yarn",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "original_max_position_embeddings": 64,
    "beta_fast": 8.0,
    "beta_slow": 1.0,
    "mscale": 0.707,
    "mscale_all_dim": 0.707,
}


def _gemma4_rope(
    part: float, base: float = 10000.0, windowed: float = 500.0, factor: float = 1.0
) -> dict[str, Any]:
    return {
        "full_attention": {
            "rope_type": "proportional",
            "partial_rotary_factor": part,
            "rope_theta": base,
            **({} if factor == 1 else {"factor": factor}),
        },
        "sliding_attention": {"rope_type": "default", "rope_theta": windowed},
    }


_WINDOW_FIRST = ["sliding_attention", "full_attention"] * 2
# Heads of windowed layers are 32 numbers, of others 64.
GEMMA4: dict[str, Any] = {
    **EPSILON,
    **WIDE,
    "global_head_dim": 64,
    "layer_types": _WINDOW_FIRST,
    "sliding_window": 70,
    "rope_parameters": _gemma4_rope(0.25),
    "hidden_size_per_layer_input": 0,
    "vocab_size_per_layer_input": VOCAB,
    "final_logit_softcapping": 20.0,
}

_WITHOUT_LAYER_EMBEDDINGS = {name: each for name, each in GEMMA4.items() if "per_layer" not in name}

_GEMMA3N: dict[str, Any] = {
    **EPSILON,
    **WIDE,
    "layer_types": _WINDOW_FIRST,
    "sliding_window": 70,
    "rope_parameters": {
        "full_attention": {"rope_type": "default", "rope_theta": 10000.0},
        "sliding_attention": {"rope_type": "default", "rope_theta": 500.0},
    },
    "num_kv_shared_layers": 2,
    "hidden_size_per_layer_input": 32,
    "vocab_size_per_layer_input": VOCAB - 20,
    "laurel_rank": 32,
    "activation_sparsity_pattern": [0.6, 0.8, 0.3, 0.0],
    "final_logit_softcapping": 20.0,
}
_GEMMA3N_ROPE: dict[str, Any] = _GEMMA3N["rope_parameters"]

FAMILIES: dict[str, Family] = {
    "granite": Family(
        name="Granite",
        architecture="granite",
        options={**EPSILON, **GRANITE, "attention_bias": True, "mlp_bias": True},
        changes=GRANITE_CHANGES,
    ),
    "granite-4": Family(
        name="GraniteMoeHybrid",
        architecture="granite",
        options={
            **EPSILON,
            **GRANITE,
            "num_local_experts": 0,
            "num_experts_per_tok": 0,
            "shared_intermediate_size": 160,
            "mamba_n_heads": 6,
            "layer_types": ["attention"] * 4,
            "position_embedding_type": "rope",
        },
        changes={**GRANITE_CHANGES, "no positions": {"position_embedding_type": "nope"}},
    ),
    "granite-4-nope": Family(
        name="GraniteMoeHybrid",
        architecture="granite",
        options={
            **EPSILON,
            **GRANITE,
            "num_local_experts": 0,
            "num_experts_per_tok": 0,
            "shared_intermediate_size": 160,
            "mamba_n_heads": 6,
            "layer_types": ["attention"] * 4,
            "position_embedding_type": None,
        },
        changes={"positions": {"position_embedding_type": "rope"}},
    ),
    "smollm3": Family(
        name="SmolLM3",
        architecture="smollm3",
        options=EPSILON,
        changes={
            "every layer rotates": {"no_rope_layers": [1, 1, 1, 1]},
            "other layers": {"no_rope_layers": [0, 1, 1, 1]},
        },
    ),
    "olmo2": Family(
        name="Olmo2",
        architecture="olmo2",
        options={**EPSILON, "attention_bias": False},
        changes={"epsilon": {"rms_norm_eps": 1e-5}},
    ),
    "olmo3": Family(
        name="Olmo3",
        architecture="olmo2",
        options={
            **EPSILON,
            "sliding_window": 70,
            "rope_parameters": {
                "full_attention": {
                    "rope_type": "yarn",
                    "rope_theta": 10000.0,
                    "factor": 4.0,
                    "original_max_position_embeddings": 128,
                },
                "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
            },
        },
        changes={
            "window": {"sliding_window": 69},
            "other layers": {"layer_types": _MIXED},
            "not scaled": {
                "rope_parameters": {
                    "full_attention": {"rope_type": "default", "rope_theta": 10000.0},
                    "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
                }
            },
            "windowed base": {
                "rope_parameters": {
                    "full_attention": {
                        "rope_type": "yarn",
                        "rope_theta": 10000.0,
                        "factor": 4.0,
                        "original_max_position_embeddings": 128,
                    },
                    "sliding_attention": {"rope_type": "default", "rope_theta": 20000.0},
                }
            },
        },
    ),
    "mistral": Family(
        name="Mistral", architecture="llama", options={**EPSILON, **WIDE, "sliding_window": None}
    ),
    "ministral": Family(
        name="Ministral",
        architecture="llama",
        options={**EPSILON, **WIDE, "sliding_window": 70, "layer_types": _MIXED},
        changes={"window": {"sliding_window": 71}},
        not_in_llama_cpp="it lets every layer of llama see everything",
    ),
    "ministral3": Family(
        name="Ministral3",
        architecture="mistral3",
        options={**EPSILON, **WIDE, "sliding_window": None, "rope_parameters": _GROWING},
        changes={
            "growth": {"rope_parameters": {**_GROWING, "llama_4_scaling_beta": 0.0}},
            "length": {"rope_parameters": {**_GROWING, "original_max_position_embeddings": 128}},
        },
    ),
    "glm4": Family(
        name="Glm4",
        architecture="glm4",
        options={**EPSILON, **WIDE, "attention_bias": True},
        changes={
            "other half": {
                "partial_rotary_factor": 1.0,
                "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
            }
        },
    ),
    "seed-oss": Family(
        name="SeedOss",
        architecture="seed_oss",
        options={**EPSILON, **WIDE, "attention_bias": True},
    ),
    "ernie4.5": Family(
        name="Ernie4_5",
        architecture="ernie4_5",
        options={**EPSILON, **WIDE, "use_bias": False},
    ),
    "hunyuan": Family(
        name="HunYuanDenseV1",
        architecture="hunyuan-dense",
        options={
            **EPSILON,
            **WIDE,
            "rope_parameters": ALPHA,
        },
        changes={
            "alpha": {"rope_parameters": {**ALPHA, "alpha": 1.0}},
        },
    ),
    "exaone4": Family(
        name="Exaone4",
        architecture="exaone4",
        options={
            **EPSILON,
            "sliding_window": None,
            "layer_types": ["full_attention"] * 4,
        },
    ),
    "exaone4-windows": Family(
        name="Exaone4",
        architecture="exaone4",
        options={
            **EPSILON,
            **WIDE,
            "sliding_window": 70,
            "rope_parameters": {
                "rope_type": "llama3",
                "rope_theta": 10000.0,
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 128,
            },
        },
        changes={
            "window": {"sliding_window": 71},
            "other layers": {"layer_types": _MIXED},
            "all layers": {"sliding_window": None, "layer_types": ["full_attention"] * 4},
            "not scaled": {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}},
        },
        not_in_llama_cpp="it takes windows of models with 64 layers only",
    ),
    "starcoder2": Family(
        name="Starcoder2",
        architecture="starcoder2",
        options={"norm_epsilon": 0.03, "tie_word_embeddings": False},
        changes={"epsilon": {"norm_epsilon": 1e-5}},
    ),
    "starcoder2-windows": Family(
        name="Starcoder2",
        architecture="starcoder2",
        options={"norm_epsilon": 0.03, "sliding_window": 70, "use_bias": False},
        changes={"window": {"sliding_window": 71}},
        not_in_llama_cpp="it lets every layer see everything",
    ),
    "command-r": Family(
        name="Cohere",
        architecture="command-r",
        options={"layer_norm_eps": 0.03, "logit_scale": 0.3},
        changes={"logit_scale": {"logit_scale": 0.29}, "epsilon": {"layer_norm_eps": 1e-5}},
    ),
    "deepseek2": Family(
        name="DeepseekV2",
        architecture="deepseek2",
        options={**LATENT, **_DENSE, "rope_parameters": LATENT_YARN},
        changes={
            "not scaled": {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}},
            "attention": {"rope_parameters": {**LATENT_YARN, "mscale": 0.5, "mscale_all_dim": 0.5}},
            "what rotates": {"rope_parameters": {**LATENT_YARN, "mscale": 1.5}},
        },
    ),
    "deepseek2-lite": Family(
        name="DeepseekV2",
        architecture="deepseek2",
        options={**LATENT, **_DENSE, "q_lora_rank": None, "attention_bias": True},
        changes={"base": {"rope_parameters": {"rope_type": "default", "rope_theta": 20000.0}}},
        not_in_llama_cpp="it takes models without compressed queries of 27 layers only",
    ),
    "deepseek3": Family(
        name="DeepseekV3",
        architecture="deepseek2",
        options={
            **LATENT,
            **_DENSE,
            "num_mtp_layers": 0,
            "rope_parameters": {
                **LATENT_YARN,
                "factor": 4.0,
                "mscale": 1.0,
                "mscale_all_dim": 1.0,
            },
        },
        changes={
            "halves": {"rope_interleave": False},
            "attention": {"rope_parameters": LATENT_YARN},
        },
    ),
    "minicpm3": Family(
        name="MiniCPM3",
        architecture="minicpm3",
        options={**LATENT, "v_head_dim": 16, "rms_norm_eps": 1e-6, "tie_word_embeddings": True},
        changes={
            "embeddings": {"scale_emb": 10},
            "residual": {"scale_depth": 1.3},
            "logits": {"dim_model_base": 128},
            "base": {"rope_parameters": {"rope_type": "default", "rope_theta": 20000.0}},
        },
    ),
    "gemma4": Family(
        name="Gemma4",
        config="Gemma4Text",
        architecture="gemma4",
        options={**GEMMA4, "attention_k_eq_v": True, "num_global_key_value_heads": 3},
        changes={
            "window": {"sliding_window": 69},
            "what rotates": {"rope_parameters": _gemma4_rope(0.5)},
            "base": {"rope_parameters": _gemma4_rope(0.25, 20000.0)},
            "windowed base": {"rope_parameters": _gemma4_rope(0.25, windowed=20000.0)},
            "scaled": {"rope_parameters": _gemma4_rope(0.25, factor=4.0)},
            "cap": {"final_logit_softcapping": None},
            "epsilon": {"rms_norm_eps": 1e-5},
        },
    ),
    "gemma4-small": Family(
        name="Gemma4",
        config="Gemma4Text",
        architecture="gemma4",
        options={
            **GEMMA4,
            "num_hidden_layers": 6,
            "layer_types": [*_WINDOW_FIRST, *_WINDOW_FIRST[:2]],
            "num_kv_shared_layers": 2,
            "use_double_wide_mlp": True,
            "hidden_size_per_layer_input": 32,
            "final_logit_softcapping": None,
        },
        changes={
            "window": {"sliding_window": 69},
            "cap": {"final_logit_softcapping": 20.0},
            "epsilon": {"rms_norm_eps": 1e-5},
        },
    ),
    "gemma4-unified": Family(
        name="Gemma4Unified",
        config="Gemma4UnifiedText",
        architecture="gemma4",
        options=_WITHOUT_LAYER_EMBEDDINGS,
        changes={"window": {"sliding_window": 69}},
    ),
    "gemma3n": Family(
        name="Gemma3n",
        config="Gemma3nText",
        architecture="gemma3n",
        options=_GEMMA3N,
        changes={
            "window": {"sliding_window": 69},
            "base": {
                "rope_parameters": {
                    **_GEMMA3N_ROPE,
                    "full_attention": {"rope_type": "default", "rope_theta": 20000.0},
                }
            },
            "windowed base": {
                "rope_parameters": {
                    **_GEMMA3N_ROPE,
                    "sliding_attention": {"rope_type": "default", "rope_theta": 20000.0},
                }
            },
            "cuts": {"activation_sparsity_pattern": [0.6, 0.8, 0.35, 0.0]},
            "no cuts": {"activation_sparsity_pattern": 0.0},
            "stream": {"altup_active_idx": 1},
            "not scaled": {"altup_correct_scale": False},
            "cap": {"final_logit_softcapping": None},
            "epsilon": {"rms_norm_eps": 1e-5},
        },
        not_in_llama_cpp="it divides a variance by n - 1, and cuts ten layers whatever a file says",
    ),
    "gemma3n-wide": Family(
        name="Gemma3n",
        config="Gemma3nText",
        architecture="gemma3n",
        options={
            **_GEMMA3N,
            "altup_active_idx": 2,
            "num_kv_shared_layers": 0,
            "intermediate_size": [160, 192, 160, 224],
            "vocab_size_per_layer_input": VOCAB,
            "final_logit_softcapping": 25.0,
        },
        changes={"lengths": {"activation_sparsity_pattern": [0.8] * 4}},
        not_in_llama_cpp="it divides a variance by n - 1, and cuts ten layers whatever a file says",
    ),
    "cohere2": Family(
        name="Cohere2",
        architecture="cohere2",
        options={"layer_norm_eps": 0.03, "logit_scale": 0.3, "sliding_window": 70},
        changes={
            "logit_scale": {"logit_scale": 0.29},
            "window": {"sliding_window": 69},
            "other layers": {"layer_types": _MIXED},
        },
    ),
    **RECURRENT,
    **{name: Family(**described) for name, described in descriptions().items()},
}


def model_of(family: str, **more: Any) -> Any:
    """A model in evaluation mode."""
    described = FAMILIES[family]
    config_class = getattr(transformers, f"{described.config or described.name}Config")
    options = {**SIZES, **described.options, **more}
    for key in described.without:
        del options[key]
    config = config_class(**options, attn_implementation="eager")
    model = getattr(transformers, f"{described.name}ForCausalLM")(config).eval()
    with torch.no_grad():
        stored = dict(model.named_parameters()) | stored_buffers(model)
        for name, weight in stored.items():
            weight.copy_(torch.from_numpy(numbers_of(name, tuple(weight.shape))))
    return model


def numbers_of(name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """The numbers of a tensor of transformers; of Kimi-Linear it joins three convolutions."""
    if not name.endswith("self_attn.conv1d.weight"):
        return tensor_of(name, shape)
    of_each = (shape[0] // 3, *shape[1:])
    return np.concatenate(
        [tensor_of(name.replace("conv1d", f"{letter}_conv1d"), of_each) for letter in "qkv"]
    )


def stored_buffers(model: Any) -> dict[str, Any]:
    """Buffers that are saved as weights are (Gemma 4's `layer_scalar`)."""
    names = model.state_dict().keys()
    return {name: each for name, each in model.named_buffers() if name in names}


def rounded(model: Any, number_format: str) -> Any:
    """The model, its matrices as a format of GGUF's blocks has rounded them."""
    kind = gguf.GGMLQuantizationType[number_format]
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim == 2 and weight.shape[1] % 32 == 0:
                stored = quantize(weight.detach().numpy(), kind)
                weight.copy_(torch.from_numpy(dequantize(stored, kind).copy()))
    return with_keys_apart(model)


def with_keys_apart(model: Any) -> Any:
    """Of Kimi-Linear, what makes keys of latents as halves: rows of 24 numbers hold no blocks."""
    if model.config.model_type != "kimi_linear":
        return model
    n_heads, plain = model.config.num_attention_heads, model.config.qk_nope_head_dim
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith("kv_b_proj.weight"):
                keys = weight.view(n_heads, -1, weight.shape[1])[:, :plain]
                keys.copy_(keys.half().float())
    return model


def save(folder: Path, model: Any, dtype: str = "float32") -> Path:
    """Save a model, its weights rounded to a type of torch, and a tokenizer."""
    model.to(getattr(torch, dtype)).save_pretrained(folder)
    hf_directory.write_tokenizer(folder, VOCAB)
    return folder


def changed(folder: Path, target: Path, changes: dict[str, Any]) -> Path:
    """The same directory with other keys in its config.json."""
    target.mkdir()
    for file in folder.iterdir():
        if file.name != "config.json":
            (target / file.name).symlink_to(file)
    config = json.loads((folder / "config.json").read_text())
    (target / "config.json").write_text(json.dumps(config | changes))
    return target
