"""What files of Gemma 3n may or must not say; its logits are in test_dense_golden.py."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import dense_golden
import hf_directory
import numpy as np
import pytest
from dense_golden import TOKENS, VOCAB, tensor_of
from engine import BOUND_F32_CACHE, opened, relative_error
from gguf import GGUFReader
from numpy.typing import NDArray

import akunu
from akunu.convert.directory_source import DirectorySource
from akunu.convert.quantizing import Quantization, Wishes
from akunu.convert.recipes import RECIPES
from lines import each_line

FEW = TOKENS[:90]
Tensors = dict[str, NDArray[np.float32]]


def golden(family: str = "gemma3n") -> tuple[dict[str, Any], Tensors]:
    """Its config.json and its tensors."""
    described = dense_golden.load(family)
    tensors = {name: tensor_of(name, tuple(shape)) for name, shape in described.shapes.items()}
    return dict(described.config), tensors


def written(folder: Path, config: dict[str, Any], tensors: Tensors) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    stored = {
        name: ("F32", data.shape, hf_directory.stored(data, "F32"))
        for name, data in tensors.items()
    }
    hf_directory.write_safetensors(folder / "model.safetensors", stored)
    hf_directory.write_tokenizer(folder, VOCAB)
    return folder


def logits_of(path: Path, tokens: list[int] = FEW) -> tuple[NDArray[np.float32], list[str]]:
    with opened(path) as model:
        return model.logits(tokens), list(model.notes)


def converted(folder: Path, target: Path) -> Path:
    Quantization(DirectorySource(folder), Wishes(recipe=RECIPES["F32"])).write(target)
    return target


def test_of_a_model_of_images_and_sounds_the_text_part_loads(tmp_path: Path) -> None:
    config, tensors = golden()
    expected, _ = logits_of(written(tmp_path / "text", config, tensors))
    whole = {
        "model_type": "gemma3n",
        "architectures": ["Gemma3nForConditionalGeneration"],
        "text_config": config,
        "vision_config": {"model_type": "gemma3n_vision"},
        "audio_config": {"model_type": "gemma3n_audio"},
        "audio_soft_tokens_per_image": 188,
        "vision_soft_tokens_per_image": 256,
        "boi_token_id": 5,
        "eoi_token_id": 6,
        "boa_token_id": 7,
        "eoa_token_id": 8,
        "image_token_id": 9,
        "audio_token_id": 10,
        "tie_word_embeddings": True,
    }
    named = {
        name.replace("model.", "model.language_model.", 1): data for name, data in tensors.items()
    }
    for name in ("vision_tower.a", "embed_vision.b", "audio_tower.c", "embed_audio.d"):
        named[f"model.{name}.weight"] = np.ones((2, 2), np.float32)
    found, notes = logits_of(written(tmp_path / "whole", whole, named))
    np.testing.assert_array_equal(found, expected)
    assert sorted(note.partition(" is left out: ")[2] for note in notes) == [
        "it is of an encoder of images, and akunu reads text",
        "it is of an encoder of sounds, and akunu reads text",
    ]


def test_weights_of_keys_that_nobody_reads_are_left_out(tmp_path: Path) -> None:
    """Published files have them."""
    config, tensors = golden()
    expected, _ = logits_of(written(tmp_path / "without", config, tensors))
    for last, like in ((2, 0), (3, 1)):
        for name in ("k_proj", "v_proj", "k_norm"):
            of_own = tensors[f"model.layers.{like}.self_attn.{name}.weight"]
            tensors[f"model.layers.{last}.self_attn.{name}.weight"] = of_own
    found, notes = logits_of(written(tmp_path / "with", config, tensors))
    np.testing.assert_array_equal(found, expected)
    assert len(notes) == 1
    assert "layers.2.self_attn.k_norm.weight (and 5 more) is left out: its layer reads" in notes[0]


def test_what_transformers_takes_where_a_file_says_nothing(tmp_path: Path) -> None:
    """Sparsity of 0.95 in ten layers of models with more: this one has four."""
    config, tensors = golden()
    said = config | {"activation_sparsity_pattern": [0.0] * 4}
    expected, _ = logits_of(written(tmp_path / "said", said, tensors))
    del config["activation_sparsity_pattern"]
    for key in ("altup_num_inputs", "altup_active_idx", "altup_correct_scale", "altup_coef_clip"):
        del config[key]
    found, _ = logits_of(written(tmp_path / "unsaid", config, tensors))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("sparsity", [0.05, 0.5, 0.95, 0.999])
def test_a_part_of_a_normal_distribution_becomes_deviations(
    tmp_path: Path, sparsity: float
) -> None:
    """As `statistics` has its quantiles."""
    from statistics import NormalDist

    config, tensors = golden()
    config |= {"activation_sparsity_pattern": [sparsity] * 4}
    path = converted(written(tmp_path / "model", config, tensors), tmp_path / "made.gguf")
    cuts = GGUFReader(path).fields["gemma3n.activation_sparsity_scale"].contents()
    single = float(np.float32(sparsity))
    assert cuts == pytest.approx([NormalDist().inv_cdf(single)] * 4, rel=1e-6, abs=1e-6)


def test_a_file_has_the_keys_that_llama_cpp_reads(tmp_path: Path) -> None:
    config, tensors = golden()
    path = converted(written(tmp_path / "model", config, tensors), tmp_path / "made.gguf")
    reader = GGUFReader(path)
    keys = {
        name.removeprefix("gemma3n."): field.contents()
        for name, field in reader.fields.items()
        if name.startswith("gemma3n.")
    }
    assert keys["altup.num_inputs"] == 4
    assert keys["altup.active_idx"] == 0
    assert keys["attention.shared_kv_layers"] == 2
    assert keys["embedding_length_per_layer_input"] == 32
    assert keys["attention.sliding_window_pattern"] == [True, False] * 2
    assert [cut == -np.inf for cut in keys["activation_sparsity_scale"]] == [
        part == 0 for part in config["activation_sparsity_pattern"]
    ]
    shapes = {each.name: each.shape.tolist() for each in reader.tensors}
    assert shapes["altup_proj.weight"] == shapes["altup_unembd_proj.weight"] == [96, 96, 3]
    assert shapes["per_layer_token_embd.weight"] == [4 * 32, VOCAB]
    assert shapes["blk.0.altup_router.weight"] == [96, 4]
    assert shapes["blk.0.altup_predict_coef.weight"] == [4, 16]
    assert shapes["blk.0.altup_correct_coef.weight"] == [4, 4]
    assert shapes["blk.0.laurel_l.weight"] == [96, 32]
    # llama.cpp asks for them, and reads none.
    assert shapes["blk.3.attn_k.weight"] == shapes["blk.3.attn_v.weight"] == [96, 64]
    assert shapes["blk.3.attn_k_norm.weight"] == [32]


def test_tokens_behind_the_table_of_layers_are_converted_too(tmp_path: Path) -> None:
    config, tensors = golden()
    tokens = [VOCAB - 1, 3, config["vocab_size_per_layer_input"], 5, VOCAB - 20 - 1]
    folder = written(tmp_path / "model", config, tensors)
    expected, _ = logits_of(folder, tokens)
    found, _ = logits_of(converted(folder, tmp_path / "made.gguf"), tokens)
    np.testing.assert_array_equal(found, expected)


def test_of_a_model_that_scales_no_streams_the_scales_are_left_out(tmp_path: Path) -> None:
    config, tensors = golden()
    config["altup_correct_scale"] = False
    found, notes = logits_of(written(tmp_path / "with", config, tensors))
    assert len(notes) == 1
    assert "correct_output_scale (and 3 more) is left out: altup_correct_scale is" in notes[0]
    ones = {
        name: np.ones_like(each) if name.endswith("correct_output_scale") else each
        for name, each in tensors.items()
    }
    config["altup_correct_scale"] = True
    expected, _ = logits_of(written(tmp_path / "ones", config, ones))
    np.testing.assert_array_equal(found, expected)


def test_fewer_streams(tmp_path: Path) -> None:
    """Two of them: the file says so in its tensors' shapes, and GGUF cannot."""
    config, tensors = golden()
    config["altup_num_inputs"] = 2
    for name in list(tensors):
        if re.search(r"altup_(unembed_)?projections\.[12]\.", name):
            del tensors[name]
        elif name.endswith("modality_router.weight"):
            tensors[name] = tensors[name][:2]
        elif name.endswith("prediction_coefs.weight"):
            tensors[name] = tensors[name][:4, :2]
        elif name.endswith("correction_coefs.weight"):
            tensors[name] = tensors[name][:2, :2]
    folder = written(tmp_path / "model", config, tensors)
    found, _ = logits_of(folder)
    with opened(folder, device="metal-emulated") as model:
        assert relative_error(model.logits(FEW[:30]), found[:30]) <= BOUND_F32_CACHE
    with pytest.raises(akunu.UnsupportedModelError, match="altup_num_inputs is 2; files have 4"):
        DirectorySource(folder)


NONSENSE: dict[str, tuple[dict[str, Any], str]] = {
    "all shared": ({"num_kv_shared_layers": 4}, "num_kv_shared_layers is 4; a layer at least"),
    "none before": (
        {"num_kv_shared_layers": 3},
        "layer 1 has no keys and values, and no layer before it that sees as much",
    ),
    "no window": ({"sliding_window": None}, "there is no sliding_window for them"),
    "one stream": ({"altup_num_inputs": 1}, "the residual has 1 streams; akunu has 2 to 4"),
    "many streams": ({"altup_num_inputs": 9}, "the residual has 9 streams; akunu has 2 to 4"),
    "no such stream": (
        {"altup_active_idx": 4},
        "layers compute stream 4 of the residual, which has 4",
    ),
    "all cut": (
        {"activation_sparsity_pattern": 1.0},
        "parts from 0 on and below 1 are needed",
    ),
    "a part too many": (
        {"activation_sparsity_pattern": [0.5] * 7},
        "there are 7 numbers for 4 layers",
    ),
    "half a number": ({"intermediate_size": 160.5}, "whole numbers above 0 are needed"),
    "more rows than tokens": (
        {"vocab_size_per_layer_input": VOCAB + 1},
        "akunu has embeddings for each layer of tokens of the vocabulary",
    ),
    "a shorter residual": ({"hidden_size_per_layer_input": 16}, "the model's numbers ask for"),
}


@each_line("name", list(NONSENSE))
def test_what_makes_no_sense_is_refused_by_its_key(tmp_path: Path, name: str) -> None:
    changes, message = NONSENSE[name]
    config, tensors = golden()
    folder = written(tmp_path / "model", config | changes, tensors)
    with pytest.raises(akunu.AkunuError, match=re.escape(message)):
        akunu.load(folder)


@pytest.mark.parametrize(
    "name",
    [
        "altup_projections.2",
        "altup_unembed_projections.0",
        "layers.3.altup.modality_router",
        "layers.3.laurel.linear_left",
        "layers.3.laurel.post_laurel_norm",
        "layers.3.altup.prediction_coefs",
        "layers.3.altup.correction_coefs",
    ],
)
def test_a_tensor_that_is_missing_is_named(tmp_path: Path, name: str) -> None:
    config, tensors = golden()
    del tensors[f"model.{name}.weight"]
    with pytest.raises(akunu.ModelFormatError, match="is missing"):
        akunu.load(written(tmp_path / "model", config, tensors))
