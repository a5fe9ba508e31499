"""What the cache keeps of a model with latent attention, and files of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dense_golden
import gguf
import hf_directory
import numpy as np
import pytest
import quantised_tensors as quantised
from dense_golden import N_COLUMNS, POSITIONS, TOKENS, changed
from engine import BOUND_F16_CACHE, BOUND_F32_CACHE, finished, opened, start
from latent_files import newer

import akunu
from akunu.convert.directory_source import DirectorySource
from akunu.convert.quantizing import Quantization, Wishes
from akunu.convert.recipes import RECIPES
from akunu.errors import ModelFormatError, UnsupportedModelError

PAGE = 256
LATENT = 64 + 16  # numbers of a position in a layer
LAYERS, HEADS, PLAIN, VALUE, RANK = 4, 6, 24, 32, 64


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return dense_golden.write(tmp_path / "model", dense_golden.load("deepseek2"))


def converted(folder: Path, recipe: str = "F32") -> Path:
    target = folder.parent / f"{recipe}.gguf"
    Quantization(DirectorySource(folder), Wishes(recipe=RECIPES[recipe])).write(target)
    return target


def error_of(logits: Any) -> float:
    golden = dense_golden.load("deepseek2")
    found = logits[list(POSITIONS), :N_COLUMNS]
    return float(np.abs(found - np.array(golden.logits)).max() / golden.largest)


@pytest.mark.parametrize(("kv_type", "bytes_per_number"), [("f32", 4), ("f16", 2)])
def test_the_cache_keeps_one_row_of_a_position(
    folder: Path, kv_type: str, bytes_per_number: int
) -> None:
    with opened(folder, kv_type=kv_type) as model:
        assert model.memory["cache"] == 512 * LAYERS * LATENT * bytes_per_number
        assert model.config.latent_rank == RANK
        assert model.config.cache_dim == LATENT
        assert model.config.n_heads == model.config.n_kv_heads == HEADS


def test_as_many_pages_as_memory_has_room_for(folder: Path) -> None:
    page = PAGE * LAYERS * LATENT * 2
    with opened(folder, kv_type="f16", kv_memory=5 * page + page // 2, context=PAGE) as model:
        assert model.memory["cache"] == 5 * page
        assert model.occupancy.cache[0].free == 5


@pytest.mark.parametrize("kv_type", ["f32", "f16"])
def test_a_prefix_is_taken_over(folder: Path, kv_type: str) -> None:
    """Whole pages are shared, and what is left of one is copied."""
    with (
        akunu.load(folder, context=768, kv_type=kv_type, prefix_cache=False) as cold,
        akunu.load(folder, context=768, kv_type=kv_type) as warm,
    ):
        for n in (1, 255, 256, 300):
            shared = TOKENS[:n]
            finished(start(warm, [*shared, 3, *TOKENS[:20]], 5))
            prompt = [*shared, 4, *TOKENS[40:70]]
            generation = start(warm, prompt, 12)
            expected = finished(start(cold, prompt, 12))
            assert finished(generation) == expected
            assert generation.cached_tokens >= n


@pytest.mark.parametrize("number_format", ["F32", "F16", "BF16", "Q8_0"])
def test_newer_files_have_the_same_logits(folder: Path, number_format: str) -> None:
    path = newer(converted(folder), folder.parent / "new.gguf", number_format)
    with opened(path) as model:
        logits = model.logits(TOKENS)
        notes = [note for note in model.notes if "latent attention" in note]
    if number_format == "F32":
        assert error_of(logits) <= BOUND_F32_CACHE
    # Of Q8_0, the rounding of the weights themselves is in it.
    assert error_of(logits) <= {"BF16": 4 * BOUND_F16_CACHE, "Q8_0": 1e-1}.get(
        number_format, BOUND_F16_CACHE
    )
    assert len(notes) == (number_format == "Q8_0")


def test_what_is_quantised_is_expanded_exactly(folder: Path) -> None:
    """A file in Q8_0 has the logits of one whose absorbed matrices are the same, in F32."""
    path = converted(folder, "Q8_0")
    reader = gguf.GGUFReader(path)
    target = folder.parent / "expanded.gguf"
    writer = gguf.GGUFWriter(target, "deepseek2")
    for field in reader.fields.values():
        if not field.name.startswith("GGUF.") and field.name != "general.architecture":
            kind = field.types[0]
            items = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(field.name, field.contents(), kind, sub_type=items)
    for tensor in reader.tensors:
        if tensor.name.endswith("attn_kv_b.weight"):
            assert tensor.tensor_type == gguf.GGMLQuantizationType.Q8_0
            writer.add_tensor(tensor.name, gguf.dequantize(tensor.data, tensor.tensor_type))
        else:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with opened(path) as model, opened(target) as expanded:
        mib = LAYERS * HEADS * (PLAIN + VALUE) * RANK * 4 / 2**20
        assert [note for note in model.notes if "latent" in note] == [
            f"{LAYERS} quantised tensors, which latent attention absorbs, were expanded to F32 and "
            f"take {mib:.1f} MiB"
        ]
        assert expanded.notes == ()
        np.testing.assert_array_equal(model.logits(TOKENS[:50]), expanded.logits(TOKENS[:50]))


@pytest.mark.parametrize(("bits", "group", "scale"), [(4, 64, "F16"), (6, 32, "BF16")])
def test_groups_of_mlx_are_expanded(tmp_path: Path, bits: int, group: int, scale: str) -> None:
    """All else in F32: so the numbers are those that the groups stand for, and no others."""
    golden = dense_golden.load("deepseek2")
    logits = []
    for is_quantised in (True, False):
        folder = dense_golden.write(tmp_path / str(is_quantised), golden)
        tensors: dict[str, Any] = {}
        for name, shape in golden.shapes.items():
            data = dense_golden.tensor_of(name, tuple(shape))
            if name.endswith("kv_b_proj.weight"):
                parts, data = quantised.affine(name, data, bits, group, scale)
                if is_quantised:
                    tensors |= parts
                    continue
            tensors[name] = ("F32", data.shape, hf_directory.stored(data, "F32"))
        hf_directory.write_safetensors(folder / "model.safetensors", tensors)
        if is_quantised:
            changed(folder, quantization={"bits": bits, "group_size": group})
        with opened(folder) as model:
            logits.append(model.logits(TOKENS[:50]))
    np.testing.assert_array_equal(*logits)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "experts": (
        {"first_k_dense_replace": 3, "num_experts_per_tok": 6},
        "tensor layers.3.ffn.router.weight is missing",
    ),
    "experts, unsaid": (
        {"first_k_dense_replace": None},
        "config.json: num_experts_per_tok is missing",
    ),
    "some layers with experts": (
        {"first_k_dense_replace": 0, "num_experts_per_tok": 6, "moe_layer_freq": 2},
        "config.json: moe_layer_freq is 2; akunu has experts in every layer behind the first few",
    ),
    "another choice of experts": (
        {"first_k_dense_replace": 0, "num_experts_per_tok": 6, "topk_method": "noaux_tc"},
        'config.json: topk_method is "noaux_tc"; akunu has "greedy" and "group_limited_greedy"',
    ),
    "other scores": (
        {"first_k_dense_replace": 0, "num_experts_per_tok": 6, "scoring_func": "sigmoid"},
        'config.json: scoring_func is "sigmoid"; akunu has "softmax" for deepseek_v2',
    ),
    "weights normalised": (
        {"first_k_dense_replace": 0, "num_experts_per_tok": 6, "norm_topk_prob": True},
        "config.json: norm_topk_prob is true; DeepSeek's code and transformers differ",
    ),
    "another rank": ({"kv_lora_rank": 63}, "attention.kv_a.weight is [80, 96]"),
    "no rank": ({"kv_lora_rank": 0}, "config.json: kv_lora_rank is 0; it must be 1 or more"),
    "another value": ({"v_head_dim": 31}, "attention.kv_b.weight is [336, 64]"),
    "another head": ({"qk_nope_head_dim": 25}, "is [240, 96]"),
    "queries that are not compressed": ({"q_lora_rank": 0}, "config.json: q_lora_rank is 0"),
    "a part that rotates": (
        {"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5}},
        "partial_rotary_factor",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused(folder: Path, case: str) -> None:
    keys, message = REFUSED[case]
    with pytest.raises((ModelFormatError, UnsupportedModelError)) as raised:
        akunu.load(changed(folder, **keys))
    assert message in str(raised.value)


REFUSED_GGUF: dict[str, tuple[dict[str, Any], str]] = {
    "no rank": ({"attention.kv_lora_rank": None}, "the key deepseek2.attention.kv_lora_rank is"),
    "half of the lengths": (
        {"attention.value_length_mla": None},
        "deepseek2.attention.value_length_mla one is missing",
    ),
    "two kv heads": ({"attention.head_count_kv": 2}, "head_count_kv is 2; latent attention has 1"),
    "a cached row": (
        {"attention.key_length": 81},
        "key_length is 81; what latent attention caches",
    ),
    "experts": ({"expert_count": 8}, "the key deepseek2.expert_used_count is missing or 0"),
    "no multiplier": (
        {"rope.scaling.yarn_log_multiplier": None},
        "deepseek2.rope.scaling.yarn_log_multiplier is not there",
    ),
}


@pytest.mark.parametrize("case", REFUSED_GGUF)
def test_files_that_make_no_sense_are_refused(folder: Path, case: str) -> None:
    keys, message = REFUSED_GGUF[case]
    path = newer(converted(folder), folder.parent / "new.gguf", **keys)
    with pytest.raises((ModelFormatError, UnsupportedModelError)) as raised:
        akunu.load(path)
    assert message in str(raised.value)


def test_texts_are_not_embedded(folder: Path) -> None:
    (folder / "modules.json").write_text(
        json.dumps(
            [
                {
                    "idx": 0,
                    "name": "0",
                    "path": "",
                    "type": "sentence_transformers.models.Transformer",
                }
            ]
        )
    )
    with pytest.raises(UnsupportedModelError, match="latent attention is not supported where"):
        akunu.load(folder)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {
                "rope_parameters": {
                    "rope_type": "yarn",
                    "factor": 4.0,
                    "mscale": 1.0,
                    "mscale_all_dim": 0.5,
                    "rope_theta": 10000.0,
                    "original_max_position_embeddings": 64,
                }
            },
            "mscale and mscale_all_dim are not the same number",
        ),
        (
            {
                "rope_parameters": {
                    "rope_type": "yarn",
                    "factor": 4.0,
                    "rope_theta": 10000.0,
                    "original_max_position_embeddings": 64,
                }
            },
            "mscale and mscale_all_dim are not the same number",
        ),
        ({"model_type": "deepseek_v3", "rope_interleave": False}, "rope_interleave is false"),
    ],
)
def test_what_gguf_cannot_say_is_not_converted(
    folder: Path, keys: dict[str, Any], message: str
) -> None:
    with opened(changed(folder, **keys)) as model:
        assert np.isfinite(model.logits(TOKENS[:5])).all()
    with pytest.raises(UnsupportedModelError, match=message):
        converted(folder)


def test_an_adapter_of_what_is_absorbed_is_refused(folder: Path, tmp_path: Path) -> None:
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text(
        json.dumps({"peft_type": "LORA", "r": 2, "lora_alpha": 2, "target_modules": ["kv_b_proj"]})
    )
    stem = "base_model.model.model.layers.0.self_attn.kv_b_proj.lora_"
    shapes = {"A": (2, RANK), "B": (HEADS * (PLAIN + VALUE), 2)}
    tensors = {
        f"{stem}{letter}.weight": ("F32", shape, np.ones(shape, np.float32).tobytes())
        for letter, shape in shapes.items()
    }
    hf_directory.write_safetensors(adapter / "adapter_model.safetensors", tensors)
    with pytest.raises(UnsupportedModelError, match="of latent attention also q_a, q_b and kv_a"):
        akunu.load(folder, adapters={"a": adapter})
