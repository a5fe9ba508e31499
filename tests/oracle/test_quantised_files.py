"""Files of `akunu quantize` beside those with llama.cpp's rows, and in llama.cpp itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tools.compare.accuracy import engine_logits
from tools.compare.divergence import negative_log_likelihoods, perplexity
from tools.compare.quantise import dequantise
from tools.compare.texts import read_text
from tools.quantise_quality import qualities

import akunu
from akunu.convert.quantizing import Quantization, Wishes
from akunu.convert.recipes import RECIPES
from akunu.convert.sources import GgufSource
from akunu.hub.packaged_models import PACKAGED_MODELS

pytestmark = pytest.mark.oracle


@pytest.fixture(scope="module")
def ember_f32(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("f32") / "ember.gguf"
    dequantise(PACKAGED_MODELS["ember"], path)
    return path


@pytest.mark.parametrize("type_name", ["Q4_0", "Q4_1", "Q5_0", "Q4_K_M", "Q5_K_M", "Q6_K"])
def test_a_quantised_ember_is_no_further_from_ember_than_llama_cpps(
    ember_f32: Path, type_name: str
) -> None:
    with akunu.load(context=16) as model:
        chunks = read_text(model.tokenizer, "dialogues", length=256, n_chunks=8).chunks
    (quality,) = qualities(ember_f32, [type_name], chunks)
    assert quality.ours <= quality.theirs


def slow_but(quick: tuple[str, ...]) -> list[Any]:
    return [
        pytest.param(name, marks=[] if name in quick else pytest.mark.slow)
        for name in RECIPES
        if name != "F32"
    ]


@pytest.mark.parametrize("type_name", slow_but(("Q4_K_M", "IQ4_XS", "MXFP4")))
def test_llama_cpp_reads_a_quantised_file_as_akunu_does(
    ember_f32: Path, peer: str, tmp_path: Path, type_name: str
) -> None:
    path = tmp_path / "made.gguf"
    Quantization(GgufSource(ember_f32), Wishes(recipe=RECIPES[type_name])).write(path)
    with akunu.load(path, context=257) as model:
        text = read_text(model.tokenizer, "dialogues", length=256, n_chunks=4)
        ours = [model.logits(chunk) for chunk in text.chunks]
    theirs = engine_logits(peer, "llama_cpp_logits", path, text.chunks, kv_type="f16", threads=1)
    found = [
        perplexity(
            [
                negative_log_likelihoods(np.asarray(chunk), *which)
                for chunk, *which in zip(logits, text.chunks, text.counted, strict=True)
            ]
        )
        for logits in (ours, theirs)
    ]
    # Both round what goes into a matmul, each in its way.
    assert abs(found[0] / found[1] - 1) <= 0.01
