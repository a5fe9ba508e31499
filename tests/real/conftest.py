"""Real, trained models: `pytest -m real`, with their folder in AKUNU_REAL_MODELS.

`.ci/run real` fetches them with the script that AKUNU_REAL_FETCH names, or with
`../shared/real/fetch.sh`; without the folder these tests are skipped. llama.cpp comes from the
wheel xllamacpp.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
def transformers() -> Any:
    """The package."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # what other packages warn about on import is theirs
        import transformers

    return transformers


@pytest.fixture(scope="session")
def saved(transformers: Any, real_models: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """`saved(dtype)`: the folder, made once, of the model saved in that type of torch."""
    import torch
    from tokenizers import pre_tokenizers

    model = transformers.AutoModelForCausalLM.from_pretrained(
        real_models, gguf_file="smollm2.gguf", dtype=torch.float32
    )
    # A model that comes from GGUF refuses to be saved.
    described = model.config.to_dict()
    described.pop("quantization_config", None)
    config = type(model.config)(**described)
    fresh = type(model)(config)
    fresh.load_state_dict(model.state_dict())
    tokenizer = transformers.AutoTokenizer.from_pretrained(real_models, gguf_file="smollm2.gguf")
    # transformers reads the vocabulary, but not how it is cut. SmolLM2's tokenizer.json says so.
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    made: dict[str, Path] = {}

    def save(dtype: str) -> Path:
        if dtype not in made:
            made[dtype] = tmp_path_factory.mktemp("smollm2") / dtype
            fresh.to(getattr(torch, dtype)).save_pretrained(made[dtype])
            tokenizer.save_pretrained(made[dtype])
            fresh.load_state_dict(model.state_dict())
        return made[dtype]

    return save


@pytest.fixture(scope="session")
def gemma3_file(real_models: Path) -> Path:
    """Gemma 3 270M: `gemma3`, Q4_K_M, a vocabulary of 262,144, no chat template."""
    return real_models / "gemma3.gguf"


@pytest.fixture(scope="session")
def windows(smollm2_file: Path) -> Windows:
    """Logits of SmolLM2 by both engines."""
    return read_windows(smollm2_file, n_windows=2)
