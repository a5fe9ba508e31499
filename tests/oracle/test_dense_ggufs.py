"""Keys that llama.cpp's converter writes for dense families, and akunu's does not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import random_decoders as rnd
import random_experts
from engine import BOUND_F32_CACHE, MUTATION_FACTOR, opened, relative_error

from akunu.convert.directory_source import DirectorySource
from akunu.convert.quantizing import Quantization, Wishes
from akunu.convert.recipes import RECIPES

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.compare.accuracy import engine_logits

pytestmark = pytest.mark.oracle

TOKENS: list[int] = np.random.RandomState(9).randint(0, rnd.VOCAB, 200).tolist()


def converted(family: str, folder: Path) -> Path:
    """A family's model as a file."""
    target = folder / f"{family}.gguf"
    directory = rnd.save(folder / family, rnd.model_of(family))
    Quantization(DirectorySource(directory), Wishes(recipe=RECIPES["F32"])).write(target)
    return target


def with_keys(path: Path, target: Path, changes: dict[str, Any]) -> Path:
    """The file with other keys, named without the architecture; None: without the key."""
    reader = gguf.GGUFReader(path)
    architecture = reader.fields["general.architecture"].contents()
    changes = {f"{architecture}.{key}": value for key, value in changes.items()}
    writer = gguf.GGUFWriter(target, architecture)
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name in {"general.architecture", *changes}:
            continue
        kind = field.types[0]
        items = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), kind, sub_type=items)
    for key, value in changes.items():
        if isinstance(value, list):
            writer.add_array(key, value)
        elif value is not None:
            writer.add_float32(key, value)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return target


def both(path: Path, peer: str) -> tuple[Any, Any]:
    with opened(path) as model:
        ours = model.logits(TOKENS)
    theirs = engine_logits(peer, "llama_cpp_logits", path, [TOKENS], kv_type="f32", threads=1)
    return ours, theirs[0]


@pytest.mark.parametrize("multiplier", [1.0, 0.5])
def test_a_yarn_log_multiplier_is_read_as_by_llama_cpp(
    peer: str, tmp_path: Path, multiplier: float
) -> None:
    """Of Ministral 3, whose factor on rotated numbers is 1 by it."""
    path = converted("ministral3", tmp_path)
    changes = {"rope.scaling.attn_factor": None, "rope.scaling.yarn_log_multiplier": multiplier}
    said = with_keys(path, tmp_path / "said.gguf", changes)
    ours, theirs = both(said, peer)
    assert relative_error(ours, theirs) <= BOUND_F32_CACHE
    with opened(path) as model:
        other = relative_error(model.logits(TOKENS), theirs)
    assert (other <= BOUND_F32_CACHE) == (multiplier == 1.0)
    unsaid = with_keys(path, tmp_path / "unsaid.gguf", {"rope.scaling.attn_factor": None})
    with opened(unsaid) as model:
        error = relative_error(model.logits(TOKENS), theirs)
    assert error >= MUTATION_FACTOR * BOUND_F32_CACHE


@pytest.mark.parametrize("family", ["olmo3", "cohere2"])
def test_windows_without_a_pattern_are_those_of_llama_cpp(
    peer: str, tmp_path: Path, family: str
) -> None:
    path = converted(family, tmp_path)
    reader = gguf.GGUFReader(path)
    assert not any(name.endswith("sliding_window_pattern") for name in reader.fields)
    ours, theirs = both(path, peer)
    assert relative_error(ours, theirs) <= BOUND_F32_CACHE
    pattern = [False, True, True, True]
    said = with_keys(path, tmp_path / "a.gguf", {"attention.sliding_window_pattern": pattern})
    ours, theirs = both(said, peer)
    assert relative_error(ours, theirs) <= BOUND_F32_CACHE
    with opened(path) as model:
        assert relative_error(model.logits(TOKENS), ours) >= MUTATION_FACTOR * BOUND_F32_CACHE


def test_granite_hybrid_needs_no_keys_of_experts_but_numbers(peer: str, tmp_path: Path) -> None:
    """What is published says no length of experts, nor how they are scored."""
    directory = random_experts.save(
        tmp_path / "model", random_experts.model_of("granitehybrid-moe")
    )
    made = tmp_path / "made.gguf"
    Quantization(DirectorySource(directory), Wishes(recipe=RECIPES["F32"])).write(made)
    unsaid = ("expert_feed_forward_length", "expert_weights_norm", "expert_gating_func")
    path = with_keys(made, tmp_path / "changed.gguf", dict.fromkeys(unsaid))
    ours, theirs = both(path, peer)
    assert relative_error(ours, theirs) <= BOUND_F32_CACHE
    with opened(made) as model:
        assert relative_error(model.logits(TOKENS), ours) <= BOUND_F32_CACHE
