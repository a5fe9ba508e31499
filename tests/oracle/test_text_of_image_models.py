"""Directories of models that read images: the text model of each is read, and gives transformers'
logits; what belongs to images is named in a note.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import hf_directory
import numpy as np
import random_decoders as rnd
import torch
import transformers
from dense_golden import TOKENS, VOCAB, tensor_of
from engine import BOUND_F32_CACHE, opened, relative_error
from random_recurrent import RECALLING, qwen35_rope
from safetensors.torch import load_file, save_file

pytestmark = pytest.mark.oracle

_VISION: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "image_size": 28,
    "patch_size": 14,
}
# Qwen's and GLM's towers have names of their own for these.
_QWEN_VISION: dict[str, Any] = {
    "depth": 1,
    "embed_dim": 32,
    "hidden_size": 96,
    "num_heads": 2,
    "patch_size": 14,
}
_QWEN25_VISION = _QWEN_VISION | {"hidden_size": 32, "intermediate_size": 48, "out_hidden_size": 96}
_QWEN3_VISION = _QWEN25_VISION | {"deepstack_visual_indexes": [0], "num_position_embeddings": 4}
_GLM_VISION = _QWEN25_VISION | {"image_size": 28}
_SECTIONS = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 3, 3]}
_HALVES = {**_SECTIONS, "partial_rotary_factor": 0.5, "mrope_section": [2, 2, 4]}
_EPSILON: dict[str, Any] = {"rms_norm_eps": 0.03}
_QWEN35_VISION = _QWEN25_VISION | {"num_position_embeddings": 4}
_QWEN35: dict[str, Any] = {
    **RECALLING,
    "layer_types": ["linear_attention", "full_attention"] * 2,
    "rope_parameters": qwen35_rope(0.5),
}
_EXPERTS: dict[str, Any] = {"num_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 64}

# The class of transformers, the text model's family, its numbers, and the tower's.
MODELS: dict[str, tuple[str, str, dict[str, Any], dict[str, Any]]] = {
    "qwen2_vl": ("Qwen2VL", "", {"rope_parameters": _SECTIONS, **_EPSILON}, _QWEN_VISION),
    "qwen2_5_vl": (
        "Qwen2_5_VL",
        "",
        {"rope_parameters": _SECTIONS, **_EPSILON},
        _QWEN25_VISION,
    ),
    "qwen3_vl": (
        "Qwen3VL",
        "",
        {
            "head_dim": 16,
            "rope_parameters": {**_SECTIONS, "mrope_interleaved": True},
            **_EPSILON,
        },
        _QWEN3_VISION,
    ),
    "qwen3_vl_moe": (
        "Qwen3VLMoe",
        "",
        {
            "head_dim": 16,
            "rope_parameters": {**_SECTIONS, "mrope_interleaved": True},
            **_EXPERTS,
            **_EPSILON,
        },
        _QWEN3_VISION,
    ),
    "qwen3_5": ("Qwen3_5", "", _QWEN35, _QWEN35_VISION),
    "qwen3_5_moe": ("Qwen3_5Moe", "", {**_QWEN35, **_EXPERTS}, _QWEN35_VISION),
    "glm4v": (
        "Glm4v",
        "",
        {
            "num_attention_heads": 3,
            "num_key_value_heads": 1,
            "rope_parameters": _HALVES,
            **_EPSILON,
        },
        _GLM_VISION,
    ),
    "glm4v_moe": (
        "Glm4vMoe",
        "",
        {
            "head_dim": 32,
            "rope_parameters": _HALVES,
            "n_routed_experts": 8,
            "num_experts_per_tok": 3,
            "moe_intermediate_size": 48,
            "n_group": 2,
            "topk_group": 1,
            **_EPSILON,
        },
        _GLM_VISION,
    ),
    "llava": ("Llava", "llama", _EPSILON, _VISION | {"model_type": "clip_vision_model"}),
    "llava of mistral": (
        "Llava",
        "mistral",
        _EPSILON,
        _VISION | {"model_type": "clip_vision_model"},
    ),
    "llava_next": (
        "LlavaNext",
        "mistral",
        _EPSILON,
        _VISION | {"model_type": "clip_vision_model"},
    ),
    "llava_onevision": (
        "LlavaOnevision",
        "qwen2",
        _EPSILON,
        _VISION | {"model_type": "siglip_vision_model"},
    ),
    "idefics3": ("Idefics3", "llama", _EPSILON, _VISION),
    "smolvlm": ("SmolVLM", "llama", _EPSILON, _VISION),
    "internvl": ("InternVL", "qwen3", _EPSILON | {"head_dim": 32}, _VISION),
    "aya_vision": (
        "AyaVision",
        "cohere2",
        {"layer_norm_eps": 0.03, "sliding_window": 24},
        _VISION | {"model_type": "siglip_vision_model"},
    ),
    "cohere2_vision": (
        "Cohere2Vision",
        "cohere2",
        {"layer_norm_eps": 0.03, "sliding_window": 24},
        _VISION | {"model_type": "siglip_vision_model"},
    ),
}


def model_of(name: str) -> Any:
    """A small random model with its encoder of images, in evaluation mode."""
    stem, family, text, vision = MODELS[name]
    numbers = {**rnd.SIZES, **text, **({"model_type": family} if family else {})}
    config = getattr(transformers, f"{stem}Config")(
        text_config=numbers,
        vision_config=vision,
        image_token_id=VOCAB - 1,
        attn_implementation="eager",
    )
    model = getattr(transformers, f"{stem}ForConditionalGeneration")(config).eval()
    with torch.no_grad():
        for key, weight in model.named_parameters():
            weight.copy_(torch.from_numpy(tensor_of(key, tuple(weight.shape))))
    return model


@pytest.mark.parametrize("name", MODELS)
def test_text_is_that_of_transformers(tmp_path: Path, name: str) -> None:
    model = model_of(name)
    with torch.no_grad():
        exact = model(torch.tensor([TOKENS])).logits[0].numpy()
    if model.config.text_config.model_type == "cohere2":
        # transformers leaves the text model's factor out here; with it the text is Cohere 2's.
        exact = exact * model.config.text_config.logit_scale
    folder = tmp_path / "model"
    model.save_pretrained(folder)
    hf_directory.write_tokenizer(folder, VOCAB)
    kept = json.loads((folder / "config.json").read_text())
    assert {"text_config", "vision_config"} <= kept.keys()
    with opened(folder, kv_type="f32") as ours:
        is_left_out = any("encoder of images" in note for note in ours.notes)
        assert is_left_out != ours.reads_images, ours.notes
        assert relative_error(ours.logits(TOKENS), exact) <= BOUND_F32_CACHE
        np.testing.assert_array_equal(ours.logits(TOKENS[:7]), ours.logits(TOKENS)[:7])


def test_old_keys_of_qwen2_vl_lie_beside_those_of_the_tower(tmp_path: Path) -> None:
    """As the files of 2024 have them: no `text_config`, `rope_scaling` of type mrope."""
    model = model_of("qwen2_vl")
    with torch.no_grad():
        exact = model(torch.tensor([TOKENS])).logits[0].numpy()
    folder = tmp_path / "model"
    model.save_pretrained(folder)
    hf_directory.write_tokenizer(folder, VOCAB)
    config = json.loads((folder / "config.json").read_text())
    text = config.pop("text_config")
    text.pop("rope_parameters")
    text |= {
        "model_type": "qwen2_vl",
        "rope_theta": 1e4,
        "rope_scaling": {"type": "mrope", "mrope_section": [2, 3, 3]},
    }
    (folder / "config.json").write_text(json.dumps(config | text))
    with opened(folder, kv_type="f32") as ours:
        assert relative_error(ours.logits(TOKENS), exact) <= BOUND_F32_CACHE


def test_stacks_of_qwen3_vl_lie_either_way(tmp_path: Path) -> None:
    """As published, experts' matrices are transposed; as transformers saves them, they are not."""
    saved = tmp_path / "saved"
    model_of("qwen3_vl_moe").save_pretrained(saved)
    hf_directory.write_tokenizer(saved, VOCAB)
    published = rnd.changed(saved, tmp_path / "published", {})
    (published / "model.safetensors").unlink()
    tensors = load_file(saved / "model.safetensors")
    turned = {
        key: data.transpose(1, 2).contiguous() if ".experts." in key else data
        for key, data in tensors.items()
    }
    assert any(turned[key].shape != tensors[key].shape for key in tensors)
    save_file(turned, published / "model.safetensors", {"format": "pt"})
    with opened(saved, kv_type="f32") as one, opened(published, kv_type="f32") as other:
        np.testing.assert_array_equal(one.logits(TOKENS), other.logits(TOKENS))
