"""Families with experts from directories and from converted files, beside transformers and
llama.cpp."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import random_experts as rnd
from dense_golden import TOKENS
from engine import (
    BOUND_F16_CACHE,
    BOUND_F32_CACHE,
    MUTATION_FACTOR,
    PATHS,
    chunked,
    opened,
    random_chunks,
    relative_error,
    relative_rms,
)
from family_case import Case, Measured, record
from gguf import GGUFReader
from golden_values import N_TOKENS
from numpy.typing import NDArray

from akunu.convert.directory_source import DirectorySource
from akunu.convert.quantizing import Quantization, Wishes
from akunu.convert.recipes import RECIPES

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.compare.accuracy import engine_logits

pytestmark = pytest.mark.oracle


@pytest.fixture(scope="module", params=list(rnd.FAMILIES))
def case(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, oracle: Any
) -> Iterator[Case]:
    return Case(rnd, request.param, tmp_path_factory.mktemp("families"), oracle)


def test_logits_are_those_of_transformers(case: Case, measured: Measured) -> None:
    with opened(case.directory, kv_type="f32") as model:
        assert all("akunu does not know" not in note for note in model.notes)
        for name, (chunks, roles) in PATHS.items():
            logits = chunked(model, TOKENS, chunks, roles)
            error = relative_error(logits, case.expected)
            measured("experts, f32 cache", f"{case.family} {name}", error)
            assert error <= BOUND_F32_CACHE, name
    record(case.architecture, "safetensors F32", "cpu", error)


def test_logits_do_not_depend_on_how_the_tokens_are_cut(case: Case) -> None:
    for path in (case.directory, case.gguf("Q8_0")):
        with opened(path, kv_type="f32") as model:
            whole = {
                "prompt": model.logits(TOKENS),
                "generated": chunked(model, TOKENS, *PATHS["few-16"]),
            }
            for chunks, roles in PATHS.values():
                found = chunked(model, TOKENS, chunks, roles)
                np.testing.assert_array_equal(found, whole[roles])
            few = chunked(model, TOKENS, random_chunks(N_TOKENS, 16, seed=3), "generated")
        with opened(path, kv_type="f32", threads=2) as model:
            np.testing.assert_array_equal(model.logits(TOKENS), whole["prompt"])
            found = chunked(model, TOKENS, random_chunks(N_TOKENS, 16, seed=3), "generated")
            np.testing.assert_array_equal(found, few)


def test_a_text_has_the_same_tokens_alone_and_beside_others(case: Case) -> None:
    """Texts share experts; what one of them gets does not show in another."""
    prompts = [TOKENS[:3], TOKENS[5:90], TOKENS[40:41], TOKENS[100:180]]
    with opened(case.directory) as model:
        together = model.generate(prompts, max_tokens=12)
        for prompt, reply in zip(prompts, together, strict=True):
            assert model.generate(prompt, max_tokens=12).token_ids == reply.token_ids


def test_what_config_json_says_is_felt(case: Case, measured: Measured, tmp_path: Path) -> None:
    for name, changes in rnd.FAMILIES[case.family].changes.items():
        folder = rnd.changed(case.directory, tmp_path / name, changes)
        with opened(folder) as model:
            error = relative_error(model.logits(TOKENS), case.expected)
        measured(f"experts, mistake: {name}", case.family, error)
        assert error >= MUTATION_FACTOR * BOUND_F32_CACHE, name


def test_on_metal_emulated(case: Case, measured: Measured) -> None:
    n = 40
    with opened(case.directory, device="metal-emulated", kv_type="f32") as model:
        logits = chunked(model, TOKENS[:n], [24, 16], "prompt")
        prompt = relative_error(logits, case.expected[:n])
        generated = chunked(model, TOKENS[:n], [16, 16, *[1] * 8], "generated")
        error = max(prompt, relative_error(generated, case.expected[:n]))
    measured("experts, Metal emulated", case.family, error)
    record(case.architecture, "safetensors F32", "metal-emulated", error)
    assert error <= BOUND_F32_CACHE


def test_a_converted_file_is_the_same_model_here_and_in_llama_cpp(
    case: Case, measured: Measured, peer: str
) -> None:
    path = case.gguf("F32")
    assert GGUFReader(path).fields["general.architecture"].contents() == case.architecture
    with opened(path, kv_type="f32") as model:
        ours = model.logits(TOKENS)
    error = relative_error(ours, case.expected)
    record(case.architecture, "GGUF F32", "cpu", error)
    assert error <= BOUND_F32_CACHE
    why = rnd.FAMILIES[case.family].not_in_llama_cpp
    if why:
        pytest.skip(f"llama.cpp differs: {why}")
    theirs = engine_logits(peer, "llama_cpp_logits", path, [TOKENS], kv_type="f32", threads=1)
    error = relative_error(ours, theirs[0])
    measured("experts converted, llama.cpp", case.family, error)
    # llama.cpp's GELU is a table of halves.
    assert error <= (BOUND_F16_CACHE if case.architecture == "gemma4" else BOUND_F32_CACHE)


@pytest.mark.parametrize("recipe", ["Q8_0", "Q4_0"])
def test_quantised_files_are_as_exact_as_in_llama_cpp(
    case: Case, oracle: Any, measured: Measured, peer: str, tmp_path: Path, recipe: str
) -> None:
    """Of weights that the format can hold, so that the file has the very same ones."""
    exact = rnd.rounded(rnd.model_of(case.family), recipe)
    expected = oracle.logits(exact, TOKENS)
    folder, path = rnd.save(tmp_path / "model", exact), tmp_path / "made.gguf"
    Quantization(DirectorySource(folder), Wishes(recipe=RECIPES[recipe], pure=True)).write(path)
    with opened(path, device="metal-emulated", kv_type="f32") as model:  # rows are floats there
        logits = chunked(model, TOKENS[:32], [32], "prompt")
    assert relative_error(logits, expected[:32]) <= BOUND_F32_CACHE
    with opened(path, kv_type="f32") as model:
        ours = model.logits(TOKENS)
    record(case.architecture, f"GGUF {recipe}", "cpu", relative_error(ours, expected))
    measured(f"experts {recipe}", case.family, relative_rms(ours, expected))
    if rnd.FAMILIES[case.family].not_in_llama_cpp:
        return
    theirs = engine_logits(peer, "llama_cpp_logits", path, [TOKENS], kv_type="f32", threads=1)
    measured(f"experts {recipe}, llama.cpp", case.family, relative_rms(theirs[0], expected))
    # Both round the rows to int8, in different ways, and where two experts are nearly as good, one
    # of them or the other is taken: so the bound is of the rows' median.
    own, other = (_median_of_rows(each, expected) for each in (ours, theirs[0]))
    assert own <= 1.2 * other


def _median_of_rows(logits: NDArray[np.float32], expected: NDArray[np.float32]) -> float:
    errors = np.sqrt(((logits - expected) ** 2).mean(axis=1))
    return float(np.median(errors))
