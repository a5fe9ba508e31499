"""Logits of random models beside llama.cpp's (the wheel xllamacpp), on the same file.

What transformers has no file for (keys of rotary scaling) and what both have to read alike.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import pytest
from engine import BOUND_F32_CACHE, MUTATION_FACTOR, opened, relative_error
from golden_values import SEED
from random_models import ModelCase, build, random_tokens

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.compare.accuracy import engine_logits

pytestmark = pytest.mark.oracle

BIASES = {"qkv_bias": True, "output_bias": True, "ffn_bias": True}


def with_metadata(case: ModelCase, target: Path, values: dict[str, Any]) -> Path:
    """The case's file with more metadata, floats or strings under names without `llama.`."""
    reader = gguf.GGUFReader(case.path)
    writer = gguf.GGUFWriter(target, "llama")
    for field in reader.fields.values():
        if not field.name.startswith("GGUF.") and field.name != "general.architecture":
            kind = field.types[0]
            items = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(field.name, field.contents(), kind, sub_type=items)
    for name, value in values.items():
        add = writer.add_string if isinstance(value, str) else writer.add_float32
        add(f"llama.{name}", value)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return target


def both_logits(path: Path, tokens: list[int], peer: str) -> tuple[Any, Any]:
    """akunu's and llama.cpp's, both with a cache in F32."""
    with opened(path) as model:
        ours = model.logits(tokens)
    theirs = engine_logits(peer, "llama_cpp_logits", path, [tokens], kv_type="f32", threads=1)
    return ours, theirs[0]


@pytest.mark.parametrize("weight_format", ["f32", "q8_0"])
def test_feed_forward_biases_are_those_of_llama_cpp(
    peer: str, tmp_path: Path, weight_format: str
) -> None:
    """As a file of Granite's code models has them: an architecture `llama` with seven biases."""
    path = tmp_path / "model.gguf"
    case = build("llama-32", path, seed=SEED, weight_format=weight_format, **BIASES)
    tokens = random_tokens(case.spec, 100, seed=SEED)
    ours, theirs = both_logits(path, tokens, peer)
    # Inputs of Q8_0 are rounded to int8 by both, in different ways: 0.011 was measured.
    bound = {"f32": BOUND_F32_CACHE, "q8_0": 0.03}[weight_format]
    assert relative_error(ours, theirs) <= bound

    def without(_: Any, weights: Any) -> Any:
        return {
            name: data * 0 if name.endswith(("gate_proj.bias", "up_proj.bias")) else data
            for name, data in weights.items()
        }

    left_out = tmp_path / "left-out.gguf"
    build("llama-32", left_out, seed=SEED, weight_format=weight_format, change=without, **BIASES)
    with opened(left_out) as model:
        assert relative_error(model.logits(tokens), theirs) >= 5 * bound


# What a file may say of linear scaling, and what that means; transformers' files have a type.
SCALINGS: dict[str, dict[str, Any]] = {
    "type and factor": {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0},
    "factor without a type": {"rope.scaling.factor": 4.0},
    "old key": {"rope.scale_linear": 4.0},
    "type and old key": {"rope.scaling.type": "linear", "rope.scale_linear": 4.0},
    "both keys": {"rope.scaling.factor": 4.0, "rope.scale_linear": 2.0},
    "factor 0": {"rope.scaling.type": "linear", "rope.scaling.factor": 0.0},
    "old key 0": {"rope.scale_linear": 0.0},
    "type none": {"rope.scaling.type": "none", "rope.scaling.factor": 4.0},
}


@pytest.mark.parametrize("name", SCALINGS)
def test_rotary_scaling_is_read_as_by_llama_cpp(
    model_case: Callable[..., ModelCase], peer: str, tmp_path: Path, name: str
) -> None:
    case = model_case("llama-32")
    path = with_metadata(case, tmp_path / "model.gguf", SCALINGS[name])
    tokens = random_tokens(case.spec, 100, seed=SEED)
    ours, theirs = both_logits(path, tokens, peer)
    assert relative_error(ours, theirs) <= BOUND_F32_CACHE
    # Read the other way (scaled where it is not, or not scaled), the logits are elsewhere.
    values = SCALINGS[name]
    unscaled = "none" in values.values() or 0.0 in values.values()
    other = {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0} if unscaled else {}
    mistaken = with_metadata(case, tmp_path / "mistaken.gguf", other)
    with opened(mistaken) as model:
        error = relative_error(model.logits(tokens), theirs)
    assert error >= MUTATION_FACTOR * BOUND_F32_CACHE


# What of Gemma only the family says: caps, windows, rotary bases. llama.cpp reads no scale of
# attention.
GEMMA: dict[str, dict[str, Any]] = {
    "gemma": {},
    "gemma2": {"attention_scale": None},
    "gemma3": {},
}


@pytest.mark.parametrize("kind", GEMMA)
def test_gemma_is_read_as_by_llama_cpp(peer: str, tmp_path: Path, kind: str) -> None:
    case = build(kind, tmp_path / "model.gguf", seed=SEED, **GEMMA[kind])
    tokens = random_tokens(case.spec, 200, seed=SEED)
    ours, theirs = both_logits(case.path, tokens, peer)
    # llama.cpp looks GELU up in a table of halves: 6e-4 was measured. The nearest mistake of
    # mutations.py is twice this.
    assert relative_error(ours, theirs) <= 2e-3
