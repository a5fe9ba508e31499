"""Gemma 3n beside llama.cpp, which has numbers of the published models that no file can change."""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import NormalDist
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import random_decoders as rnd
from dense_golden import TOKENS, VOCAB
from engine import BOUND_F16_CACHE, BOUND_F32_CACHE, opened, relative_error

from akunu.convert.directory_source import DirectorySource
from akunu.convert.quantizing import Quantization, Wishes
from akunu.convert.recipes import RECIPES

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.compare.accuracy import engine_logits

pytestmark = pytest.mark.oracle

FEW = TOKENS[:120]
FFN = 160
# What llama.cpp has: 20 layers with keys of their own, 256 numbers of a token for each layer, a
# branch of 64 numbers, and ten layers whose gates are cut; by a deviation that divides by n - 1.
DEVIATIONS = 1.6448533535003662 * (FFN / (FFN - 1)) ** 0.5
PUBLISHED: dict[str, Any] = {
    "num_hidden_layers": 25,
    "num_kv_shared_layers": 5,
    "layer_types": [("sliding_attention", "full_attention")[i % 5 == 4] for i in range(25)],
    "hidden_size_per_layer_input": 256,
    "vocab_size_per_layer_input": VOCAB,
    "laurel_rank": 64,
    "intermediate_size": FFN,
    "activation_sparsity_pattern": [NormalDist().cdf(DEVIATIONS)] * 10 + [0.0] * 15,
    "final_logit_softcapping": 30.0,
}


def test_logits_are_those_of_transformers_and_of_llama_cpp(
    oracle: Any, peer: str, tmp_path: Path
) -> None:
    import torch

    model = rnd.model_of("gemma3n", **PUBLISHED)
    with torch.no_grad():  # so many layers grow what is rounded
        for name, weight in model.named_parameters():
            if name.endswith("_coefs.weight"):
                weight *= 0.1
            elif "q_norm" in name:
                weight *= 0.2
    expected = oracle.logits(model, FEW)
    folder, path = rnd.save(tmp_path / "model", model), tmp_path / "made.gguf"
    Quantization(DirectorySource(folder), Wishes(recipe=RECIPES["F32"])).write(path)
    with opened(path, kv_type="f32") as ours:
        found = ours.logits(FEW)
    assert relative_error(found, expected) <= BOUND_F32_CACHE
    theirs = engine_logits(peer, "llama_cpp_logits", path, [FEW], kv_type="f32", threads=1)
    # Its GELU is a table of halves.
    assert relative_error(found, theirs[0]) <= BOUND_F16_CACHE
    # Cut by what its n - 1 is not, it is another model: so the bound says something.
    cut = PUBLISHED["activation_sparsity_pattern"]
    other = rnd.changed(
        folder,
        tmp_path / "other",
        {"activation_sparsity_pattern": [0.95 if each else 0.0 for each in cut]},
    )
    with opened(other, kv_type="f32") as ours:
        assert relative_error(ours.logits(FEW), theirs[0]) > 2 * BOUND_F16_CACHE
