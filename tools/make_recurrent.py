"""Directories with random weights in the shapes of Qwen3.5: what speed is measured with.

    python -m tools.make_recurrent 0.8B FOLDER
    akunu quantize FOLDER qwen3.5-0.8b-q4_0.gguf Q4_0

transformers says which tensors there are, and of which shapes. It is one of the packages of the
extra `oracle`. The file of 35B-A3B, cut to 8 layers, takes 15 GB.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import torch
import transformers
from accelerate import init_empty_weights
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

SPREAD = 0.02  # standard deviation of a weight, as transformers begins a training with
SHARED = {
    "vocab_size": 248320,
    "head_dim": 256,
    "num_key_value_heads": 2,
    "linear_num_key_heads": 16,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
    "max_position_embeddings": 32768,
    "rope_parameters": {
        "rope_type": "default",
        "rope_theta": 1e7,
        "partial_rotary_factor": 0.25,
        "mrope_section": [11, 11, 10],
        "mrope_interleaved": True,
    },
}


def dense() -> Any:
    """The shape of Qwen3.5-0.8B."""
    return transformers.Qwen3_5TextConfig(
        **SHARED,
        hidden_size=1024,
        intermediate_size=3584,
        num_hidden_layers=24,
        num_attention_heads=8,
        linear_num_value_heads=16,
        tie_word_embeddings=True,
    )


def experts() -> Any:
    """That of Qwen3.5-35B-A3B with 8 of its 40 layers."""
    return transformers.Qwen3_5MoeTextConfig(
        **SHARED,
        hidden_size=2048,
        num_hidden_layers=8,
        num_attention_heads=16,
        linear_num_value_heads=32,
        num_experts=256,
        num_experts_per_tok=8,
        moe_intermediate_size=512,
        shared_expert_intermediate_size=512,
        tie_word_embeddings=False,
    )


SHAPES = {
    "0.8B": (dense, "Qwen3_5ForCausalLM"),
    "35B-A3B": (experts, "Qwen3_5MoeForCausalLM"),
}


def write(shape: str, folder: Path) -> None:
    """Write config.json, the weights in BF16, a file for each layer, and a tokenizer of bytes."""
    config_of, architecture = SHAPES[shape]
    config = config_of()
    with init_empty_weights():
        model = getattr(transformers, architecture)(config)
    config.architectures = [architecture]
    config.torch_dtype = "bfloat16"
    config.save_pretrained(folder)
    random = torch.Generator().manual_seed(0)
    normal = (torch.randn(1 << 24, generator=random) * SPREAD).to(torch.bfloat16)
    files: dict[str, dict[str, torch.Size]] = {}
    for name, weight in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        layer = name.partition("layers.")[2].partition(".")[0]
        files.setdefault(f"model-{layer or 'rest'}.safetensors", {})[name] = weight.shape
    for file, shapes in files.items():
        tensors = {name: drawn(name, size, normal, random) for name, size in shapes.items()}
        save_file(tensors, folder / file, metadata={"format": "pt"})
    index = {"metadata": {}, "weight_map": {name: file for file in files for name in files[file]}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    write_tokenizer(folder / "tokenizer.json")


def drawn(
    name: str, shape: torch.Size, normal: torch.Tensor, random: torch.Generator
) -> torch.Tensor:
    """Rates of decay, as transformers begins with, norms of 1, and matrices of normal numbers.

    A matrix is a piece of the same numbers, repeated: new ones would take half an hour.
    """
    if name.endswith("A_log"):
        return torch.log(torch.rand(shape, generator=random) * 15 + 1)
    if name.endswith("dt_bias"):
        return torch.ones(shape)
    if len(shape) == 1:  # those of layers are kept less 1, that of a state is not
        one = name.endswith("linear_attn.norm.weight")
        return torch.full(shape, float(one), dtype=torch.bfloat16)
    n = math.prod(shape)
    start = int(torch.randint(0, 1 << 20, (1,), generator=random))
    repeated = normal.repeat(-(-(start + n) // normal.numel()))
    return repeated[start : start + n].reshape(shape).contiguous()


def write_tokenizer(file: Path) -> None:
    """A token for each byte."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(letters)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(file))


def main() -> None:
    """Write one directory."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True)
    write(arguments.shape, arguments.folder)


if __name__ == "__main__":
    main()
