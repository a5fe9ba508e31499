"""llama.cpp loads synthetic models, and chooses the same number formats for their tensors.

Which formats llama.cpp chooses only its quantiser can tell, which the wheel xllamacpp lacks: those
tests are `slow`, and need AKUNU_PEER_PYTHON, an interpreter with llama-cpp-python
(docs/reference/benchmarks.md).
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from peer import TEXT, asked

import akunu

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.compare.quantise import quantise
from tools.make_synthetic import PRESETS, RopeFactors, Shape, write
from tools.make_synthetic.recipes import RECIPES

pytestmark = pytest.mark.oracle

QUANTISED = [name for name in RECIPES if name not in ("F32", "F16", "BF16")]

SHAPE = Shape(
    architecture="llama", n_layers=2, dim=256, n_heads=4, n_kv_heads=2, head_dim=64, ffn_dim=512,
    vocab_size=700,
)  # fmt: skip
SHAPES = {
    "llama": SHAPE,
    "llama-tied-factors": replace(
        SHAPE, tied=True,
        rope_factors=RopeFactors(
            factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_context=512
        ),
    ),
    "llama-linear": replace(SHAPE, rope_linear_factor=4.0),
    "qwen2": replace(SHAPE, architecture="qwen2", n_kv_heads=1, qkv_bias=True),
    "qwen3": replace(SHAPE, architecture="qwen3", n_heads=8, qk_norm=True, tied=True),
    "qwen3moe": replace(
        SHAPE, architecture="qwen3moe", qk_norm=True, n_experts=8, n_chosen=3, expert_dim=128
    ),
    "qwen3moe-skewed": replace(
        SHAPE, architecture="qwen3moe", qk_norm=True, n_experts=8, n_chosen=3, expert_dim=128,
        skewed=True,
    ),
    "gpt-oss": replace(
        SHAPE, architecture="gpt-oss", qkv_bias=True, output_bias=True, n_experts=8, n_chosen=3,
        expert_dim=96, expert_bias=True, sinks=True, window=8, yarn_factor=4.0, yarn_context=512,
    ),
}  # fmt: skip
# The choice depends on depth, on heads per key head, and on whether there is an output.
DEPTHS = {
    "16 layers, tied": replace(SHAPES["qwen3"], n_layers=16, vocab_size=600),
    "33 layers, 4 heads share": replace(SHAPE, n_layers=33, n_kv_heads=1),
    "rows of 96 and 160": replace(SHAPE, dim=96, n_heads=5, n_kv_heads=5, head_dim=32, ffn_dim=160),
}


def relative_difference(ours: Any, theirs: Any) -> float:
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


@pytest.mark.parametrize("kind", SHAPES)
def test_llama_cpp_sees_the_same_tokens_and_logits(kind: str, peer: str, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    write(path, SHAPES[kind], "F32")
    theirs = asked(peer, path)
    with akunu.load(path, context=64) as model:
        text = theirs["text"].strip()
        assert model.tokenizer.decode(theirs["tokens"]).strip() == text
        encoded = model.tokenizer.encode(TEXT, add_special=False)
        assert encoded == theirs["tokens"]
        logits = model.logits(theirs["tokens"])
    # Both keep keys and values in F16, which test_logits.py allows this much.
    assert relative_difference(logits, np.array(theirs["logits"])) < 5e-3


@pytest.mark.parametrize("recipe", RECIPES)
def test_llama_cpp_computes_with_every_format(recipe: str, peer: str, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    write(path, SHAPE, recipe)
    logits = np.array(asked(peer, path)["logits"])
    assert np.isfinite(logits).all()
    assert 1 < logits.std() < 4


@pytest.mark.parametrize(
    "preset",
    [
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("Qwen3-0.6B", "Llama-3.2-1B")),
        "TinyLlama-1.1B",
    ],
)
def test_llama_cpp_takes_the_vocabularies_of_presets(
    preset: str, peer: str, tmp_path: Path
) -> None:
    shape = replace(
        PRESETS[preset], n_layers=1, dim=64, n_heads=1, n_kv_heads=1, head_dim=64, ffn_dim=64
    )
    path = tmp_path / "model.gguf"
    write(path, shape, "Q8_0")
    theirs = asked(peer, path)
    with akunu.load(path, context=64) as model:
        encoded = model.tokenizer.encode(TEXT, add_special=False)
    assert encoded == theirs["tokens"]


@pytest.mark.slow
@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("recipe", QUANTISED)
def test_llama_cpp_chooses_the_same_formats(
    recipe: str, depth: str, built_peer: str, tmp_path: Path
) -> None:
    source, target, own = (tmp_path / name for name in ("f16.gguf", "theirs.gguf", "own.gguf"))
    write(source, DEPTHS[depth], "F16")
    quantise(source, target, recipe, peer=built_peer)
    write(own, DEPTHS[depth], recipe)
    formats = [
        {tensor.name: tensor.tensor_type.name for tensor in gguf.GGUFReader(path).tensors}
        for path in (target, own)
    ]
    assert formats[0] == formats[1]
    file_types = [gguf.GGUFReader(path).fields["general.file_type"] for path in (target, own)]
    assert file_types[0].contents() == file_types[1].contents()
