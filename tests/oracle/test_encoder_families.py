"""Encoders of every family, from directories: each token's vector is transformers'."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("torch")
pytest.importorskip("transformers")

import random_encoders as rnd
import torch
from engine import relative_error
from measured_errors import record

import akunu

pytestmark = pytest.mark.oracle

# Families that test_every_format.py does not test, by their names in docs/reference/models.md.
MEASURED = {"modernbert": "modern-bert", "eurobert": "eurobert", "gemma3": "gemma-embedding"}


def hidden_rows(model: Any, ids: list[int]) -> NDArray[np.float32]:
    given = torch.tensor([ids])
    with torch.no_grad():
        output = model(input_ids=given, attention_mask=torch.ones_like(given))
    rows: NDArray[np.float32] = output.last_hidden_state[0].numpy()
    return rows


def ids_of(n: int) -> list[int]:
    """Token ids without those of padding, whose positions RoBERTa does not count."""
    return np.random.default_rng(n).integers(2, rnd.VOCAB, n).tolist()


def with_modules(folder: Path) -> None:
    """Say that a decoder is used as an encoder, as sentence-transformers does."""
    kind = "sentence_transformers.models."
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": kind + "Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": kind + "Pooling"},
        {"idx": 2, "name": "2", "path": "2_Normalize", "type": kind + "Normalize"},
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(
        json.dumps({"word_embedding_dimension": 64, "pooling_mode_lasttoken": True})
    )


@pytest.mark.parametrize("device", ["cpu", "metal-emulated"])
@pytest.mark.parametrize("family", list(rnd.CONFIGS))
def test_every_token_has_the_vector_of_transformers(
    tmp_path: Path, family: str, device: str
) -> None:
    if device != "cpu" and family not in ("modernbert", "qwen3"):
        pytest.skip("the emulator is slow: one family with windows and one that is causal")
    model = rnd.model_of(family)
    folder = rnd.save(tmp_path / family, model)
    if family == "qwen3":
        with_modules(folder)
    with akunu.load(folder, device=device) as ours:
        assert ours.context == 300 or family in ("roberta", "xlm-roberta")
        for n in (1, 5, 40, 290) if device == "cpu" else (1, 70):
            theirs = hidden_rows(model, ids_of(n))
            (found,) = ours.embed([ids_of(n)], pooling="none", normalize=False)
            np.testing.assert_allclose(found, theirs, atol=5e-5 * np.abs(theirs).max())
        if family in MEASURED:
            error = relative_error(found, theirs)
            record(MEASURED[family], "safetensors F32", device, error)
        texts = [ids_of(n) for n in (3, 200, 17, 40)]
        together = ours.embed(texts)
        for text, vector in zip(texts, together, strict=True):
            assert ours.embed([text])[0].tobytes() == vector.tobytes()
