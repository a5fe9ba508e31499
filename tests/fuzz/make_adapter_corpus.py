"""Writes the corpus of fuzz_adapter: adapters of tests/fuzz/corpus/model/llama.gguf, of both kinds.

python tests/fuzz/make_adapter_corpus.py [FOLDER]
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

FOLDER = Path(__file__).parent / "corpus" / "adapter"
DIM = 32  # of the model, whose feed-forward network is as wide
PROJECTIONS = {  # names of both kinds, rows and columns
    "attn_q": ("self_attn.q_proj", DIM, DIM),
    "attn_k": ("self_attn.k_proj", DIM // 2, DIM),
    "attn_v": ("self_attn.v_proj", DIM // 2, DIM),
    "attn_output": ("self_attn.o_proj", DIM, DIM),
    "ffn_gate": ("mlp.gate_proj", DIM, DIM),
    "ffn_up": ("mlp.up_proj", DIM, DIM),
    "ffn_down": ("mlp.down_proj", DIM, DIM),
}
CONFIG: dict[str, Any] = {
    "peft_type": "LORA",
    "task_type": "CAUSAL_LM",
    "r": 2,
    "lora_alpha": 4,
    "bias": "none",
    "use_dora": False,
    "modules_to_save": None,
    "target_modules": ["q_proj", "v_proj"],
}


def halves(name: str, rank: int, dtype: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    _, n, k = PROJECTIONS[name]
    stream = np.random.RandomState(len(name) + rank)
    down, up = stream.standard_normal((rank, k)), stream.standard_normal((n, rank))
    return down.astype(dtype), up.astype(dtype)


def gguf_adapter(names: list[str], *, rank: int = 1, dtype: Any = np.float32, **more: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "adapter.gguf"
        writer = gguf.GGUFWriter(path, more.get("architecture", "llama"))
        writer.add_string("general.type", "adapter")
        writer.add_string("adapter.type", more.get("type", "lora"))
        if "alpha" not in more:
            writer.add_float32("adapter.lora.alpha", 2.0)
        for name in names:
            for letter, data in zip("ab", halves(name, rank, dtype), strict=True):
                writer.add_tensor(f"blk.0.{name}.weight.lora_{letter}", data)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path.read_bytes()


def peft_adapter(names: list[str], *, dtype: Any = np.float16, **changes: Any) -> bytes:
    config = CONFIG | changes
    tensors = {}
    for name in names:
        module = f"base_model.model.model.layers.0.{PROJECTIONS[name][0]}"
        rank = config.get("rank_pattern", {}).get(PROJECTIONS[name][0], config["r"])
        for letter, data in zip("AB", halves(name, rank, dtype), strict=True):
            tensors[f"{module}.lora_{letter}.weight"] = data
    return json.dumps(config, indent=1).encode() + b"\0" + save(tensors)


FILES = {
    "all.gguf": gguf_adapter(list(PROJECTIONS)),
    "halves.gguf": gguf_adapter(["attn_q", "ffn_down"], rank=2, dtype=np.float16),
    "no_alpha.gguf": gguf_adapter(["attn_k"], alpha=""),
    "other.gguf": gguf_adapter(["attn_k"], architecture="qwen2"),
    "control.gguf": gguf_adapter(["attn_v"], type="other"),
    "peft": peft_adapter(["attn_q", "attn_v"]),
    "peft_all": peft_adapter(list(PROJECTIONS), dtype=np.float32, r=1, use_rslora=True),
    "peft_patterns": peft_adapter(
        ["attn_k", "ffn_up"],
        rank_pattern={"self_attn.k_proj": 1},
        alpha_pattern={"^model.layers.0.mlp.up_proj": 3.5},
    ),
    "peft_dora": peft_adapter(["attn_q"], use_dora=True),
    "peft_no_weights": json.dumps(CONFIG).encode(),
}


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in FILES.items():
        (folder / name).write_bytes(data)


if __name__ == "__main__":
    main()
