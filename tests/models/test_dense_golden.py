"""Dense families beside logits that transformers computed; tests/oracle has the live comparison."""

from __future__ import annotations

from pathlib import Path

import dense_golden
import numpy as np
import pytest
from dense_golden import N_COLUMNS, POSITIONS, TOKENS
from engine import BOUND_F16_CACHE, BOUND_F32_CACHE, GPU_PATHS, GPUS, PATHS, chunked, opened

from akunu.convert.directory_source import DirectorySource
from akunu.convert.quantizing import Quantization, Wishes
from akunu.convert.recipes import RECIPES
from lines import each_line


def error_of(logits: np.typing.NDArray[np.float32], golden: dense_golden.DenseGolden) -> float:
    found = logits[list(POSITIONS), :N_COLUMNS]
    assert np.isfinite(logits).all()
    return float(np.abs(found - np.array(golden.logits)).max() / golden.largest)


@each_line("family", dense_golden.FAMILIES)
def test_logits_are_the_golden_ones(cpu: str, tmp_path: Path, family: str) -> None:
    golden = dense_golden.load(family)
    folder = dense_golden.write(tmp_path / "model", golden)
    with opened(folder, kv_type="f32") as model:
        assert error_of(model.logits(TOKENS), golden) <= BOUND_F32_CACHE
        assert error_of(chunked(model, TOKENS, *PATHS["few"]), golden) <= BOUND_F32_CACHE
    with opened(folder, kv_type="f16") as model:
        assert error_of(chunked(model, TOKENS, *PATHS["single"]), golden) <= BOUND_F16_CACHE


@each_line("family", dense_golden.FAMILIES)
def test_a_converted_file_has_them_too(tmp_path: Path, family: str) -> None:
    golden = dense_golden.load(family)
    folder = dense_golden.write(tmp_path / "model", golden)
    target = tmp_path / "made.gguf"
    Quantization(DirectorySource(folder), Wishes(recipe=RECIPES["F32"])).write(target)
    with opened(target) as model:
        assert error_of(model.logits(TOKENS), golden) <= BOUND_F32_CACHE


@pytest.mark.slow  # an emulator: tests/oracle has short texts on it
@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("family", dense_golden.FAMILIES)
def test_on_a_gpu_logits_are_the_golden_ones(tmp_path: Path, gpu: str, family: str) -> None:
    golden = dense_golden.load(family)
    folder = dense_golden.write(tmp_path / "model", golden)
    with opened(folder, device=gpu, kv_type="f32") as model:
        for path in ("prefill-chunks", "mixed-generated"):
            assert error_of(chunked(model, TOKENS, *GPU_PATHS[path]), golden) <= BOUND_F32_CACHE
