"""Kimi-Linear: layers whose delta rule has channels that decay apart, from all directories."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dense_golden
import hf_directory
import numpy as np
import pytest
from dense_golden import TOKENS
from recurrent_models import check_cache, check_refusal

import akunu
from akunu.convert.directory_source import DirectorySource
from akunu.errors import ModelFormatError, UnsupportedModelError

# Of the golden model: three layers with states, of 6 heads with 32 numbers of a key and of a value.
LAYERS, HEADS, HEAD_DIM = 3, 6, 32
CONVOLVED, LATENT = 3 * HEADS * HEAD_DIM, 64 + 16


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return dense_golden.write(tmp_path / "model", dense_golden.load("kimi-linear"))


def test_the_cache_keeps_inputs_states_and_latents(folder: Path) -> None:
    check_cache(
        folder,
        layers=LAYERS,
        convolved=CONVOLVED,
        state=HEADS * HEAD_DIM * HEAD_DIM,
        of_position=LATENT,
    )


def test_directories_of_mlx_are_the_same_model(folder: Path, tmp_path: Path) -> None:
    """As `sanitize` of mlx_lm's kimi_linear.py leaves them: other names, keys and values apart."""
    golden = dense_golden.load("kimi-linear")
    tensors = {}
    for name, shape in golden.shapes.items():
        data = dense_golden.tensor_of(name, tuple(shape))
        new = name.replace("block_sparse_moe.", "mlp.").replace("_conv1d.", "_conv.conv.")
        if "_conv1d." in name:
            data = np.moveaxis(data, 2, 1)
        parts = {new: data}
        if name.endswith("kv_b_proj.weight"):
            heads = data.reshape(HEADS, -1, data.shape[1])
            keys, values = heads[:, :24].swapaxes(1, 2), heads[:, 24:]
            begin = name.removesuffix("kv_b_proj.weight")
            parts = {f"{begin}embed_q.weight": keys, f"{begin}unembed_out.weight": values}
        for part, numbers in parts.items():
            tensors[part] = ("F32", numbers.shape, hf_directory.stored(numbers, "F32"))
    of_mlx = dense_golden.write(tmp_path / "mlx", golden)
    hf_directory.write_safetensors(of_mlx / "model.safetensors", tensors)
    with akunu.load(folder) as model, akunu.load(of_mlx) as other:
        ours, theirs = model.logits(TOKENS[:40]), other.logits(TOKENS[:40])
    # Sums over the rows of W_k, or along them: other roundings.
    np.testing.assert_allclose(theirs, ours, atol=1e-4 * np.abs(ours).max())


def test_other_heads_than_attentions_are_not_converted(folder: Path, tmp_path: Path) -> None:
    golden = dense_golden.load("kimi-linear")
    shapes = dict(golden.shapes)
    for name, shape in golden.shapes.items():
        if ".layers.2." not in name and shape[0] == HEADS * HEAD_DIM:
            shapes[name] = [shape[0] // 2, *shape[1:]]
        if name.endswith("o_proj.weight") and ".layers.2." not in name:
            shapes[name] = [shape[0], shape[1] // 2]
        if name.endswith("b_proj.weight") and shape[0] == HEADS:
            shapes[name] = [HEADS // 2, shape[1]]
        if name.endswith("A_log"):
            shapes[name] = [1, 1, HEADS // 2, 1]
    fewer = dense_golden.DenseGolden(
        config={**golden.config, "linear_num_heads": HEADS // 2},
        shapes=shapes,
        largest=golden.largest,
        logits=golden.logits,
        transformers=golden.transformers,
    )
    other = dense_golden.write(tmp_path / "fewer", fewer)
    with akunu.load(other) as model:
        assert np.isfinite(model.logits(TOKENS[:9])).all()
    with pytest.raises(UnsupportedModelError, match="the delta rule have 3 heads, others 6"):
        DirectorySource(other)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a state": ({"linear_head_dim": 257}, "keys of the delta rule have 257 numbers"),
    "another state": ({"linear_head_dim": 16}, "layers.0.attention.q.weight is [192, 96]"),
    "no heads": ({"linear_num_heads": 0}, "linear_num_heads is 0"),
    "a width of one": (
        {"linear_conv_kernel_dim": 1},
        "the convolution before the delta rule is over 1 rows",
    ),
    "a layer of no kind": (
        {
            "layer_types": None,
            "linear_attn_config": {"kda_layers": [1, 2], "full_attn_layers": [3]},
        },
        "layer 4 is in none of kda_layers and full_attn_layers",
    ),
    "a layer too many": (
        {
            "layer_types": None,
            "linear_attn_config": {"kda_layers": [1, 2, 4, 5], "full_attn_layers": [3]},
        },
        "layers are numbers from 1 to 4",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused_by_name(folder: Path, case: str) -> None:
    check_refusal(folder, *REFUSED[case])


def test_a_convolution_that_is_missing_is_named(folder: Path) -> None:
    golden = dense_golden.load("kimi-linear")
    tensors = {}
    for name, shape in golden.shapes.items():
        if name != "model.layers.0.self_attn.k_conv1d.weight":
            data = dense_golden.tensor_of(name, tuple(shape))
            tensors[name] = ("F32", data.shape, hf_directory.stored(data, "F32"))
    hf_directory.write_safetensors(folder / "model.safetensors", tensors)
    with pytest.raises(ModelFormatError, match=r"layers\.0\.delta\.kernel"):
        akunu.load(folder)
