"""Random low-rank adapters of random models, as files of both kinds, and merged into weights.

adapter = random_adapter(case.spec, rank=4, seed=1)
write_peft(folder, adapter)
merged(case.weights, {adapter: 0.5})
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gguf
import hf_directory
import numpy as np
from gguf_file import gguf_name, interleave
from numpy.typing import NDArray
from random_models import ModelSpec, Weights

PROJECTIONS = (
    "self_attn.q_proj",
    "self_attn.k_proj",
    "self_attn.v_proj",
    "self_attn.o_proj",
    "mlp.gate_proj",
    "mlp.up_proj",
    "mlp.down_proj",
)


@dataclass(frozen=True, eq=False)
class Adapter:
    """The matrices A and B of modules, by Hugging Face's names of them."""

    spec: ModelSpec
    alpha: float
    matrices: dict[str, tuple[NDArray[np.float32], NDArray[np.float32]]]
    scales: dict[str, float] = field(default_factory=dict)  # of modules that have another

    def scale(self, module: str) -> float:
        rank = len(self.matrices[module][0])
        return self.scales.get(module, self.alpha / rank)

    def delta(self, module: str) -> NDArray[np.float64]:
        down, up = self.matrices[module]
        return self.scale(module) * (up.astype(np.float64) @ down.astype(np.float64))


def _shape(spec: ModelSpec, module: str) -> tuple[int, int]:
    """Rows and columns of a module's weight."""
    return {
        "q_proj": (spec.q_dim, spec.dim),
        "k_proj": (spec.kv_dim, spec.dim),
        "v_proj": (spec.kv_dim, spec.dim),
        "o_proj": (spec.dim, spec.q_dim),
        "gate_proj": (spec.ffn_dim, spec.dim),
        "up_proj": (spec.ffn_dim, spec.dim),
        "down_proj": (spec.dim, spec.ffn_dim),
    }[module.rpartition(".")[2]]


def random_adapter(
    spec: ModelSpec,
    *,
    rank: int = 4,
    alpha: float = 6.0,
    seed: int = 0,
    projections: tuple[str, ...] = PROJECTIONS,
) -> Adapter:
    """An adapter whose products are about a third as large as the weights."""
    matrices = {}
    for layer in range(spec.n_layers):
        for projection in projections:
            module = f"model.layers.{layer}.{projection}"
            n, k = _shape(spec, module)
            stream = np.random.RandomState([seed, rank, zlib.crc32(module.encode())])
            down = stream.standard_normal((rank, k)) / np.sqrt(k)
            up = stream.standard_normal((n, rank)) / np.sqrt(rank) / alpha * rank / 3
            matrices[module] = (down.astype(np.float32), up.astype(np.float32))
    return Adapter(spec, alpha, matrices)


def merged(weights: Weights, shares: Mapping[Adapter, float]) -> Weights:
    """The weights with adapters merged into them, in float64."""
    result = dict(weights)
    for adapter, share in shares.items():
        for module in adapter.matrices:
            name = f"{module}.weight"
            result[name] = (result[name] + share * adapter.delta(module)).astype(np.float32)
    return result


def write_peft(folder: Path, adapter: Adapter, *, dtype: str = "F32", **changes: Any) -> Path:
    """The directory that peft saves; `changes`: keys of adapter_config.json."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": "somewhere",
        "r": len(next(iter(adapter.matrices.values()))[0]),
        "lora_alpha": adapter.alpha,
        "lora_dropout": 0.1,
        "target_modules": [name.rpartition(".")[2] for name in PROJECTIONS],
        "bias": "none",
        "inference_mode": True,
        "init_lora_weights": True,
        "use_rslora": False,
        "use_dora": False,
        "modules_to_save": None,
        "rank_pattern": {},
        "alpha_pattern": {},
    }
    (folder / "adapter_config.json").write_text(json.dumps(config | changes))
    tensors = {}
    for module, halves in adapter.matrices.items():
        for letter, data in zip("AB", halves, strict=True):
            name = f"base_model.model.{module}.lora_{letter}.weight"
            tensors[name] = (dtype, data.shape, hf_directory.stored(data, dtype))
    hf_directory.write_safetensors(folder / "adapter_model.safetensors", tensors)
    return folder


def write_gguf(path: Path, adapter: Adapter, *, number: type = np.float32, **changes: str) -> Path:
    """The file that llama.cpp's converter makes; `changes`: metadata, dots as underscores."""
    spec = adapter.spec
    writer = gguf.GGUFWriter(path, changes.get("architecture", spec.architecture))
    writer.add_string("general.type", changes.get("general_type", "adapter"))
    writer.add_string("adapter.type", changes.get("adapter_type", "lora"))
    writer.add_float32("adapter.lora.alpha", adapter.alpha)
    for module, (down, up) in adapter.matrices.items():
        name = gguf_name(f"{module}.weight")
        if spec.architecture == "llama" and ".q_proj" in module:
            up = interleave(up, spec.n_heads)
        elif spec.architecture == "llama" and ".k_proj" in module:
            up = interleave(up, spec.n_kv_heads)
        writer.add_tensor(f"{name}.lora_a", down.astype(number))
        writer.add_tensor(f"{name}.lora_b", up.astype(number))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
