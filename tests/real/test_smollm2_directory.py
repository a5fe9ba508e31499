"""SmolLM2 as the directory that transformers saves, beside its GGUF file and transformers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from windows import LICENSE

import akunu

pytestmark = [pytest.mark.real, pytest.mark.oracle]


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
