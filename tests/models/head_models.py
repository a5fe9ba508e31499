"""Random models with a prediction head, in directories as Hugging Face has them and as GGUF.

    folder = write(tmp_path / "model", "qwen35")

Their numbers are those of `dense_golden`. With `agreement` the head often says what the model says:
what layers add is multiplied by that number, so that both mostly follow from the last token alone,
and the head hands that token on. With 0 they always agree.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dense_golden
import gguf
import hf_directory
import numpy as np
from dense_golden import VOCAB
from numpy.typing import NDArray

from akunu.convert.directory_source import DirectorySource
from akunu.convert.quantizing import Quantization, Wishes
from akunu.convert.recipes import RECIPES

FAMILIES = ("qwen35", "qwen35moe", "qwen3next")
LAYER = "mtp.layers.0."
DIM, N_EXPERTS, EXPERT_DIM, SHARED_DIM = 96, 12, 64, 96
_MODEL_TYPES = {"qwen35moe": "qwen3_5_moe_text", "qwen3next": "qwen3_next"}
_ROPE = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}
# Which weights add to the residual.
_ADDING = ("o_proj.weight", "out_proj.weight", "down_proj.weight", "down_proj")


def config_of(family: str) -> dict[str, Any]:
    """What config.json says of the model."""
    config = dict(dense_golden.load("qwen35").config)
    config["mtp_num_hidden_layers"] = 1
    if family == "qwen35":
        return config
    if family == "qwen3next":
        config |= {"rope_parameters": _ROPE, "norm_topk_prob": True, "architectures": ["Qwen3Next"]}
    return config | {
        "model_type": _MODEL_TYPES[family],
        "num_experts": N_EXPERTS,
        "num_experts_per_tok": 3,
        "moe_intermediate_size": EXPERT_DIM,
        "shared_expert_intermediate_size": SHARED_DIM,
    }


def _feed_forward(family: str, layer: str) -> dict[str, list[int]]:
    mlp = layer + "mlp."
    shapes = {mlp + "gate.weight": [N_EXPERTS, DIM], mlp + "shared_expert_gate.weight": [1, DIM]}
    for name, dim in (("shared_expert.", SHARED_DIM), ("experts.{}.", EXPERT_DIM)):
        for i in range(N_EXPERTS if "{}" in name else 1):
            of = mlp + name.format(i)
            shapes |= {
                of + "gate_proj.weight": [dim, DIM],
                of + "up_proj.weight": [dim, DIM],
                of + "down_proj.weight": [DIM, dim],
            }
        if family == "qwen35moe":  # which has them in stacks
            break
    if family == "qwen35moe":
        shapes[mlp + "experts.gate_up_proj"] = [N_EXPERTS, 2 * EXPERT_DIM, DIM]
        shapes[mlp + "experts.down_proj"] = [N_EXPERTS, DIM, EXPERT_DIM]
    return shapes


def shapes_of(family: str) -> dict[str, list[int]]:
    """The model's tensors, without those of the head."""
    shapes = {}
    for name, shape in dense_golden.load("qwen35").shapes.items():
        if ".mlp." in name and family != "qwen35":
            shapes |= _feed_forward(family, name[: name.index("mlp.")])
        elif family == "qwen3next" and ".in_proj_" in name:
            # Rows of q, k, v and z, and of b and a, are together there.
            begin = name[: name.index("in_proj_")]
            shapes |= {
                begin + "in_proj_qkvz.weight": [2 * 64 + 2 * 192, DIM],
                begin + "in_proj_ba.weight": [12, DIM],
            }
        else:
            shapes[name] = shape
    return shapes


def shapes_of_head(family: str) -> dict[str, list[int]]:
    """As the model's last layer with attention has them, and the parts around it."""
    shapes = shapes_of(family)
    layer = max(name.split(".")[2] for name in shapes if "self_attn" in name)
    prefix = f"model.layers.{layer}."
    head = {
        LAYER + name.removeprefix(prefix): shape
        for name, shape in shapes.items()
        if name.startswith(prefix)
    }
    head["mtp.fc.weight"] = [DIM, 2 * DIM]
    for norm in ("norm", "pre_fc_norm_embedding", "pre_fc_norm_hidden"):
        head[f"mtp.{norm}.weight"] = [DIM]
    return head


def numbers_of(name: str, shape: list[int], agreement: float | None = None) -> NDArray[np.float32]:
    """The numbers of a tensor."""
    if len(shape) == 3 and "experts" in name:  # a stack's, a matrix at a time
        return np.stack([numbers_of(f"{name}.{i}", shape[1:], agreement) for i in range(shape[0])])
    values = dense_golden.tensor_of(name, tuple(shape))
    if agreement is None:
        return values
    if name == "mtp.fc.weight":
        return np.eye(DIM, 2 * DIM, dtype=np.float32)
    if name.startswith("mtp.pre_fc"):
        return np.zeros(shape, np.float32)
    if name == "mtp.norm.weight":
        return dense_golden.tensor_of("model.norm.weight", tuple(shape))
    if any(name.endswith(end) or f"{end}." in name for end in _ADDING):
        values = values * np.float32(agreement)
    return values


def write(folder: Path, family: str = "qwen35", agreement: float | None = None) -> Path:
    """The model as a directory."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config_of(family)))
    tensors = {}
    for name, shape in (shapes_of(family) | shapes_of_head(family)).items():
        data = numbers_of(name, shape, agreement)
        tensors[name] = ("F32", data.shape, hf_directory.stored(data, "F32"))
    hf_directory.write_safetensors(folder / "model.safetensors", tensors)
    hf_directory.write_tokenizer(folder, VOCAB)
    return folder


_GGUF_NAMES = {
    "mtp.fc": "nextn.eh_proj",
    "mtp.pre_fc_norm_embedding": "nextn.enorm",
    "mtp.pre_fc_norm_hidden": "nextn.hnorm",
    "mtp.norm": "nextn.shared_head_norm",
    LAYER + "input_layernorm": "attn_norm",
    LAYER + "post_attention_layernorm": "post_attention_norm",
    LAYER + "self_attn.q_proj": "attn_q",
    LAYER + "self_attn.k_proj": "attn_k",
    LAYER + "self_attn.v_proj": "attn_v",
    LAYER + "self_attn.o_proj": "attn_output",
    LAYER + "self_attn.q_norm": "attn_q_norm",
    LAYER + "self_attn.k_norm": "attn_k_norm",
    LAYER + "mlp.gate_proj": "ffn_gate",
    LAYER + "mlp.up_proj": "ffn_up",
    LAYER + "mlp.down_proj": "ffn_down",
    LAYER + "mlp.gate": "ffn_gate_inp",
    LAYER + "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
    LAYER + "mlp.shared_expert.gate_proj": "ffn_gate_shexp",
    LAYER + "mlp.shared_expert.up_proj": "ffn_up_shexp",
    LAYER + "mlp.shared_expert.down_proj": "ffn_down_shexp",
}


def _gguf_head(family: str, agreement: float | None) -> dict[str, NDArray[np.float32]]:
    """The head's tensors as `_Qwen35MtpMixin` of llama.cpp's converter names them."""
    head: dict[str, NDArray[np.float32]] = {}
    experts: dict[str, list[NDArray[np.float32]]] = {}
    for name, shape in shapes_of_head(family).items():
        data = numbers_of(name, shape, agreement)
        stem = name.removesuffix(".weight")
        if stem.endswith("experts.gate_up_proj"):
            head["ffn_gate_exps"], head["ffn_up_exps"] = np.split(data, 2, axis=1)
        elif stem.endswith("experts.down_proj"):
            head["ffn_down_exps"] = data
        elif ".experts." in stem:
            kind = stem.rpartition(".")[2].removesuffix("_proj")
            experts.setdefault(f"ffn_{kind}_exps", []).append(data)
        else:
            # Norms hold the 1 that is added to them elsewhere; a row alone is a vector there.
            head[_GGUF_NAMES[stem]] = data + 1 if "norm" in stem else data.squeeze()
    return head | {name: np.stack(each) for name, each in experts.items()}


def write_gguf(folder: Path, family: str = "qwen35", agreement: float | None = None) -> Path:
    """The same model as a file, as llama.cpp's converter makes it; `folder`: as `write` left it."""
    plain, target = folder.with_suffix(".plain.gguf"), folder.with_suffix(".gguf")
    Quantization(DirectorySource(folder), Wishes(recipe=RECIPES["F32"])).write(plain)
    reader, writer = gguf.GGUFReader(plain), gguf.GGUFWriter(target, family)
    n_layers = 0
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name == "general.architecture":
            continue
        kind, *of = field.types
        value = field.contents()
        if name == f"{family}.block_count":
            n_layers, value = value, value + 1
        writer.add_key_value(name, value, kind, of[-1] if of else None)
    writer.add_uint32(f"{family}.nextn_predict_layers", 1)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    for name, data in _gguf_head(family, agreement).items():
        writer.add_tensor(f"blk.{n_layers}.{name}.weight", np.ascontiguousarray(data))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return target
