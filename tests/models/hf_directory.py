"""Writes a `ModelSpec` and its weights as a Hugging Face directory.

    folder = write(tmp_path / "model", case.spec, case.weights, dtype="BF16", n_files=2)

Keys of config.json are those that transformers writes: 5.x has `rope_parameters`, 4.x `rope_theta`
and `rope_scaling`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from random_models import ModelSpec, Weights

DTYPES = ("F32", "F16", "BF16")

MODEL_TYPES = {"gemma3": "gemma3_text"}


def config_of(spec: ModelSpec, *, style: int = 5) -> dict[str, Any]:
    """The config.json of a model, as transformers of that version writes it."""
    config: dict[str, Any] = {
        "architectures": ["SomethingForCausalLM"],
        "attention_dropout": 0.0,
        "bos_token_id": spec.vocab_size - 1,
        "eos_token_id": spec.vocab_size - 1,
        "hidden_size": spec.dim,
        "initializer_range": 0.02,
        "intermediate_size": spec.ffn_dim,
        "max_position_embeddings": spec.context_length,
        "model_type": MODEL_TYPES.get(spec.architecture, spec.architecture),
        "num_attention_heads": spec.n_heads,
        "num_hidden_layers": spec.n_layers,
        "num_key_value_heads": spec.n_kv_heads,
        "head_dim": spec.head_dim,
        "rms_norm_eps": spec.norm_epsilon,
        "tie_word_embeddings": spec.tied,
        "torch_dtype": "float32",
        "transformers_version": "4.57.0" if style == 4 else "5.24.0",
        "use_cache": True,
        "vocab_size": spec.vocab_size,
    }
    if not spec.is_gemma:
        config["hidden_act"] = "silu"
    elif spec.architecture == "gemma":
        config["hidden_act"] = "gelu_pytorch_tanh"
    else:
        scale = spec.attention_scale or spec.head_dim**-0.5
        config |= {
            "hidden_activation": "gelu_pytorch_tanh",
            "query_pre_attn_scalar": round(scale**-2),
            "sliding_window": spec.window,
            "attn_logit_softcapping": spec.attention_soft_cap,
            "final_logit_softcapping": spec.logit_soft_cap,
        }
    return config | _rope(spec, style)


def _rope(spec: ModelSpec, style: int) -> dict[str, Any]:
    scaling: dict[str, Any] = {"rope_type": "default"}
    if spec.rope_factors is not None:
        scaling = {
            "rope_type": "llama3",
            "factor": spec.rope_factors.factor,
            "low_freq_factor": spec.rope_factors.low_freq_factor,
            "high_freq_factor": spec.rope_factors.high_freq_factor,
            "original_max_position_embeddings": spec.rope_factors.original_context,
        }
    elif spec.rope_linear_factor != 1.0:
        scaling = {"rope_type": "linear", "factor": spec.rope_linear_factor}
    layer_types = [
        "sliding_attention" if windowed else "full_attention" for windowed in spec.windowed
    ]
    windowed_theta = spec.windowed_rope_theta or 10000.0
    if style == 4:
        old = {"type" if key == "rope_type" else key: value for key, value in scaling.items()}
        config: dict[str, Any] = {"rope_theta": spec.rope_theta}
        config["rope_scaling"] = None if scaling["rope_type"] == "default" else old
        if spec.architecture == "gemma3":
            config |= {"rope_local_base_freq": windowed_theta, "sliding_window_pattern": 6}
        return config
    scaling["rope_theta"] = spec.rope_theta
    if spec.architecture != "gemma3":
        more = {"layer_types": layer_types} if spec.window else {}
        return {"rope_parameters": scaling, **more}
    return {
        "layer_types": layer_types,
        "rope_parameters": {
            "full_attention": scaling,
            "sliding_attention": {"rope_type": "default", "rope_theta": windowed_theta},
        },
    }


def stored(data: NDArray[np.float32], dtype: str) -> bytes:
    """The bytes of numbers in a format of safetensors."""
    if dtype == "BF16":  # rounded to even, of the upper half
        bits = data.view(np.uint32)
        return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16).tobytes()
    return data.astype({"F32": np.float32, "F16": np.float16}[dtype]).tobytes()


def write_safetensors(
    path: Path, tensors: Mapping[str, tuple[str, tuple[int, ...], bytes]]
) -> None:
    """Write tensors: name to format, shape and bytes."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, (dtype, shape, data) in tensors.items():
        end = at + len(data)
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for _, _, data in tensors.values():
            file.write(data)


def hf_weights(spec: ModelSpec, weights: Weights) -> Weights:
    """The weights as Hugging Face stores them: gemma's norms without the 1 that its code adds."""
    if not spec.is_gemma:
        return weights
    return {
        name: data - np.float32(1) if "norm" in name else data for name, data in weights.items()
    }


def write(
    folder: Path,
    spec: ModelSpec,
    weights: Weights,
    *,
    dtype: str = "F32",
    n_files: int = 1,
    style: int = 5,
    changes: Mapping[str, Any] | None = None,
) -> Path:
    """Write the directory; `changes`: keys of config.json to add or replace."""
    folder.mkdir(parents=True, exist_ok=True)
    config = config_of(spec, style=style) | dict(changes or {})
    (folder / "config.json").write_text(json.dumps(config))
    write_tokenizer(folder, spec.vocab_size)
    tensors = {
        name: (dtype, data.shape, stored(data, dtype))
        for name, data in hf_weights(spec, weights).items()
    }
    if n_files == 1:
        write_safetensors(folder / "model.safetensors", tensors)
        return folder
    index: dict[str, str] = {}
    for i in range(n_files):
        file_name = f"model-{i + 1:05}-of-{n_files:05}.safetensors"
        part = {name: tensors[name] for name in list(tensors)[i::n_files]}
        write_safetensors(folder / file_name, part)
        index |= dict.fromkeys(part, file_name)
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": 0}, "weight_map": index})
    )
    return folder


def write_tokenizer(folder: Path, vocab_size: int) -> None:
    """Byte-level BPE: 256 bytes, pairs of letters, and a last token that ends the text."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    characters = sorted(pre_tokenizers.ByteLevel.alphabet())
    letters = "etaoinshrdlu"
    pairs = [(a, b) for a in letters for b in letters][: vocab_size - 257]
    tokens = [*characters, *(a + b for a, b in pairs)]
    tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, pairs))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<|end|>", special=True, normalized=False)])
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"bos_token": "<|end|>", "eos_token": {"content": "<|end|>"}})
    )
