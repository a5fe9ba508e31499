"""Both layouts of GGUF files of latent attention, beside llama.cpp."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import random_decoders as rnd
import random_experts
from dense_golden import TOKENS
from engine import BOUND_F32_CACHE, opened, relative_error, relative_rms
from latent_files import newer

from akunu.convert.directory_source import DirectorySource
from akunu.convert.quantizing import Quantization, Wishes
from akunu.convert.recipes import RECIPES

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.compare.accuracy import engine_logits

pytestmark = pytest.mark.oracle


def converted(family: str, folder: Path, recipe: str = "F32", **more: Any) -> Path:
    target = folder / f"{family}-{recipe}.gguf"
    families = rnd if family in rnd.FAMILIES else random_experts
    directory = rnd.save(folder / f"{family}-{recipe}", families.model_of(family, **more))
    Quantization(DirectorySource(directory), Wishes(recipe=RECIPES[recipe])).write(target)
    return target


@pytest.mark.parametrize("family", ["deepseek2", "deepseek3", "deepseek2-moe", "deepseek3-moe"])
def test_newer_files_are_read_as_by_llama_cpp(peer: str, tmp_path: Path, family: str) -> None:
    old = converted(family, tmp_path)
    new = newer(old, tmp_path / "new.gguf")
    theirs = engine_logits(peer, "llama_cpp_logits", new, [TOKENS], kv_type="f32", threads=1)[0]
    for path in (old, new):
        with opened(path) as model:
            assert relative_error(model.logits(TOKENS), theirs) <= BOUND_F32_CACHE


def test_v2_lite_is_read_as_by_llama_cpp(peer: str, tmp_path: Path) -> None:
    """It tells the model, whose queries are not compressed, by its 27 layers."""
    tokens = TOKENS[:60]
    old = converted("deepseek2-lite-moe", tmp_path, num_hidden_layers=27)
    for path in (old, newer(old, tmp_path / "new.gguf")):
        theirs = engine_logits(peer, "llama_cpp_logits", path, [tokens], kv_type="f32", threads=1)
        with opened(path, kv_type="f32") as model:
            assert relative_error(model.logits(tokens), theirs[0]) <= BOUND_F32_CACHE


def test_quantised_ones_are_as_exact_as_in_llama_cpp(
    peer: str, oracle: Any, tmp_path: Path
) -> None:
    new = newer(converted("deepseek2", tmp_path), tmp_path / "new.gguf", "Q8_0")
    expected = oracle.logits(rnd.model_of("deepseek2"), TOKENS[:40])
    theirs = engine_logits(peer, "llama_cpp_logits", new, [TOKENS[:40]], kv_type="f32", threads=1)
    with opened(new) as model:
        ours = model.logits(TOKENS[:40])
    assert relative_rms(ours, expected) <= 1.2 * relative_rms(theirs[0], expected)
