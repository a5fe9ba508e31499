"""Keys of sentence-transformers' files that change vectors, beside sentence-transformers itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sentence_transformers")

import random_encoders as rnd
from sentence_transformers import SentenceTransformer

import akunu

pytestmark = pytest.mark.oracle

TEXTS = ["a cat", "The CAT of a b c", "b", "Tractor a"]
PROMPTS = {"query": "a b c: ", "document": ""}
KIND = "sentence_transformers.models."
MODULES = [("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rnd.save(tmp_path_factory.mktemp("bert") / "m", rnd.model_of("bert"))


def write(
    folder: Path, pooling: dict[str, Any], rows: dict[str, Any], model: dict[str, Any]
) -> None:
    """Write the files of a model, with these keys besides the usual ones."""
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": KIND + name}
        for i, (name, path) in enumerate(MODULES)
    ]
    files: dict[str, Any] = {
        "modules.json": modules,
        "1_Pooling/config.json": {"word_embedding_dimension": 64, **pooling},
        "sentence_bert_config.json": {"max_seq_length": 64, **rows},
        "config_sentence_transformers.json": {"prompts": PROMPTS, **model},
    }
    for name, value in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(value))


@pytest.mark.parametrize(
    ("pooling", "rows", "model"),
    [
        ({"pooling_mode": "mean", "include_prompt": False}, {}, {}),
        ({"pooling_mode": "cls", "include_prompt": False}, {}, {"default_prompt_name": "query"}),
        ({"pooling_mode": ["max"], "include_prompt": False}, {}, {}),
        ({"pooling_mode": "lasttoken", "include_prompt": False}, {}, {}),
        ({"pooling_mode_mean_tokens": True, "include_prompt": True}, {}, {}),
        ({}, {"do_lower_case": True}, {"default_prompt_name": "query"}),
        ({}, {}, {"truncate_dim": 24, "similarity_fn_name": "dot"}),
        ({}, {"transformer_task": "feature-extraction", "unpad_inputs": None}, {}),
    ],
)
def test_vectors_are_those_of_sentence_transformers(
    folder: Path, pooling: dict[str, Any], rows: dict[str, Any], model: dict[str, Any]
) -> None:
    write(folder, pooling, rows, model)
    theirs = SentenceTransformer(str(folder), device="cpu")
    with akunu.load(folder) as ours:
        for name in (None, "query", "document"):
            expected = theirs.encode(TEXTS, prompt_name=name, normalize_embeddings=True)
            found = ours.embed(TEXTS, prompt_name=name)
            np.testing.assert_allclose(found, expected, atol=2e-5)
