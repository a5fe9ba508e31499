"""Files of `akunu convert` in llama.cpp (the wheel xllamacpp): the logits of the directory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import hf_directory
import pytest
import test_converted
from engine import BOUND_F16_CACHE, BOUND_F32_CACHE, opened, relative_error
from random_models import ModelCase, random_tokens

import akunu
from akunu.convert.directory_source import DirectorySource
from akunu.convert.quantizing import Quantization, Wishes
from akunu.convert.recipes import RECIPES

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.compare.accuracy import engine_logits

pytestmark = pytest.mark.oracle


# llama.cpp's GELU, of gemma, is a table of halves. It reads no attention.scale, which `gemma2` has.
KINDS = ("llama-gqa", "llama-factors", "llama-linear", "qwen2", "qwen3", "gemma", "gemma2-32",
         "gemma3", "gemma3-256")  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_converted_directory_has_its_logits_in_llama_cpp(
    model_case: Callable[..., ModelCase],
    measured: Callable[[str, str, float], None],
    peer: str,
    tmp_path: Path,
    kind: str,
) -> None:
    case = model_case(kind)
    folder = hf_directory.write(tmp_path / "model", case.spec, case.weights)
    target = tmp_path / "made.gguf"
    Quantization(DirectorySource(folder), Wishes(recipe=RECIPES["F32"])).write(target)
    tokens = random_tokens(case.spec, 100, seed=3)
    with opened(folder) as model:
        ours = model.logits(tokens)
    theirs = engine_logits(peer, "llama_cpp_logits", target, [tokens], kv_type="f32", threads=1)
    error = relative_error(ours, theirs[0])
    measured("converted, llama.cpp", kind, error)
    assert error <= (BOUND_F16_CACHE if case.spec.is_gemma else BOUND_F32_CACHE)


@pytest.mark.parametrize("name", test_converted.SCALED)
def test_scaled_positions_are_the_same_in_llama_cpp(
    model_case: Callable[..., ModelCase],
    measured: Callable[[str, str, float], None],
    peer: str,
    tmp_path: Path,
    name: str,
) -> None:
    folder = test_converted.scaled_directory(model_case, tmp_path / "model", name)
    target = test_converted.converted(folder, tmp_path / "made.gguf")
    tokens = list(range(0, 330, 3))  # of longrope, a context within the original one
    with akunu.load(folder, device="cpu", context=112, kv_type="f32") as model:
        ours = model.logits(tokens)
    theirs = engine_logits(peer, "llama_cpp_logits", target, [tokens], kv_type="f32", threads=1)
    error = relative_error(ours, theirs[0])
    measured("converted, scaled positions, llama.cpp", name, error)
    assert error <= BOUND_F32_CACHE
