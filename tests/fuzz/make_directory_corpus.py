"""Writes the corpora of fuzz_safetensors and fuzz_hf_config: one file for each thing that there is.

The configs of the families are those that transformers writes for a small model.

python tests/fuzz/make_directory_corpus.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from akunu import _core

CORPUS = Path(__file__).parent / "corpus"

_TINY = {
    "hidden_size": 8,
    "intermediate_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 4,
    "vocab_size": 9,
    "max_position_embeddings": 64,
    "rms_norm_eps": 1e-5,
}


def safetensors(header: object, data: bytes, spaces: int = 0) -> bytes:
    text = (header if isinstance(header, str) else json.dumps(header)).encode() + b" " * spaces
    return len(text).to_bytes(8, "little") + text + data


def entry(dtype: str, shape: list[int], begin: int, end: int) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


FILES: dict[str, bytes] = {
    "empty": safetensors({}, b""),
    "one": safetensors({"a": entry("F32", [2, 2], 0, 16)}, bytes(range(16)), 5),
    "metadata": safetensors(
        {"__metadata__": {"format": "pt"}, "a.weight": entry("BF16", [3], 0, 6)}, bytes(6)
    ),
    "several": safetensors(
        {
            "b": entry("F16", [1, 2], 4, 8),
            "a": entry("U8", [4], 0, 4),
            "none": entry("F32", [0, 3], 8, 8),
            "single": entry("I64", [], 8, 16),
            "fours": entry("F4", [2, 2], 16, 18),
            "eights": entry("F8_E4M3", [2], 18, 20),
        },
        bytes(20),
    ),
    "escapes": safetensors(
        '{"\\u00e4\\ud83d\\ude00\\n":{"dtype":"I8","shape":[1],"data_offsets":[0,1]}}', b"x"
    ),
    "numbers": safetensors('{"a":{"dtype":"I8","shape":[1e0],"data_offsets":[0.0,1]}}', b"x"),
}

CONFIGS: dict[str, dict[str, Any]] = {
    "llama": {**_TINY, "model_type": "llama", "rope_theta": 1e4, "hidden_act": "silu"},
    "linear": {
        **_TINY,
        "model_type": "mistral",
        "sliding_window": None,
        "rope_scaling": {"type": "linear", "factor": 2.0},
    },
    "llama3": {
        **_TINY,
        "model_type": "llama",
        "rope_parameters": {
            "rope_type": "llama3",
            "rope_theta": 500000.0,
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 32,
        },
    },
    "yarn": {
        **_TINY,
        "model_type": "qwen3",
        "rope_scaling": {
            "rope_type": "yarn",
            "factor": 4.0,
            "original_max_position_embeddings": 16,
            "beta_fast": 32,
            "mscale": 1.0,
            "mscale_all_dim": 0.5,
        },
        "quantization": {
            "group_size": 64,
            "bits": 4,
            "mode": "affine",
            "model.layers.0.mlp.up_proj": {"group_size": 32, "bits": 6},
        },
    },
    "dynamic": {
        **_TINY,
        "model_type": "qwen2",
        "use_sliding_window": False,
        "layer_types": ["full_attention"] * 2,
        "rope_scaling": {"type": "dynamic", "factor": 2.0},
        "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
    },
    "longrope": {
        **_TINY,
        "model_type": "phi3",
        "sliding_window": 16,
        "original_max_position_embeddings": 16,
        "rope_scaling": {"type": "longrope", "short_factor": [1.0, 1.5], "long_factor": [2, 4.0]},
    },
    "windows": {
        **_TINY,
        "model_type": "qwen3",
        "use_sliding_window": True,
        "sliding_window": 16,
        "max_window_layers": 1,
        "rope_parameters": {"rope_type": "yarn", "original_max_position_embeddings": 16},
    },
    "gemma2": {
        **_TINY,
        "model_type": "gemma2",
        "sliding_window": 16,
        "query_pre_attn_scalar": 4,
        "attn_logit_softcapping": 50.0,
        "final_logit_softcapping": None,
        "hidden_activation": "gelu_pytorch_tanh",
    },
    "gemma3": {
        "model_type": "gemma3",
        "text_config": {
            **_TINY,
            "model_type": "gemma3_text",
            "layer_types": ["sliding_attention", "full_attention"],
            "sliding_window": 16,
            "rope_parameters": {
                "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
                "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
            },
        },
        "vision_config": {"a": [1, "b", None, True, {"c": -1.5e-3}]},
    },
}


def of_transformers_too() -> set[str]:
    """Values of model_type that transformers knows, too."""
    from transformers import CONFIG_MAPPING

    known = {name for family in _core.families() for name in family["model_types"]}
    return known & set(CONFIG_MAPPING)


def of_transformers(model_type: str) -> dict[str, Any]:
    from transformers import AutoConfig

    numbers = {key: value for key, value in _TINY.items() if key != "rms_norm_eps"}
    # Phi-3's padding is a token beyond such a small vocabulary.
    made = AutoConfig.for_model(model_type, **numbers, pad_token_id=0)
    config: dict[str, Any] = made.to_diff_dict()
    del config["transformers_version"]
    return config


def main() -> None:
    for folder in ("safetensors", "hf_config"):
        (CORPUS / folder).mkdir(parents=True, exist_ok=True)
    for name, data in FILES.items():
        (CORPUS / "safetensors" / name).write_bytes(data)
    for name, config in CONFIGS.items():
        (CORPUS / "hf_config" / name).write_text(json.dumps(config, indent=1))
    for name in sorted(of_transformers_too()):
        (CORPUS / "hf_config" / name).write_text(json.dumps(of_transformers(name), indent=1))


if __name__ == "__main__":
    main()
