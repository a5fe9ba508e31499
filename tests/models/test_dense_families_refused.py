"""What config.json and keys of the dense families say that makes no sense, or is not here."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import hf_directory
import numpy as np
import pytest
from random_models import ModelCase, build

import akunu
from lines import each_line

Cases = Callable[..., ModelCase]

NONSENSE: dict[str, tuple[dict[str, Any], str]] = {
    "granite, no residual": (
        {"model_type": "granite", "residual_multiplier": 0},
        "config.json: residual_multiplier is 0; it must be above 0",
    ),
    "granite, a word": (
        {"model_type": "granite", "logits_scaling": "much"},
        'config.json: logits_scaling is "much"',
    ),
    "granite 4, another layer": (
        {
            "model_type": "granitemoehybrid",
            "layer_types": ["mamba1", "attention", "attention"],
            "shared_intermediate_size": 160,
        },
        'config.json: layer_types holds "mamba1"',
    ),
    "granite 4, positions": (
        {
            "model_type": "granitemoehybrid",
            "position_embedding_type": "alibi",
            "layer_types": ["attention"] * 3,
            "shared_intermediate_size": 160,
        },
        'config.json: position_embedding_type is "alibi"; akunu has "rope" and "nope"',
    ),
    "granite 4, no size": (
        {"model_type": "granitemoehybrid"},
        "config.json: shared_intermediate_size is missing",
    ),
    "smollm3, too few": (
        {"model_type": "smollm3", "no_rope_layers": [1, 0]},
        "config.json: no_rope_layers has 2 entries for 3 layers",
    ),
    "smollm3, no period": (
        {"model_type": "smollm3", "no_rope_layer_interval": 0},
        "config.json: no_rope_layer_interval is 0",
    ),
    "exaone4, a pattern": (
        {"model_type": "exaone4", "sliding_window": 64, "sliding_window_pattern": "LGL"},
        'config.json: sliding_window_pattern is "LGL"; akunu has a number, or',
    ),
    "cohere2, no window": (
        {"model_type": "cohere2", "sliding_window": None},
        "config.json: sliding_window is null; cohere2 is known with windows only",
    ),
    "cohere, norms of heads": (
        {"model_type": "cohere", "use_qk_norm": True},
        "config.json: use_qk_norm is true; it is not supported for cohere",
    ),
    "cohere, no scale": (
        {"model_type": "cohere", "logit_scale": -1.0},
        "config.json: logit_scale is -1.0; it must be above 0",
    ),
    "hunyuan, alpha": (
        {
            "model_type": "hunyuan_v1_dense",
            "rope_scaling": {"type": "dynamic", "alpha": 0, "factor": 1.0},
            "rope_parameters": None,
        },
        "config.json: rope_scaling.alpha is 0; it must be above 0",
    ),
    "ministral3, growth": (
        {
            "model_type": "ministral3",
            "rope_parameters": {
                "rope_type": "yarn",
                "factor": 4.0,
                "original_max_position_embeddings": 64,
                "llama_4_scaling_beta": -1.0,
            },
        },
        "config.json: rope_parameters.llama_4_scaling_beta is -1.0; it must be 0 or more",
    ),
    "starcoder2, activation": (
        {"model_type": "starcoder2", "hidden_act": "relu"},
        'config.json: hidden_act is "relu"; akunu has gelu_pytorch_tanh for starcoder2',
    ),
    "mistral3, no text": (
        {"model_type": "mistral3"},
        "config.json: text_config is missing",
    ),
    "llama, factors of others": (
        {"logit_scale": 0.5},
        "config.json: logit_scale is 0.5; it is not supported for llama",
    ),
}


@each_line("name", NONSENSE)
def test_what_a_config_cannot_mean_is_refused_by_its_key(
    model_case: Cases, tmp_path: Path, name: str
) -> None:
    changes, message = NONSENSE[name]
    case = model_case("llama-32")
    folder = hf_directory.write(tmp_path / "model", case.spec, case.weights, changes=changes)
    with pytest.raises(akunu.AkunuError, match=re.escape(message)):
        akunu.load(folder, device="cpu")


def test_a_directory_of_an_unknown_family_says_what_else_is_unknown(
    model_case: Cases, tmp_path: Path
) -> None:
    case = model_case("llama-32")
    weights = dict(case.weights)
    for layer in range(3):
        weights[f"model.layers.{layer}.mixer.x_proj.weight"] = np.zeros(8, np.float32)
        for expert in range(12):  # which other families have
            name = f"model.layers.{layer}.mlp.experts.{expert}.up_proj.weight"
            weights[name] = np.zeros((4, 32), np.float32)
    folder = hf_directory.write(
        tmp_path / "model",
        case.spec,
        weights,
        changes={
            "model_type": "mamba9",
            "state_size": 16,
            "dt_rank": 3,
            "n_routed_experts": 12,
            "kv_lora_rank": 4,
        },
    )
    with pytest.raises(akunu.UnsupportedModelError) as caught:
        akunu.load(folder, device="cpu")
    message = str(caught.value)
    assert 'model_type is "mamba9"; akunu has bert, roberta, ' in message
    assert message.endswith(
        "; of its tensors akunu does not know model.layers.N.mixer.x_proj.weight"
        "; of its keys akunu does not know dt_rank, state_size"
    )


def test_a_model_with_images_of_an_unknown_family_says_what_else_is_unknown(
    model_case: Cases, tmp_path: Path
) -> None:
    case = model_case("llama-32")
    weights = {
        name.replace("model.", "model.language_model.", 1): data
        for name, data in case.weights.items()
    }
    for block in range(2):
        weights[f"model.eye.blocks.{block}.attn.qkv.weight"] = np.zeros((4, 32), np.float32)
    folder = hf_directory.write(tmp_path / "model", case.spec, weights)
    text = json.loads((folder / "config.json").read_text()) | {"eye_section": [8, 12, 12]}
    config = {"model_type": "seen9", "text_config": text, "vision_config": {"depth": 2}}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(akunu.UnsupportedModelError) as caught:
        akunu.load(folder, device="cpu")
    assert str(caught.value).endswith(
        "; of its tensors akunu does not know model.eye.blocks.N.attn.qkv.weight"
        "; of its keys akunu does not know text_config.eye_section"
    )


def test_a_file_of_an_unknown_family_says_what_else_is_unknown(tmp_path: Path) -> None:
    def write(path: Path) -> None:
        writer = gguf.GGUFWriter(path, "mamba9")
        writer.add_context_length(64)
        writer.add_bool("mamba9.ssm.dt_b_c_rms", True)
        writer.add_expert_count(8)
        for layer in range(12):
            writer.add_tensor(f"blk.{layer}.ssm_x.weight", np.zeros((4, 32), np.float32))
            writer.add_tensor(f"blk.{layer}.attn_q.weight", np.zeros((4, 32), np.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()

    path = tmp_path / "model.gguf"
    write(path)
    with pytest.raises(akunu.UnsupportedModelError) as caught:
        akunu.load(path, device="cpu")
    message = str(caught.value)
    assert "general.architecture is 'mamba9'; akunu has bert, " in message
    assert message.endswith(
        "; of its tensors akunu does not know blk.N.ssm_x.weight"
        "; of its keys akunu does not know mamba9.ssm.dt_b_c_rms"
    )


def as_architecture(
    tmp_path: Path, architecture: str, more: dict[str, Any], **overrides: Any
) -> Path:
    """A file of llama's tensors under another architecture, with more keys."""
    case = build("llama-32", tmp_path / "llama.gguf", seed=1, **overrides)
    reader = gguf.GGUFReader(case.path)
    writer = gguf.GGUFWriter(tmp_path / "model.gguf", architecture)
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name == "general.architecture":
            continue
        kind = field.types[0]
        items = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        name = field.name.replace("llama.", f"{architecture}.", 1)
        if name not in more:
            writer.add_key_value(name, field.contents(), kind, sub_type=items)
    for name, value in more.items():
        if isinstance(value, bool):
            writer.add_bool(name, value)
        elif isinstance(value, list):
            writer.add_array(name, value)
        elif isinstance(value, int):
            writer.add_uint32(name, value)
        elif value is not None:
            writer.add_float32(name, value)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return tmp_path / "model.gguf"


FILES: dict[str, tuple[str, dict[str, Any], str]] = {
    "no logit scale": ("granite", {}, "the key granite.logit_scale is missing"),
    "a negative factor": (
        "granite",
        {"granite.logit_scale": 1.0, "granite.residual_scale": -0.5},
        "the factor on embeddings, residual or logits is -0.5",
    ),
    "norms of another kind": (
        "command-r",
        {"command-r.logit_scale": 1.0},
        "the key command-r.attention.layer_norm_epsilon is missing",
    ),
    "no norms behind": ("glm4", {}, "tensor layers.0.attention_post_norm.weight is missing"),
    "no norms of heads": ("hunyuan-dense", {}, "layers.0.attention.q_norm.weight is missing"),
    "no norms of all heads": ("olmo2", {}, "layers.0.attention.q_norm.weight is missing"),
    "a pattern too short": (
        "smollm3",
        {
            "smollm3.attention.sliding_window": 64,
            "smollm3.attention.sliding_window_pattern": [1, 0],
        },
        "smollm3.attention.sliding_window_pattern has 2 entries for 3 layers",
    ),
    "growth without a length": (
        "mistral3",
        {"mistral3.attention.temperature_scale": 0.1},
        "does not say its length that queries grow by",
    ),
    "a factor of others": (
        "smollm3",
        {"smollm3.logit_scale": 0.5},
        "smollm3.logit_scale is 0.5; it is not supported for smollm3",
    ),
}


@each_line("name", FILES)
def test_what_a_file_cannot_mean_is_refused_by_its_key(tmp_path: Path, name: str) -> None:
    architecture, more, message = FILES[name]
    path = as_architecture(tmp_path, architecture, more)
    with pytest.raises(akunu.AkunuError, match=re.escape(message)):
        akunu.load(path, device="cpu")


def test_granite_without_positions_is_another_model(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    tokens = list(range(40))
    logits = []
    for folder, rotates in (("a", True), ("b", False)):
        more = {"granite.logit_scale": 2.0, "granite.rope.scaling.finetuned": rotates}
        path = as_architecture(tmp_path / folder, "granite", more)
        with akunu.load(path, device="cpu") as model:
            logits.append(model.logits(tokens))
    assert np.abs(logits[0] - logits[1]).max() > 0.05 * np.abs(logits[0]).max()
