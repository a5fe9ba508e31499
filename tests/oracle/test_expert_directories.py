"""Directories with experts: FP8 as DeepSeek publishes it, and what copies of stacks take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import hf_directory
import random_experts as rnd
import torch
from dense_golden import TOKENS
from engine import BOUND_F16_CACHE, BOUND_F32_CACHE, MUTATION_FACTOR, opened, relative_error
from safetensors.torch import load_file

pytestmark = pytest.mark.oracle

BLOCK = 32
_NAMES = {torch.float8_e4m3fn: "F8_E4M3", torch.float32: "F32", torch.bfloat16: "BF16"}


def in_eighths(data: Any) -> tuple[Any, Any]:
    """A matrix in FP8 and the scale of each block, the block's largest number being 448."""
    n, k = data.shape
    padded = torch.nn.functional.pad(data, (0, -k % BLOCK, 0, -n % BLOCK))
    rows, columns = (each // BLOCK for each in padded.shape)
    scales = padded.reshape(rows, BLOCK, columns, BLOCK).abs().amax((1, 3)) / 448
    spread = scales.repeat_interleave(BLOCK, 0).repeat_interleave(BLOCK, 1)[:n, :k]
    return (data / spread).to(torch.float8_e4m3fn), scales


def expanded(codes: Any, scales: Any) -> Any:
    n, k = codes.shape
    spread = scales.repeat_interleave(BLOCK, 0).repeat_interleave(BLOCK, 1)[:n, :k]
    return (codes.float() * spread).to(torch.bfloat16)


def directories(tmp_path: Path) -> tuple[Path, Path]:
    """A model as DeepSeek publishes it, and with its matrices as torch expands them."""
    folder = rnd.save(tmp_path / "saved", rnd.model_of("deepseek3-moe"))
    weights = load_file(folder / "model.safetensors")
    assert "model.layers.1.mlp.experts.15.down_proj.weight" in weights  # one for each expert
    eighths: dict[str, Any] = {}
    whole: dict[str, Any] = {}
    for name, data in weights.items():
        if "_proj" not in name:
            eighths[name] = whole[name] = data
            continue
        codes, scales = in_eighths(data)
        eighths[name], eighths[name + "_scale_inv"] = codes, scales
        whole[name] = expanded(codes, scales)
    method = {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [BLOCK, BLOCK]}
    paths = []
    for name, tensors, keys in (
        ("fp8", eighths, {"quantization_config": method}),
        ("bf16", whole, dict[str, Any]()),
    ):
        target = rnd.changed(folder, tmp_path / name, keys)
        (target / "model.safetensors").unlink()
        stored = {
            key: (
                _NAMES[each.dtype],
                tuple(each.shape),
                each.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes(),
            )
            for key, each in tensors.items()
        }
        hf_directory.write_safetensors(target / "model.safetensors", stored)
        paths.append(target)
    return paths[0], paths[1]


def test_fp8_is_what_torch_expands_it_to(tmp_path: Path, oracle: Any) -> None:
    eighths, whole = directories(tmp_path)
    with opened(eighths, kv_type="f32") as one, opened(whole, kv_type="f32") as other:
        logits = one.logits(TOKENS)
        np.testing.assert_array_equal(logits, other.logits(TOKENS))
        assert any("tensors in FP8 were expanded to BF16" in note for note in one.notes)
    exact = oracle.logits(oracle.from_directory(whole), TOKENS[:40])
    # Rows beside weights of 16 bits are rounded to 16 bits, too.
    errors = np.abs(logits[:40] - exact).max(axis=1) / np.abs(exact).max()
    assert np.median(errors) <= BOUND_F16_CACHE
    plain = oracle.logits(rnd.model_of("deepseek3-moe"), TOKENS[:40])
    assert relative_error(exact, plain) >= MUTATION_FACTOR * BOUND_F32_CACHE


@pytest.mark.parametrize(
    ("family", "n_stacks", "n_numbers"),
    [
        # Layers, experts, and what an expert has: three matrices.
        ("qwen3-moe", 4 * 3, 4 * 12 * 3 * 64 * 96),  # a tensor for each expert
        ("granite-moe", 4 * 2, 4 * 8 * 2 * 64 * 96),  # gate and up in one; down is read in place
    ],
)
def test_a_note_says_what_stacks_of_experts_take(
    tmp_path: Path, family: str, n_stacks: int, n_numbers: int
) -> None:
    folder = rnd.save(tmp_path / "model", rnd.model_of(family))
    mebibytes = n_numbers * 4 / 2**20
    with opened(folder) as model:
        [note] = [note for note in model.notes if "experts' tensors" in note]
        assert f"put together into {n_stacks} and take {mebibytes:.1f} MiB" in note
        assert model.memory["weights"] >= n_numbers * 4
