"""Directories with quantised weights, beside twins that hold the same numbers as float32."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hf_directory
import numpy as np
import pytest
from engine import BOUND_F32_CACHE, GPUS, opened, relative_error
from numpy.typing import NDArray
from quantised_tensors import Parts, Quantise, affine, fp8_values, kept
from random_models import KINDS, ModelSpec, random_weights

import akunu
from lines import each_line

TOKENS = list(range(0, 330, 7))
# MLX's weights meet inputs of 14 bits on the CPU, as halves do in prompts.
BOUND_14_BITS = 5 * BOUND_F32_CACHE


def twins(
    tmp_path: Path, kind: str, quantise: Quantise, changes: dict[str, Any]
) -> tuple[Path, Path]:
    """Write a model whose matrices are quantised, and the same numbers in float32."""
    spec: ModelSpec = KINDS[kind]
    weights = random_weights(spec, seed=1)
    tensors: Parts = {}
    numbers = dict(weights)
    for name, data in hf_directory.hf_weights(spec, weights).items():
        if data.ndim == 1:
            tensors[name] = ("F32", data.shape, data.tobytes())
            continue
        parts, numbers[name] = quantise(name, data)
        tensors |= parts
    floats = hf_directory.write(tmp_path / "floats", spec, numbers)
    folder = tmp_path / "quantised"
    folder.mkdir()
    config = hf_directory.config_of(spec) | changes
    (folder / "config.json").write_text(json.dumps(config))
    hf_directory.write_tokenizer(folder, spec.vocab_size)
    hf_directory.write_safetensors(folder / "model.safetensors", tensors)
    return folder, floats


@each_line("scale", ["F16", "BF16", "F32"])
@each_line(("bits", "group"), [(2, 32), (3, 64), (4, 128), (5, 32), (6, 64), (8, 128)])
def test_mlx_groups_compute_what_their_numbers_say(
    tmp_path: Path, bits: int, group: int, scale: str
) -> None:
    quantised, floats = twins(
        tmp_path,
        "llama-256",
        lambda name, data: affine(name, data, bits, group, scale),
        {"quantization": {"bits": bits, "group_size": group, "mode": "affine"}},
    )
    with opened(quantised) as model:
        logits = model.logits(TOKENS)
        assert model.notes == ()
    with opened(floats) as model:
        assert relative_error(logits, model.logits(TOKENS)) <= BOUND_14_BITS


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize(
    ("bits", "group", "scale"),
    [(2, 64, "F16"), (3, 32, "BF16"), (4, 64, "BF16"), (5, 128, "F32"), (6, 32, "F16")],
)
def test_mlx_groups_on_a_gpu_compute_what_their_numbers_say(
    tmp_path: Path, gpu: str, bits: int, group: int, scale: str
) -> None:
    def quantise(name: str, data: NDArray[np.float32]) -> tuple[Parts, NDArray[np.float32]]:
        return affine(name, data, *((8, 64) if "embed" in name else (bits, group)), scale)

    quantised, floats = twins(
        tmp_path,
        "qwen3-256",
        quantise,
        {
            "quantization": {
                "bits": bits,
                "group_size": group,
                "model.embed_tokens": {"bits": 8, "group_size": 64},
            }
        },
    )
    with opened(quantised, device=gpu) as model:
        logits = model.logits(TOKENS)
    with opened(floats, device=gpu) as model:
        assert relative_error(logits, model.logits(TOKENS)) <= BOUND_F32_CACHE


def test_layers_may_have_groups_of_their_own_or_none(tmp_path: Path) -> None:
    def quantise(name: str, data: NDArray[np.float32]) -> tuple[Parts, NDArray[np.float32]]:
        if "down_proj" in name:
            return {name: ("F32", data.shape, data.tobytes())}, data
        if ".1.self_attn" in name:
            return affine(name, data, 6, 32, "F16")
        return affine(name, data, 3, 64, "F16")

    own = {
        f"model.layers.1.self_attn.{part}_proj": {"bits": 6, "group_size": 32} for part in "qkvo"
    }
    off = {f"model.layers.{layer}.mlp.down_proj": False for layer in range(3)}
    quantised, floats = twins(
        tmp_path,
        "llama-256",
        quantise,
        {"quantization": {"bits": 3, "group_size": 64, **own, **off}},
    )
    with opened(quantised) as model:
        logits = model.logits(TOKENS)
    with opened(floats) as model:
        assert relative_error(logits, model.logits(TOKENS)) <= BOUND_14_BITS


# Of `mixed` below: the entries of config.json, whose names are none of the file's.
PREFIXED: dict[str, Callable[[str], str | None]] = {
    "without model.": lambda layer: layer.removeprefix("model."),
    "with language_model.": lambda layer: f"language_model.{layer}",
    "with language_model. inside": lambda layer: layer.replace("model.", "model.language_model."),
    "without any": lambda layer: None,
}


def mixed(name: str, usual: tuple[int, int]) -> tuple[int, int]:
    """Bits and group of a tensor: its own, or the usual ones."""
    if "embed_tokens" in name:
        return 8, usual[1]
    if "v_proj" in name:
        return 6, usual[1]
    return (usual[0], 32) if "down_proj" in name and usual[0] != 4 else usual


@each_line("names", PREFIXED)
@each_line("usual", [(4, 64), (3, 64), (5, 128)])
def test_mixed_bits_need_no_entry_by_the_files_names(
    tmp_path: Path, names: str, usual: tuple[int, int]
) -> None:
    own: dict[str, Any] = {}

    def quantise(name: str, data: NDArray[np.float32]) -> tuple[Parts, NDArray[np.float32]]:
        bits, group = mixed(name, usual)
        key = PREFIXED[names](name.removesuffix(".weight"))
        if key is not None and (bits, group) != usual:
            own[key] = {"bits": bits, "group_size": group}
        return affine(name, data, bits, group, "F16")

    changes = {"quantization": own | {"bits": usual[0], "group_size": usual[1]}}
    quantised, floats = twins(tmp_path, "llama-256", quantise, changes)
    own |= changes["quantization"]
    config = json.loads((quantised / "config.json").read_text())
    (quantised / "config.json").write_text(json.dumps(config | {"quantization": own}))
    with opened(quantised) as model:
        logits = model.logits(TOKENS)
        assert model.notes == ()
    with opened(floats) as model:
        assert relative_error(logits, model.logits(TOKENS)) <= BOUND_14_BITS


def test_an_entry_by_another_name_tells_shapes_apart_that_are_alike(tmp_path: Path) -> None:
    """Groups of 64 at 4 bits, and of 32 at 8: as many words for each scale.

    Of projections that read the text's rows, the number of columns is known without one.
    """

    def quantise(name: str, data: NDArray[np.float32]) -> tuple[Parts, NDArray[np.float32]]:
        is_other = "o_proj" in name or "k_proj" in name or "embed" in name
        return affine(name, data, *((8, 32) if is_other else (4, 64)), "F16")

    own = {f"layers.{i}.self_attn.o_proj": {"bits": 8, "group_size": 32} for i in range(3)}
    changes = {"quantization": {"bits": 4, "group_size": 64, **own}}
    quantised, floats = twins(tmp_path, "llama-256", quantise, changes)
    with opened(quantised) as model:
        logits = model.logits(TOKENS)
    with opened(floats) as model:
        assert relative_error(logits, model.logits(TOKENS)) <= BOUND_14_BITS


@each_line(
    "real, said, message",
    [
        ((3, 64), (4, 128), "o_proj.* has groups of 32 at 6 bits or 64 at 3 bits by its shape"),
        ((4, 64), (3, 32), None),  # 32 at 8 bits is what the group says: too wide for the model
    ],
)
def test_shapes_that_tell_too_little_are_refused(
    tmp_path: Path, real: tuple[int, int], said: tuple[int, int], message: str | None
) -> None:
    def quantise(name: str, data: NDArray[np.float32]) -> tuple[Parts, NDArray[np.float32]]:
        return affine(name, data, *(real if "o_proj" in name else said), "F16")

    changes = {"quantization": {"bits": said[0], "group_size": said[1]}}
    quantised, _ = twins(tmp_path, "llama-256", quantise, changes)
    with (
        pytest.raises(akunu.ModelFormatError, match=message or r"tensor .*weight"),
        opened(quantised),
    ):
        pass


def test_scales_that_no_groups_fit_are_refused(tmp_path: Path) -> None:
    def quantise(name: str, data: NDArray[np.float32]) -> tuple[Parts, NDArray[np.float32]]:
        parts, values = affine(name, data, 4, 64, "F16")
        for ending in ("scales", "biases"):
            part = f"{name.removesuffix('.weight')}.{ending}"
            parts[part] = ("F16", (len(data), 3), parts[part][2][: 6 * len(data)])
        return parts, values

    changes = {"quantization": {"bits": 4, "group_size": 64}}
    quantised, _ = twins(tmp_path, "llama-256", quantise, changes)
    message = r"scales is \[\d+, 3\]; \[\d+, 4\] is needed"
    with pytest.raises(akunu.ModelFormatError, match=message), opened(quantised):
        pass


@pytest.mark.parametrize("scales", ["of blocks", "of rows", "of all"])
def test_fp8_is_expanded_to_what_its_numbers_say(tmp_path: Path, scales: str) -> None:
    table = fp8_values()
    order = np.argsort(np.nan_to_num(table, nan=np.inf), kind="stable")[:254]

    def quantise(name: str, data: NDArray[np.float32]) -> tuple[Parts, NDArray[np.float32]]:
        if "proj" not in name:
            return {name: ("F32", data.shape, data.tobytes())}, data
        n, k = data.shape
        blocks = {"of blocks": (32, 48), "of rows": (1, k), "of all": (n, k)}[scales]
        grid = np.random.RandomState(1).uniform(
            0.001, 0.003, (-(-n // blocks[0]), -(-k // blocks[1]))
        )
        scale = grid.astype(np.float32)
        each = np.repeat(np.repeat(scale, blocks[0], 0)[:n], blocks[1], 1)[:, :k]
        nearest = np.searchsorted(table[order], data / each).clip(0, 253)
        codes = order[nearest].astype(np.uint8)
        ending = "weight_scale_inv" if scales == "of blocks" else "weight_scale"
        shape = () if scales == "of all" else scale.shape
        parts: Parts = {
            name: ("F8_E4M3", (n, k), codes.tobytes()),
            name.replace("weight", ending): ("F32", shape, scale.tobytes()),
        }
        return parts, kept(table[codes] * each, "BF16")

    method = "fp8" if scales == "of blocks" else "fbgemm_fp8"
    quantised, floats = twins(
        tmp_path,
        "llama-32",
        quantise,
        {"quantization_config": {"quant_method": method, "weight_block_size": [32, 48]}},
    )
    with opened(quantised) as model:
        logits = model.logits(TOKENS)
        assert model.notes[0].startswith("21 tensors in FP8 were expanded to BF16 and take ")
    with opened(floats) as model:
        # Rows beside weights in BF16 are rounded, too.
        assert relative_error(logits, model.logits(TOKENS)) <= 25 * BOUND_F32_CACHE


WRONG: list[tuple[dict[str, Any], type[akunu.AkunuError], str]] = [
    ({"quantization": {"bits": 7, "group_size": 64}}, akunu.UnsupportedModelError, "bits is 7; ak"),
    (
        {"quantization": {"bits": 4, "group_size": 16}},
        akunu.UnsupportedModelError,
        "quantization.group_size is 16; akunu has 32, 64 and 128",
    ),
    ({"quantization": {"bits": 4}}, akunu.ModelFormatError, "quantization.group_size is missing"),
    (
        {"quantization": {"bits": 4, "group_size": 64, "mode": "nvfp4"}},
        akunu.UnsupportedModelError,
        'quantization.mode is "nvfp4"; akunu has "affine" and "mxfp4"',
    ),
    ({}, akunu.UnsupportedModelError, "config.json does not say how they are quantised"),
    (
        {"quantization_config": {"quant_method": "gptq", "bits": 4}},
        akunu.UnsupportedModelError,
        'quantization_config.quant_method is "gptq"; akunu has fp8',
    ),
]


@pytest.mark.parametrize(("changes", "error", "message"), WRONG, ids=[each[2] for each in WRONG])
def test_a_quantisation_that_is_wrong_or_missing_is_named(
    tmp_path: Path, changes: dict[str, Any], error: type[akunu.AkunuError], message: str
) -> None:
    quantised, _ = twins(
        tmp_path, "llama-256", lambda name, data: affine(name, data, 4, 64, "F16"), changes
    )
    with pytest.raises(error) as caught:
        akunu.load(quantised)
    assert message in str(caught.value)


@pytest.mark.parametrize("missing", ["scales", "biases"])
def test_a_part_that_is_missing_is_named(tmp_path: Path, missing: str) -> None:
    def quantise(name: str, data: NDArray[np.float32]) -> tuple[Parts, NDArray[np.float32]]:
        parts, values = affine(name, data, 4, 64, "F16")
        if "lm_head" in name:
            del parts[f"lm_head.{missing}"]
        return parts, values

    quantised, _ = twins(
        tmp_path, "llama-256", quantise, {"quantization": {"bits": 4, "group_size": 64}}
    )
    with pytest.raises(akunu.ModelFormatError, match=rf"there is no tensor lm_head\.{missing}"):
        akunu.load(quantised)
