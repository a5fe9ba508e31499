"""Models with the gated delta rule: what the cache keeps of them; nothing changes a text."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import dense_golden
import gguf
import hf_directory
import numpy as np
import pytest
from dense_golden import TOKENS, changed
from recurrent_models import check_cache, check_refusal

import akunu
from akunu.convert.directory_source import DirectorySource
from akunu.convert.quantizing import Quantization, Wishes
from akunu.convert.recipes import RECIPES
from akunu.errors import UnsupportedModelError

# Of the golden model: two layers with states, of 2 heads of keys and 6 of values, 32 numbers each.
LAYERS, KEYS, VALUES, HEAD_DIM = 2, 2, 6, 32
CONVOLVED = (2 * KEYS + VALUES) * HEAD_DIM
ATTENTION = 2 * 2 * 2 * 32  # keys and values of a position, in the two layers that attend


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return dense_golden.write(tmp_path / "model", dense_golden.load("qwen35"))


def test_the_cache_keeps_inputs_and_two_states_in_f32(folder: Path) -> None:
    check_cache(
        folder,
        layers=LAYERS,
        convolved=CONVOLVED,
        state=VALUES * HEAD_DIM * HEAD_DIM,
        of_position=ATTENTION,
    )


def test_directories_of_mlx_hold_the_1_of_norms(folder: Path, tmp_path: Path) -> None:
    """As `sanitize` of mlx_lm's qwen3_5.py leaves them: convolutions turned, 1 added to norms."""
    golden = dense_golden.load("qwen35")
    shifted = ("layernorm.weight", "model.norm.weight", "q_norm.weight", "k_norm.weight")
    tensors = {}
    for name, shape in golden.shapes.items():
        data = dense_golden.tensor_of(name, tuple(shape))
        if name.endswith("conv1d.weight"):
            data = np.moveaxis(data, 2, 1)
        if name.endswith(shifted):
            data = data + np.float32(1)
        tensors[name] = ("F32", data.shape, hf_directory.stored(data, "F32"))
    of_mlx = dense_golden.write(tmp_path / "mlx", golden)
    hf_directory.write_safetensors(of_mlx / "model.safetensors", tensors)
    with akunu.load(folder) as model, akunu.load(of_mlx) as other:
        np.testing.assert_array_equal(other.logits(TOKENS[:40]), model.logits(TOKENS[:40]))


def converted(folder: Path) -> Path:
    target = folder.parent / "made.gguf"
    Quantization(DirectorySource(folder), Wishes(recipe=RECIPES["F32"])).write(target)
    return target


def test_layers_that_guess_ahead_are_left_out_of_a_directory(folder: Path, tmp_path: Path) -> None:
    golden = dense_golden.load("qwen35")
    more = {"mtp.fc.weight": [96, 192], "mtp.layers.0.input_layernorm.weight": [96]}
    with_more = dataclasses.replace(golden, shapes=golden.shapes | more)
    ahead = changed(dense_golden.write(tmp_path / "ahead", with_more), mtp_num_hidden_layers=1)
    with akunu.load(folder) as model, akunu.load(ahead) as other:
        np.testing.assert_array_equal(other.logits(TOKENS[:9]), model.logits(TOKENS[:9]))
        note = next(note for note in other.notes if "mtp." in note)
        assert "it guesses tokens further ahead" in note


def with_a_layer_ahead(path: Path) -> Path:
    """The file as llama.cpp's converter makes it of a checkpoint with tensors `mtp.*`."""
    reader, target = gguf.GGUFReader(path), path.with_name("ahead.gguf")
    writer = gguf.GGUFWriter(target, "qwen35")
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name == "general.architecture":
            continue
        kind, *of = field.types
        value = 1 + field.contents() if name == "qwen35.block_count" else field.contents()
        writer.add_key_value(name, value, kind, of[-1] if of else None)
    writer.add_uint32("qwen35.nextn_predict_layers", 1)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.add_tensor("blk.4.nextn.eh_proj.weight", np.ones((96, 192), np.float32))
    writer.add_tensor("blk.4.attn_norm.weight", np.ones(96, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return target


def test_layers_that_guess_ahead_are_left_out_of_a_file(folder: Path) -> None:
    path = converted(folder)
    with akunu.load(path) as model, akunu.load(with_a_layer_ahead(path)) as other:
        np.testing.assert_array_equal(other.logits(TOKENS[:9]), model.logits(TOKENS[:9]))
        note = next(note for note in other.notes if "blk.4.nextn" in note)
        assert "it guesses tokens further ahead" in note


def test_heads_of_a_file_are_in_llama_cpps_order(folder: Path) -> None:
    """As `_LinearAttentionVReorderBase` of its converter has them: key heads repeat as a whole."""
    written = {each.name: each for each in gguf.GGUFReader(converted(folder)).tensors}
    for layer in (0, 2):
        begin = f"model.layers.{layer}.linear_attn."
        of = {
            name: dense_golden.tensor_of(begin + name, (VALUES,)) for name in ("A_log", "dt_bias")
        }
        tiled = np.arange(VALUES).reshape(KEYS, -1).T.ravel()
        found = written[f"blk.{layer}.ssm_dt.bias"].data
        np.testing.assert_array_equal(found, of["dt_bias"][tiled])
        found = written[f"blk.{layer}.ssm_a"].data
        np.testing.assert_allclose(found, -np.exp(of["A_log"][tiled]), rtol=1e-6)


def test_layers_in_another_order_are_not_converted(tmp_path: Path) -> None:
    golden = dense_golden.load("qwen35")
    kinds = ["full_attention", "linear_attention", "linear_attention", "full_attention"]
    swapped = {"0": "1", "1": "0"}
    shapes = {
        re.sub(r"(?<=layers\.)[01]", lambda found: swapped[found[0]], name): shape
        for name, shape in golden.shapes.items()
    }
    other = dataclasses.replace(
        golden, shapes=shapes, config={**golden.config, "layer_types": kinds}
    )
    folder = dense_golden.write(tmp_path / "model", other)
    with akunu.load(folder) as model:
        assert np.isfinite(model.logits(TOKENS[:9])).all()
    with pytest.raises(UnsupportedModelError, match="layer_types does not repeat"):
        DirectorySource(folder)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "heads": ({"linear_num_key_heads": 4}, "6 heads of values cannot share 4 heads of keys evenly"),
    "no heads": ({"linear_num_key_heads": 0}, "linear_num_key_heads is 0"),
    "a state": ({"linear_key_head_dim": 257}, "keys of the delta rule have 257 numbers"),
    "another state": ({"linear_key_head_dim": 16}, "layers.0.delta.qkv.weight is [320, 96]"),
    "a width of one": (
        {"linear_conv_kernel_dim": 1},
        "the convolution before the delta rule is over 1 rows",
    ),
    "no gates": ({"attn_output_gate": False}, "config.json: attn_output_gate is false"),
    "other states": ({"mamba_ssm_dtype": "bfloat16"}, 'mamba_ssm_dtype is "bfloat16"'),
    "another kind": (
        {"layer_types": ["linear_attention", "conv", "linear_attention", "full_attention"]},
        'config.json: layer_types holds "conv"',
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused_by_name(folder: Path, case: str) -> None:
    check_refusal(folder, *REFUSED[case])
