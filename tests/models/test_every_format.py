"""Every architecture in every number format on every device, beside NumPy in double.

With AKUNU_MODELS_RESULTS, the name of a file, each measured error is a line of JSON in it:
`python -m tools.models_page` makes docs/reference/models.md of those.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import encoder_models
import gguf_file
import hf_directory
import numpy as np
import pytest
from engine import BOUND_F32_CACHE, HERE, opened, relative_error
from gguf.quants import dequantize, quantize
from measured_errors import record
from numpy.typing import NDArray
from numpy_forward import NumpyModel
from quantised_tensors import affine, fp8, mxfp4
from random_models import KINDS, ModelSpec, random_tokens, random_weights

import akunu

pytestmark = pytest.mark.slow

_WIDE = {"dim": 256, "n_heads": 4, "n_kv_heads": 2, "head_dim": 64, "ffn_dim": 512}
SPECS: dict[str, ModelSpec] = {
    "llama": KINDS["llama-256"],
    "qwen2": replace(KINDS["qwen2-32"], **_WIDE),
    "qwen3": KINDS["qwen3-256"],
    "phi3": replace(KINDS["phi3-32"], **_WIDE),
    "gemma": replace(KINDS["gemma"], **_WIDE),
    "gemma2": replace(KINDS["gemma2-32"], **_WIDE),
    "gemma3": KINDS["gemma3-256"],
}
ENCODERS = {
    name: encoder_models.EncoderSpec(dim=256, ffn_dim=512, architecture=name)
    for name in ("bert", "nomic-bert")
}
GGUF_FORMATS = (
    *("f32", "f16", "bf16", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0"),
    *("q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_nl", "iq4_xs", "mxfp4", "nvfp4"),
    *("iq3_s", "iq3_xxs", "iq2_s", "iq2_xs", "iq2_xxs"),
)
MLX_FORMATS = (*(f"mlx {bits} bits" for bits in (2, 3, 4, 5, 6, 8)), "mlx mxfp4")
DIRECTORY_FORMATS = ("F32", "F16", "BF16", "FP8", *MLX_FORMATS)

# Of logits beside the largest; the CPU rounds inputs to int8, beside MLX's weights to 14 bits; a
# GPU multiplies floats.
BOUND = {"cpu": 0.06}
SEED = 4


def check(architecture: str, number_format: str, device: str, found: Any, expected: Any) -> None:
    error = relative_error(found, expected)
    record(architecture, number_format, device, error)
    # With weights in halves, rows beside them are rounded to halves.
    halves = 20 * BOUND_F32_CACHE
    bound = halves if number_format.startswith("MLX") else BOUND.get(device, halves)
    assert error <= (BOUND_F32_CACHE if number_format.lower() == "gguf f32" else bound)


@pytest.fixture(scope="module")
def gguf_case(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Any]:
    """`case(architecture, format)`: a file, tokens and their logits; made once."""
    folder = tmp_path_factory.mktemp("gguf")

    @functools.lru_cache
    def make(architecture: str, number_format: str) -> Any:
        spec = SPECS[architecture]
        path = folder / f"{architecture}-{number_format}.gguf"
        gguf_file.write(path, spec, random_weights(spec, seed=SEED), number_format)
        tokens = random_tokens(spec, 48, seed=SEED)
        return path, tokens, NumpyModel(path).logits(tokens)

    return make


@pytest.mark.parametrize("device", HERE)
@pytest.mark.parametrize("number_format", GGUF_FORMATS)
@pytest.mark.parametrize("architecture", SPECS)
def test_gguf(
    gguf_case: Callable[[str, str], Any], architecture: str, number_format: str, device: str
) -> None:
    path, tokens, expected = gguf_case(architecture, number_format)
    with opened(path, device=device) as model:
        logits = model.logits(tokens)
    check(architecture, f"GGUF {number_format.upper()}", device, logits, expected)


def quantised(number_format: str, name: str, data: NDArray[np.float32]) -> Any:
    """A tensor as safetensors have it: its parts, and the numbers that they stand for."""
    if number_format == "mlx mxfp4":
        return mxfp4(name, data)
    if number_format.startswith("mlx"):
        return affine(name, data, int(number_format.split()[1]), 64, "BF16")
    if number_format == "FP8" and "proj" in name:
        return fp8(name, data)
    dtype = "F32" if number_format == "FP8" else number_format
    stored = hf_directory.stored(data, dtype)
    if dtype == "BF16":
        bits = np.frombuffer(stored, np.uint16).astype(np.uint32) << 16
        values = bits.view(np.float32)
    else:
        kind = np.float16 if dtype == "F16" else np.float32
        values = np.frombuffer(stored, kind).astype(np.float32)
    return {name: (dtype, data.shape, stored)}, values.reshape(data.shape)


CONFIGS: dict[str, dict[str, Any]] = {
    "FP8": {"quantization_config": {"quant_method": "fbgemm_fp8"}},
    "mlx mxfp4": {"quantization": {"bits": 4, "group_size": 32, "mode": "mxfp4"}},
    **{
        f"mlx {bits} bits": {"quantization": {"bits": bits, "group_size": 64}}
        for bits in (2, 3, 4, 5, 6, 8)
    },
}


@pytest.fixture(scope="module")
def directory_case(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Any]:
    """The same of a directory: the numbers are those of a float32 file with the same weights."""
    root = tmp_path_factory.mktemp("directories")

    @functools.lru_cache
    def make(architecture: str, number_format: str) -> Any:
        spec = SPECS[architecture]
        folder = root / f"{architecture}-{number_format}".replace(" ", "-")
        weights = random_weights(spec, seed=SEED)
        tensors: dict[str, Any] = {}
        numbers = dict(weights)
        for name, data in hf_directory.hf_weights(spec, weights).items():
            if data.ndim == 1:
                tensors[name] = ("F32", data.shape, data.tobytes())
                continue
            parts, numbers[name] = quantised(number_format, name, data)
            tensors |= parts
        hf_directory.write(folder, spec, {}, changes=CONFIGS.get(number_format))
        hf_directory.write_safetensors(folder / "model.safetensors", joined(spec, tensors))
        twin = root / f"{folder.name}.gguf"
        gguf_file.write(twin, spec, numbers, "f32")
        tokens = random_tokens(spec, 48, seed=SEED)
        return folder, tokens, NumpyModel(twin).logits(tokens)

    return make


def joined(spec: ModelSpec, tensors: dict[str, Any]) -> dict[str, Any]:
    """Of Phi-3, Q, K and V as one tensor, and gate and up."""
    if spec.architecture != "phi3":
        return tensors
    result: dict[str, Any] = {}
    wholes = {"q_proj": "qkv_proj", "k_proj": "qkv_proj", "v_proj": "qkv_proj"}
    wholes |= {"gate_proj": "gate_up_proj", "up_proj": "gate_up_proj"}
    for name, (dtype, shape, data) in tensors.items():
        for part, whole in wholes.items():
            if f".{part}." in name:
                name = name.replace(part, whole)
                break
        if name in result:
            _, (n, *rest), before = result[name]
            shape, data = (n + shape[0], *rest), before + data
        result[name] = (dtype, shape, data)
    return result


@pytest.mark.parametrize("device", HERE)
@pytest.mark.parametrize("number_format", DIRECTORY_FORMATS)
@pytest.mark.parametrize("architecture", SPECS)
def test_directory(
    directory_case: Callable[[str, str], Any], architecture: str, number_format: str, device: str
) -> None:
    folder, tokens, expected = directory_case(architecture, number_format)
    try:
        with opened(folder, device=device) as model:
            logits = model.logits(tokens)
    except akunu.UnsupportedModelError as error:
        assert device != "cpu"
        pytest.skip(str(error))
    check(architecture, _named(number_format), device, logits, expected)


def _named(number_format: str) -> str:
    """How the table calls a format of directories."""
    if number_format in MLX_FORMATS:
        return number_format.replace("mlx", "MLX")
    return f"safetensors {number_format}"


@pytest.mark.parametrize("device", HERE)
@pytest.mark.parametrize("number_format", ["f32", *encoder_models.QUANTISED])
@pytest.mark.parametrize("architecture", ENCODERS)
def test_encoders(tmp_path: Path, architecture: str, number_format: str, device: str) -> None:
    spec = ENCODERS[architecture]
    tensors = encoder_models.random_tensors(spec, SEED)
    path = encoder_models.write_gguf(tmp_path / "model.gguf", spec, tensors, weights=number_format)
    if number_format != "f32":
        kind = encoder_models.QUANTISED[number_format]
        tensors = {
            name: dequantize(quantize(data, kind), kind).reshape(data.shape)
            if data.ndim > 1 and "position" not in name and "token_type" not in name
            else data
            for name, data in tensors.items()
        }
    with akunu.load(path, device=device, threads=1) as model:
        text = "a b cat dogs c " * 8
        ids = model.tokenizer.encode(text)
        found = model.embed(text, pooling="mean", normalize=False)
    expected = encoder_models.pooled(encoder_models.forward(spec, tensors, ids), "mean")
    check(architecture, f"GGUF {number_format.upper()}", device, found, expected)
