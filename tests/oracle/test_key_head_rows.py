"""Qwen3-Next's tensors as other files have them: rows of heads of keys, stacks of MLX, adapters."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import peft_adapter
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import gguf
import random_experts as rnd
from dense_golden import TOKENS
from engine import BOUND_F32_CACHE, opened, relative_error
from family_case import Case
from safetensors.numpy import load_file, save_file

import akunu
from akunu.errors import ModelFormatError

pytestmark = pytest.mark.oracle


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory, oracle: Any) -> Case:
    return Case(rnd, "qwen3-next", tmp_path_factory.mktemp("families"), oracle)


def as_older_files(path: Path, target: Path, tensors: dict[str, Any]) -> Path:
    """The file with `ssm_in`, `in_proj_qkvz` as it is, instead of `attn_qkv` and `attn_gate`."""
    reader = gguf.GGUFReader(path)
    writer = gguf.GGUFWriter(target, "qwen3next")
    for name, field in reader.fields.items():
        if not name.startswith("GGUF.") and name != "general.architecture":
            kind, *of = field.types
            writer.add_key_value(name, field.contents(), kind, of[-1] if of else None)
    for tensor in reader.tensors:
        if "attn_qkv" not in tensor.name and "attn_gate" not in tensor.name:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    for name, data in tensors.items():
        writer.add_tensor(name, data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return target


def projections(drop: int = 0) -> dict[str, Any]:
    model = rnd.model_of("qwen3-next")
    rows = {
        f"blk.{i}.ssm_in.weight": model.model.layers[i].linear_attn.in_proj_qkvz for i in (0, 2)
    }
    return {
        name: each.weight.detach().numpy()[: each.weight.shape[0] - drop]
        for name, each in rows.items()
    }


def test_older_files_are_the_same_model(case: Case, tmp_path: Path) -> None:
    path = as_older_files(case.gguf("F32"), tmp_path / "older.gguf", projections())
    with opened(path) as older, opened(case.gguf("F32")) as newer:
        np.testing.assert_array_equal(older.logits(TOKENS[:70]), newer.logits(TOKENS[:70]))


def test_rows_of_other_heads_are_refused(case: Case, tmp_path: Path) -> None:
    path = as_older_files(case.gguf("F32"), tmp_path / "short.gguf", projections(drop=2))
    with pytest.raises(
        ModelFormatError, match=r"has 510 rows; heads of the delta rule ask for 512"
    ):
        akunu.load(path)


def test_stacks_of_mlx_are_the_same_model(case: Case, tmp_path: Path) -> None:
    """As `sanitize` of mlx_lm's qwen3_next.py calls them: `switch_mlp`."""
    tensors = load_file(case.directory / "model.safetensors")
    stacks: dict[str, list[Any]] = {}
    for name in sorted(tensors, key=lambda name: [int(n) for n in re.findall(r"\d+", name)]):
        if (found := re.fullmatch(r"(.*\.mlp\.)experts\.\d+(\..*)", name)) is not None:
            stacks.setdefault(f"{found[1]}switch_mlp{found[2]}", []).append(tensors.pop(name))
    assert len(stacks) == 3 * 4
    stacked = {name: np.stack(each) for name, each in stacks.items()}
    folder = rnd.changed(case.directory, tmp_path / "mlx", {})
    (folder / "model.safetensors").unlink()
    save_file(tensors | stacked, folder / "model.safetensors", {"format": "mlx"})
    with opened(folder) as one, opened(case.directory) as other:
        np.testing.assert_array_equal(one.logits(TOKENS[:40]), other.logits(TOKENS[:40]))


@pytest.mark.filterwarnings("ignore")  # of peft and torch
def test_an_adapter_gives_the_logits_of_peft(case: Case, tmp_path: Path) -> None:
    import torch

    tokens = TOKENS[:70]
    adapted = peft_adapter.adapted(
        rnd.model_of("qwen3-next"),
        tmp_path / "adapter",
        target_modules=["in_proj_qkvz", "in_proj_ba", "out_proj", "q_proj", "o_proj"],
    )
    adapter = peft_adapter.without_patterns(tmp_path / "adapter")
    with torch.no_grad():
        expected = adapted(torch.tensor([tokens])).logits[0].numpy()
    for base in (case.directory, case.gguf("F32")):
        with akunu.load(base, kv_type="f32", adapters={"a": adapter}) as ours:
            assert relative_error(ours.logits(tokens, adapters="a"), expected) <= BOUND_F32_CACHE
            assert relative_error(ours.logits(tokens), expected) > 50 * BOUND_F32_CACHE
