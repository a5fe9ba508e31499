"""What files of Gemma 4 may or must not say; its logits are in test_dense_golden.py."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import dense_golden
import hf_directory
import numpy as np
import pytest
from dense_golden import TOKENS, tensor_of
from engine import opened
from gguf import GGUFReader, GGUFWriter
from numpy.typing import NDArray

import akunu
from akunu.convert.directory_source import DirectorySource
from akunu.convert.quantizing import Quantization, Wishes
from akunu.convert.recipes import RECIPES
from lines import each_line

FEW = TOKENS[:90]
Tensors = dict[str, NDArray[np.float32]]


def golden(family: str = "gemma4") -> tuple[dict[str, Any], Tensors]:
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
    hf_directory.write_tokenizer(folder, dense_golden.VOCAB)
    return folder


def logits_of(path: Path) -> tuple[NDArray[np.float32], list[str]]:
    with opened(path) as model:
        return model.logits(FEW), list(model.notes)


def test_older_files_say_the_heads_of_layers_that_see_everything_in_keys(tmp_path: Path) -> None:
    config, tensors = golden()
    expected, _ = logits_of(written(tmp_path / "listed", config, tensors))
    del config["per_layer_config"]
    older = config | {"global_head_dim": 64, "num_global_key_value_heads": 3}
    found, notes = logits_of(written(tmp_path / "older", older, tensors))
    np.testing.assert_array_equal(found, expected)
    assert not notes


def test_weights_of_keys_that_nobody_reads_are_left_out(tmp_path: Path) -> None:
    config, tensors = golden("gemma4-small")
    expected, _ = logits_of(written(tmp_path / "without", config, tensors))
    for last, like in ((4, 2), (5, 3)):
        for name in ("k_proj", "v_proj", "k_norm"):
            of_own = tensors[f"model.layers.{like}.self_attn.{name}.weight"]
            tensors[f"model.layers.{last}.self_attn.{name}.weight"] = of_own
    folder = written(tmp_path / "with", config, tensors)
    found, notes = logits_of(folder)
    np.testing.assert_array_equal(found, expected)
    assert len(notes) == 1
    assert "layers.4.self_attn.k_norm.weight (and 5 more) is left out: its layer reads" in notes[0]


def test_of_a_model_of_images_and_sounds_the_text_part_loads(tmp_path: Path) -> None:
    config, tensors = golden()
    expected, _ = logits_of(written(tmp_path / "text", config, tensors))
    whole = {
        "model_type": "gemma4",
        "architectures": ["Gemma4ForConditionalGeneration"],
        "text_config": config,
        "vision_config": {"model_type": "gemma4_vision"},
        "audio_config": {"model_type": "gemma4_audio"},
        "boi_token_id": 5,
        "eoi_token_id": 6,
        "boa_token_id": 7,
        "eoa_token_index": 8,
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


NONSENSE: dict[str, tuple[dict[str, Any], str]] = {
    "all shared": ({"num_kv_shared_layers": 4}, "num_kv_shared_layers is 4; a layer at least"),
    "none before": (
        {"num_kv_shared_layers": 3},
        "layer 1 has no keys and values, and no layer before it that sees as much",
    ),
    "last windowed": (
        {"layer_types": ["full_attention", "sliding_attention"] * 2},
        "the last layer must see everything",
    ),
    "sees behind": (
        {"use_bidirectional_attention": "all"},
        'use_bidirectional_attention is "all"; akunu has null and "vision"',
    ),
    "no window": ({"sliding_window": None}, "there is no sliding_window for them"),
    "other vocabulary": (
        {"hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": 7},
        "vocab_size_per_layer_input is 7; akunu needs what vocab_size is",
    ),
    "no experts": (
        {"enable_moe_block": True, "num_experts": None},
        "num_experts is missing",
    ),
    "a layer too many": (
        {"per_layer_config": {"9": {"head_dim": 8}}},
        "per_layer_config.9 is",
    ),
    "another window": (
        {"per_layer_config": {"1": {"sliding_window": 8}}},
        "akunu has head_dim and num_key_value_heads there",
    ),
    "spiral": (
        {"rope_parameters": {"full_attention": {"rope_type": "spiral"}}},
        'rope_type is "spiral"; akunu has "default" and "proportional"',
    ),
    "more than all": (
        {"rope_parameters": {"full_attention": {"partial_rotary_factor": 1.5}}},
        "partial_rotary_factor is 1.5; it must be above 0 and at most 1",
    ),
}


@each_line("name", list(NONSENSE))
def test_what_makes_no_sense_is_refused_by_its_key(tmp_path: Path, name: str) -> None:
    changes, message = NONSENSE[name]
    config, tensors = golden()
    folder = written(tmp_path / "model", config | changes, tensors)
    with pytest.raises(akunu.AkunuError, match=re.escape(message)):
        akunu.load(folder)


def test_a_number_behind_a_layer_is_one(tmp_path: Path) -> None:
    config, tensors = golden()
    tensors["model.layers.2.layer_scalar"] = np.ones(2, np.float32)
    with pytest.raises(akunu.ModelFormatError, match=r"layer_scalar.*is \[1, 2\].*one number"):
        akunu.load(written(tmp_path / "model", config, tensors))


def rewritten(source: Path, target: Path, left_out: str) -> Path:
    """The file without one of its keys."""
    reader = GGUFReader(source)
    writer = GGUFWriter(target, reader.fields["general.architecture"].contents())
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in ("general.architecture", left_out):
            continue
        kinds = field.types
        writer.add_key_value(
            name, field.contents(), kinds[0], kinds[-1] if len(kinds) > 1 else None
        )
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, np.array(tensor.data), raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return target


def converted(folder: Path, target: Path) -> Path:
    Quantization(DirectorySource(folder), Wishes(recipe=RECIPES["F32"])).write(target)
    return target


def test_a_file_has_the_keys_that_llama_cpp_reads(tmp_path: Path) -> None:
    for family in ("gemma4", "gemma4-small"):
        config, tensors = golden(family)
        path = converted(written(tmp_path / family, config, tensors), tmp_path / f"{family}.gguf")
        fields = GGUFReader(path).fields
        keys = {
            name.removeprefix("gemma4."): field.contents()
            for name, field in fields.items()
            if name.startswith("gemma4.")
        }
        assert keys["attention.key_length"] == keys["attention.value_length"] == 64
        assert keys["attention.key_length_swa"] == keys["attention.value_length_swa"] == 32
        assert keys["rope.dimension_count"] == 64
        assert keys["rope.dimension_count_swa"] == 32
        n_layers = config["num_hidden_layers"]
        assert keys["attention.sliding_window_pattern"] == [True, False] * (n_layers // 2)
        small = family == "gemma4-small"
        assert keys["attention.shared_kv_layers"] == (2 if small else 0)
        assert keys["embedding_length_per_layer_input"] == (32 if small else 0)
        # llama.cpp takes 30 where the key is missing.
        assert keys["final_logit_softcapping"] == (0 if small else 20)
        assert keys["feed_forward_length"] == ([160] * 4 + [320] * 2 if small else 160)
        assert keys.get("attention.head_count_kv") == (2 if small else [2, 3, 2, 3])


def test_a_file_without_a_cap_has_that_of_all_published_models(tmp_path: Path) -> None:
    config, tensors = golden()
    folder = written(tmp_path / "model", config | {"final_logit_softcapping": 30.0}, tensors)
    said = converted(folder, tmp_path / "said.gguf")
    unsaid = rewritten(said, tmp_path / "unsaid.gguf", "gemma4.final_logit_softcapping")
    np.testing.assert_array_equal(logits_of(unsaid)[0], logits_of(said)[0])


def test_a_file_must_say_which_layers_see_a_window(tmp_path: Path) -> None:
    config, tensors = golden()
    path = converted(written(tmp_path / "model", config, tensors), tmp_path / "made.gguf")
    unsaid = rewritten(path, tmp_path / "unsaid.gguf", "gemma4.attention.sliding_window_pattern")
    with pytest.raises(akunu.ModelFormatError, match="sliding_window_pattern is missing"):
        akunu.load(unsaid)
