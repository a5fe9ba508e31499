"""The oracle: Hugging Face transformers on PyTorch, float32, with the weights of a `ModelCase`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from numpy.typing import NDArray
from random_models import ModelSpec, Weights

_CLASSES: dict[str, tuple[Any, Any]] = {
    "llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM),
    "qwen2": (transformers.Qwen2Config, transformers.Qwen2ForCausalLM),
    "qwen3": (transformers.Qwen3Config, transformers.Qwen3ForCausalLM),
    "phi3": (transformers.Phi3Config, transformers.Phi3ForCausalLM),
    "gemma": (transformers.GemmaConfig, transformers.GemmaForCausalLM),
    "gemma2": (transformers.Gemma2Config, transformers.Gemma2ForCausalLM),
    "gemma3": (transformers.Gemma3TextConfig, transformers.Gemma3ForCausalLM),
}


def _rope_parameters(spec: ModelSpec) -> dict[str, Any]:
    if spec.rope_factors is not None:
        return {
            "rope_type": "llama3",
            "rope_theta": spec.rope_theta,
            "factor": spec.rope_factors.factor,
            "low_freq_factor": spec.rope_factors.low_freq_factor,
            "high_freq_factor": spec.rope_factors.high_freq_factor,
            "original_max_position_embeddings": spec.rope_factors.original_context,
        }
    if spec.rope_linear_factor != 1.0:
        return {
            "rope_type": "linear",
            "rope_theta": spec.rope_theta,
            "factor": spec.rope_linear_factor,
        }
    return {"rope_type": "default", "rope_theta": spec.rope_theta}


def _of_llama(spec: ModelSpec) -> dict[str, Any]:
    # A switch for the biases of all four projections of attention, and one for those of the
    # feed-forward network; qwen2 always has three.
    return {
        "hidden_act": "silu",
        "attention_bias": spec.output_bias,
        "mlp_bias": spec.ffn_bias,
    }


def _of_gemma(spec: ModelSpec) -> dict[str, Any]:
    if spec.architecture == "gemma":
        return {"hidden_act": "gelu_pytorch_tanh"}
    scale = spec.attention_scale or spec.head_dim**-0.5
    options: dict[str, Any] = {
        "hidden_activation": "gelu_pytorch_tanh",
        "query_pre_attn_scalar": round(scale**-2),
        "sliding_window": spec.window,
        "layer_types": [
            "sliding_attention" if windowed else "full_attention" for windowed in spec.windowed
        ],
        "attn_logit_softcapping": spec.attention_soft_cap,
        "final_logit_softcapping": spec.logit_soft_cap,
    }
    if spec.architecture == "gemma3":
        theta = spec.windowed_rope_theta or 10000.0
        options["rope_parameters"] = {
            "full_attention": _rope_parameters(spec),
            "sliding_attention": {"rope_type": "default", "rope_theta": theta},
        }
    return options


def _fused(weights: Weights) -> Weights:
    """Phi-3's: Q, K and V in one tensor, gate and up in another."""
    wholes = {"q_proj": "qkv_proj", "k_proj": "qkv_proj", "v_proj": "qkv_proj"}
    wholes |= {"gate_proj": "gate_up_proj", "up_proj": "gate_up_proj"}
    parts: dict[str, list[NDArray[np.float32]]] = {}
    for name, data in weights.items():
        before, _, kind = name.removesuffix(".weight").rpartition(".")
        whole = f"{before}.{wholes[kind]}.weight" if kind in wholes else name
        parts.setdefault(whole, []).append(data)
    return {name: np.concatenate(data) for name, data in parts.items()}


def load(spec: ModelSpec, weights: Weights) -> Any:
    """A causal language model in evaluation mode; every weight is ours or this raises."""
    config_class, model_class = _CLASSES[spec.architecture]
    options: dict[str, Any] = {"rope_parameters": _rope_parameters(spec)}
    if spec.is_gemma:
        options |= _of_gemma(spec)
        # Ours are what the norms multiply by; theirs lack the 1. Of numbers near 1 no bit is lost.
        weights = {
            name: data - np.float32(1) if "norm" in name else data for name, data in weights.items()
        }
    else:
        options |= _of_llama(spec) if spec.architecture == "llama" else {"hidden_act": "silu"}
    if spec.architecture == "phi3":
        weights = _fused(weights)
    config = config_class(
        vocab_size=spec.vocab_size,
        hidden_size=spec.dim,
        intermediate_size=spec.ffn_dim,
        num_hidden_layers=spec.n_layers,
        num_attention_heads=spec.n_heads,
        num_key_value_heads=spec.n_kv_heads,
        head_dim=spec.head_dim,
        max_position_embeddings=spec.context_length,
        rms_norm_eps=spec.norm_epsilon,
        tie_word_embeddings=spec.tied,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=None,
        attn_implementation="eager",
        dtype=torch.float32,
        **options,
    )
    model = model_class(config).eval()
    state = {name: torch.from_numpy(data) for name, data in weights.items()}
    if spec.tied:
        state["lm_head.weight"] = state["model.embed_tokens.weight"]
    model.load_state_dict(state, strict=True)
    return model


def save(model: Any, folder: Path, dtype: str) -> None:
    """Save a model as a directory, its weights rounded to a type of torch."""
    model.to(getattr(torch, dtype)).save_pretrained(folder)


def from_directory(folder: Path) -> Any:
    """The model of a directory, computed in float32."""
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    )
    return model.eval()


def logits(model: Any, tokens: Sequence[int], *, mask_offset: int = 0) -> NDArray[np.float32]:
    """Teacher-forced logits `[n, vocab_size]`; `mask_offset` shifts the causal mask, a mistake."""
    n = len(tokens)
    seen = torch.arange(n)[None, :] <= torch.arange(n)[:, None] + mask_offset
    seen[0, 0] = True
    with torch.inference_mode():
        if mask_offset == 0:
            out = model(input_ids=torch.tensor([list(tokens)]), use_cache=False)
        else:
            out = model(
                input_ids=torch.tensor([list(tokens)]),
                attention_mask=_masks(model.config, seen),
                use_cache=False,
            )
    assert out.logits.dtype == torch.float32
    result: NDArray[np.float32] = out.logits[0].numpy()
    return result


def _masks(config: Any, seen: Any) -> Any:
    """The mask of `seen` as the model takes it: two of them where some layers have a window."""

    def mask(visible: Any) -> Any:
        return torch.zeros(seen.shape).masked_fill(~visible, float("-inf"))[None, None]

    window = getattr(config, "sliding_window", None)
    if "sliding_attention" not in (getattr(config, "layer_types", None) or ()):
        return mask(seen)
    n = len(seen)
    recent = torch.arange(n)[None, :] > torch.arange(n)[:, None] - window
    return {"full_attention": mask(seen), "sliding_attention": mask(seen & recent)}


def greedy(
    model: Any, prompt: Sequence[int], n: int, stop_ids: Sequence[int]
) -> tuple[list[int], NDArray[np.float32]]:
    """Up to `n` most likely tokens, the stop token with them, and the logits of each."""
    with torch.inference_mode():
        out = model.generate(
            torch.tensor([list(prompt)]),
            max_new_tokens=n,
            do_sample=False,
            eos_token_id=list(stop_ids),
            pad_token_id=stop_ids[0],
            return_dict_in_generate=True,
            output_logits=True,
        )
    tokens: list[int] = out.sequences[0, len(prompt) :].tolist()
    return tokens, torch.cat(out.logits).numpy()
