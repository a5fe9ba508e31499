"""gpt-oss' experts as OpenAI publishes them: MXFP4 in blocks and scales, beside transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import hf_directory
import random_experts as rnd
from dense_golden import TOKENS, VOCAB
from engine import BOUND_F32_CACHE, chunked, opened, relative_error

pytestmark = pytest.mark.oracle


def test_blocks_and_scales_are_the_numbers_that_transformers_makes_of_them(
    oracle: Any, tmp_path: Path
) -> None:
    import torch
    from safetensors.torch import load_file, save_file
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors

    model = rnd.model_of("gpt-oss")
    folder = rnd.save(tmp_path / "model", model)
    tensors = load_file(folder / "model.safetensors")
    stream = np.random.RandomState(11)
    state = model.state_dict()
    for name in [name for name in tensors if name.endswith(("gate_up_proj", "down_proj"))]:
        experts, k, rows = tensors.pop(name).shape
        blocks = torch.from_numpy(
            stream.randint(0, 256, (experts, rows, k // 32, 16)).astype(np.uint8)
        )
        scales = torch.from_numpy(
            stream.randint(121, 125, (experts, rows, k // 32)).astype(np.uint8)
        )
        tensors[name + "_blocks"], tensors[name + "_scales"] = blocks, scales
        state[name] = convert_moe_packed_tensors(blocks, scales, dtype=torch.float32)
    model.load_state_dict(state)
    expected = oracle.logits(model, TOKENS[:48])
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "mxfp4", "modules_to_not_convert": []}
    (folder / "config.json").write_text(json.dumps(config))
    hf_directory.write_tokenizer(folder, VOCAB)
    with opened(folder, device="metal-emulated") as ours:  # where inputs stay floats
        logits = chunked(ours, TOKENS[:48], [32, 16], "prompt")
    assert relative_error(logits, expected) <= BOUND_F32_CACHE
