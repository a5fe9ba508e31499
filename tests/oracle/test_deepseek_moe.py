"""DeepSeek-MoE (2024), of which transformers has no class, beside llama.cpp.

ERNIE 4.5's tensors in a GGUF file of its architecture.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import gguf
import numpy as np
import random_experts as rnd
from dense_golden import TOKENS
from engine import BOUND_F32_CACHE, MUTATION_FACTOR, PATHS, chunked, opened, relative_error
from family_case import record
from numpy.typing import NDArray

from akunu.convert.directory_source import DirectorySource
from akunu.convert.quantizing import Quantization, Wishes
from akunu.convert.recipes import RECIPES

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.compare.accuracy import engine_logits

pytestmark = pytest.mark.oracle

OLD, NEW = "ernie4_5-moe", "deepseek"


def renamed(path: Path, target: Path, **changes: Any) -> Path:
    """The file as one of DeepSeek's, without the bias that says who is chosen."""
    reader = gguf.GGUFReader(path)
    writer = gguf.GGUFWriter(target, NEW)
    for field in reader.fields.values():
        key = field.name.replace(OLD, NEW)
        if key.startswith("GGUF.") or key == "general.architecture":
            continue
        if key.removeprefix(f"{NEW}.") in {"expert_weights_norm", "expert_gating_func", *changes}:
            continue
        kind = field.types[0]
        items = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(key, field.contents(), kind, sub_type=items)
    for key, value in changes.items():
        add = writer.add_float32 if isinstance(value, float) else writer.add_uint32
        add(f"{NEW}.{key}", value)
    for tensor in reader.tensors:
        if "exp_probs_b" not in tensor.name:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return target


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """ERNIE's, with lengths and an output of its own that llama.cpp asks for."""
    model = rnd.model_of("ernie4.5-moe", head_dim=16, tie_word_embeddings=False)
    return rnd.save(tmp_path / "model", model)


def converted(directory: Path, recipe: str, scale: float = 1.0) -> Path:
    source = directory.parent / f"ernie-{recipe}-{scale}.gguf"
    Quantization(DirectorySource(directory), Wishes(recipe=RECIPES[recipe])).write(source)
    target = directory.parent / f"deepseek-{recipe}-{scale}.gguf"
    return renamed(source, target, expert_weights_scale=scale)


def peers(peer: str, path: Path) -> NDArray[np.float32]:
    return engine_logits(peer, "llama_cpp_logits", path, [TOKENS], kv_type="f32", threads=1)[0]


def test_logits_are_those_of_llama_cpp(peer: str, directory: Path) -> None:
    path = converted(directory, "F32")
    theirs = peers(peer, path)
    with opened(path, kv_type="f32") as model:
        for chunks, roles in PATHS.values():
            error = relative_error(chunked(model, TOKENS, chunks, roles), theirs)
            assert error <= BOUND_F32_CACHE
    record(NEW, "GGUF F32", "cpu", error)
    with opened(path, device="metal-emulated", kv_type="f32") as model:
        error = relative_error(model.logits(TOKENS[:40]), theirs[:40])
    record(NEW, "GGUF F32", "metal-emulated", error)
    assert error <= BOUND_F32_CACHE


def test_the_factor_on_weights_is_felt(peer: str, directory: Path) -> None:
    theirs = peers(peer, converted(directory, "F32"))
    half = converted(directory, "F32", 0.5)
    with opened(half, kv_type="f32") as model:
        ours = model.logits(TOKENS)
    assert relative_error(ours, theirs) >= MUTATION_FACTOR * BOUND_F32_CACHE
    assert relative_error(ours, peers(peer, half)) <= BOUND_F32_CACHE


def test_quantised_files_are_as_exact_as_in_llama_cpp(peer: str, directory: Path) -> None:
    """By the rows' median: where two experts are nearly as good, one or the other is taken."""
    exact = peers(peer, converted(directory, "F32"))
    path = converted(directory, "Q8_0")
    with opened(path, kv_type="f32") as model:
        ours = model.logits(TOKENS)
    record(NEW, "GGUF Q8_0", "cpu", relative_error(ours, exact))
    own, other = (
        float(np.median(np.sqrt(((each - exact) ** 2).mean(axis=1))))
        for each in (ours, peers(peer, path))
    )
    assert own <= 1.2 * other
