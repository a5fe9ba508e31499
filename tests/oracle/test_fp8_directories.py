"""Directories in FP8 (e4m3 with scales), converted and quantised, beside torch's float8_e4m3fn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import hf_directory
import numpy as np
import pytest
from engine import BOUND_F32_CACHE, opened, relative_error
from gguf import GGMLQuantizationType, GGUFReader
from gguf_file import gguf_name, interleave
from random_models import KINDS, random_weights

from akunu.cli.main import main

torch = pytest.importorskip("torch", reason="FP8 is compared with torch")

pytestmark = pytest.mark.oracle

TOKENS = list(range(0, 330, 7))
# Name of a test: quant_method, what else quantization_config says, the scales' ending, number
# format, and the block that each is of; 0: the whole row or column.
KINDS_OF_SCALES: dict[str, tuple[dict[str, Any], str, Any, tuple[int, int]]] = {
    "of tensors": (
        {"quant_method": "modelopt", "quant_algo": "FP8"},
        "weight_scale",
        torch.float32,
        (0, 0),
    ),
    "of rows": (
        {"quant_method": "compressed-tensors", "format": "float-quantized"},
        "weight_scale",
        torch.bfloat16,
        (1, 0),
    ),
    "of blocks": (
        {"quant_method": "fp8", "weight_block_size": [24, 48]},
        "weight_scale_inv",
        torch.float32,
        (24, 48),
    ),
}


def eighths(data: Any, block: tuple[int, int]) -> tuple[Any, Any]:
    """A matrix in FP8 with the scales by which each block's largest number is 448."""
    n, k = data.shape
    rows, columns = block[0] or n, block[1] or k
    padded = torch.nn.functional.pad(data, (0, -k % columns, 0, -n % rows))
    blocks = padded.reshape(padded.shape[0] // rows, rows, padded.shape[1] // columns, columns)
    scales = blocks.abs().amax((1, 3)) / 448
    return scales, rows_and_columns(scales, block, data.shape)


def rows_and_columns(scales: Any, block: tuple[int, int], shape: tuple[int, int]) -> Any:
    """Each number's scale."""
    rows, columns = block[0] or shape[0], block[1] or shape[1]
    spread = scales.repeat_interleave(rows, 0).repeat_interleave(columns, 1)
    return spread[: shape[0], : shape[1]]


def written(folder: Path, kind: str) -> tuple[Path, dict[str, Any]]:
    """The directory, and its matrices as torch expands them to bfloat16."""
    method, ending, dtype, block = KINDS_OF_SCALES[kind]
    spec = KINDS["llama-32"]
    weights = random_weights(spec, seed=5)
    hf_directory.write(folder, spec, weights, changes={"quantization_config": method})
    tensors: dict[str, tuple[str, tuple[int, ...], bytes]] = {}
    expanded = {}
    for name, data in weights.items():
        if "proj" not in name:
            tensors[name] = ("F32", data.shape, data.tobytes())
            continue
        matrix = torch.from_numpy(data)
        scales = eighths(matrix, block)[0].to(dtype)
        spread = rows_and_columns(scales.float(), block, data.shape)
        codes = (matrix / spread).clamp(-448, 448).to(torch.float8_e4m3fn)
        if "layers.0.mlp.up_proj" in name:  # every code but those of NaN
            numbers = torch.arange(256, dtype=torch.uint8)
            codes.view(torch.uint8).reshape(-1)[:254] = numbers[(numbers & 127) != 127]
        expanded[name] = (codes.float() * spread).to(torch.bfloat16)
        stored = scales.reshape(()) if kind == "of tensors" else scales
        numbers_of = {torch.float32: "F32", torch.bfloat16: "BF16"}[dtype]
        tensors[name] = ("F8_E4M3", data.shape, codes.view(torch.uint8).numpy().tobytes())
        tensors[name.replace("weight", ending)] = (
            numbers_of,
            tuple(stored.shape),
            stored.contiguous().view(torch.uint8).numpy().tobytes()
            if stored.dim()
            else stored.reshape(1).view(torch.uint8).numpy().tobytes(),
        )
    hf_directory.write_safetensors(folder / "model.safetensors", tensors)
    return folder, expanded


@pytest.mark.parametrize("kind", KINDS_OF_SCALES)
def test_convert_writes_the_bfloats_that_torch_makes_of_fp8(tmp_path: Path, kind: str) -> None:
    folder, expanded = written(tmp_path / "model", kind)
    target = tmp_path / "made.gguf"
    assert main(["convert", str(folder), str(target)]) == 0
    spec = KINDS["llama-32"]
    made = {tensor.name: tensor for tensor in GGUFReader(target).tensors}
    for name, values in expanded.items():
        tensor = made[gguf_name(name)]
        assert tensor.tensor_type == GGMLQuantizationType.BF16
        bits = values.view(torch.int16).numpy().view(np.uint16)
        if "q_proj" in name or "k_proj" in name:
            bits = interleave(bits, spec.n_heads if "q_proj" in name else spec.n_kv_heads)
        np.testing.assert_array_equal(tensor.data.view(np.uint16).reshape(bits.shape), bits, name)
    with opened(folder) as one, opened(target) as other:
        # Rows beside weights in BF16 are rounded to it, those of Q and K in another order.
        assert relative_error(one.logits(TOKENS), other.logits(TOKENS)) <= 25 * BOUND_F32_CACHE


@pytest.mark.parametrize("kind", KINDS_OF_SCALES)
@pytest.mark.parametrize("type_name", ["Q8_0", "Q4_K_M"])
def test_quantize_makes_of_fp8_what_it_makes_of_those_bfloats(
    tmp_path: Path, kind: str, type_name: str
) -> None:
    folder, expanded = written(tmp_path / "model", kind)
    straight, whole, twice = (tmp_path / f"{name}.gguf" for name in ("straight", "whole", "twice"))
    assert main(["quantize", str(folder), str(straight), type_name]) == 0
    assert main(["convert", str(folder), str(whole)]) == 0
    assert main(["quantize", str(whole), str(twice), type_name]) == 0
    made, expected = (
        {tensor.name: tensor for tensor in GGUFReader(path).tensors} for path in (straight, twice)
    )
    assert made.keys() == expected.keys()
    for name, tensor in made.items():
        np.testing.assert_array_equal(tensor.data, expected[name].data, name)
    down = "model.layers.1.mlp.down_proj.weight"
    # Half a step of each block's scale; where that was rounded down to a half, 127 steps of it end
    # before the block's largest number.
    if type_name == "Q8_0":
        values = expanded[down].float().numpy().reshape(-1, 32)
        blocks = np.asarray(made[gguf_name(down)].data).reshape(-1, 34)
        scale = blocks[:, :2].copy().view(np.float16).astype(np.float32)
        left = np.abs(scale * blocks[:, 2:].view(np.int8) - values)
        assert (left <= np.abs(scale) * (0.5 + 127 * 2**-11)).all()


def test_a_directory_in_fp8_without_its_scales_is_refused_by_name(
    tmp_path: Path, capsys: Any
) -> None:
    folder, _ = written(tmp_path / "model", "of blocks")
    path = folder / "model.safetensors"
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    gone = next(name for name in header if name.endswith("weight_scale_inv"))
    text = json.dumps({k if k != gone else k[:-4] + "inx": v for k, v in header.items()}).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + size :])
    assert main(["convert", str(folder), str(tmp_path / "made.gguf")]) != 0
    said = capsys.readouterr().err
    assert gone.removesuffix("_scale_inv") in said
    assert "scale" in said
