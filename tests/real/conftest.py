"""Real, trained models: `pytest -m real`, with their folder in AKUNU_REAL_MODELS.

`.ci/run real` fetches them with the script that AKUNU_REAL_FETCH names, or with
`../shared/real/fetch.sh`; without the folder these tests are skipped. llama.cpp comes from the
wheel xllamacpp.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import akunu

sys.path.insert(0, str(Path(__file__).parents[2]))

from windows import Windows, read_windows


@pytest.fixture(scope="session")
def real_models() -> Path:
    """The folder of real models."""
    folder = os.environ.get("AKUNU_REAL_MODELS")
    if not folder:
        pytest.skip("AKUNU_REAL_MODELS names no folder of real models")
    return Path(folder)


@pytest.fixture(scope="session")
def smollm2_file(real_models: Path) -> Path:
    """SmolLM2-135M-Instruct: `llama`, Q4_1 with an embedding in Q8_0, a chat template."""
    return real_models / "smollm2.gguf"


@pytest.fixture(scope="session")
def smollm2(smollm2_file: Path) -> Iterator[akunu.Model]:
    """The model with a context of 512, for tests that only read."""
    with akunu.load(smollm2_file, context=512) as model:
        yield model


@pytest.fixture(scope="session")
def gemma3_file(real_models: Path) -> Path:
    """Gemma 3 270M: `gemma3`, Q4_K_M, a vocabulary of 262,144, no chat template."""
    return real_models / "gemma3.gguf"


@pytest.fixture(scope="session")
def windows(smollm2_file: Path) -> Windows:
    """Logits of SmolLM2 by both engines."""
    return read_windows(smollm2_file, n_windows=2)
