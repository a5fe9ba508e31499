"""Files of `akunu quantize` beside those with llama.cpp's rows: no further from the model."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.compare.quantise import dequantise
from tools.compare.texts import read_text
from tools.quantise_quality import qualities

import akunu
from akunu.loading import PACKAGED_MODELS

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
