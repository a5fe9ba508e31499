"""SmolLM2 as the directory that transformers saves, beside its GGUF file and transformers."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from windows import LICENSE

import akunu

pytestmark = [pytest.mark.real, pytest.mark.oracle]


@pytest.fixture(scope="module")
def transformers() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # what other packages warn about on import is theirs
        import transformers

    return transformers


@pytest.fixture(scope="module")
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


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_logits_are_those_of_transformers(transformers: Any, saved: Any, dtype: str) -> None:
    import torch

    torch.set_num_threads(1)
    folder = saved(dtype)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    with akunu.load(folder, context=512, kv_type="f32") as model:
        tokens = model.tokenizer.encode(LICENSE.read_text())[:200]
        ours = model.logits(tokens)
    with torch.inference_mode():
        expected = theirs(torch.tensor([tokens]), use_cache=False).logits[0].numpy()
    error = float(np.abs(ours - expected).max() / np.abs(expected).max())
    print(dtype, error)
    # Halves: products are rounded to halves, too.
    assert error <= (1e-4 if dtype == "float32" else 5e-3)


def test_its_tokenizer_is_the_one_of_the_gguf_file(saved: Any, smollm2: akunu.Model) -> None:
    messages = [{"role": "user", "content": "What is the capital of France?"}]
    with akunu.load(saved("float16"), context=512) as model:
        assert model.tokenizer.chat_template == smollm2.tokenizer.chat_template
        assert model.tokenizer.stop_ids == smollm2.tokenizer.stop_ids
        assert model.tokenizer.vocabulary.tokens == smollm2.tokenizer.vocabulary.tokens
        assert model.tokenizer.merges() == smollm2.tokenizer.merges()
        reply = model.chat(messages, max_tokens=30)
    assert str(reply) == "The capital of France is Paris."
