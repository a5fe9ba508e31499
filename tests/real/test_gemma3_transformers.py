"""Gemma 3 270M beside Hugging Face transformers on the same, dequantised weights."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from windows import LICENSE

import akunu

pytestmark = [pytest.mark.real, pytest.mark.oracle]

PROMPTS = (
    "The capital of France is",
    "Once upon a time",
    "def fibonacci(n):\n",
    "Die drei häufigsten Obstsorten sind",
)
N_TOKENS = 32
# Activations are rounded to int8 here and not there; where the choices differ, they must be this
# near in transformers' logits.
CLOSE = 0.5


@pytest.fixture(scope="module")
def theirs(real_models: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("default")  # what other packages warn about on import is theirs
        import torch
        import transformers

        torch.set_num_threads(2)
        model = transformers.AutoModelForCausalLM.from_pretrained(
            real_models, gguf_file="gemma3.gguf", dtype=torch.float32
        )
    return model.eval()


def logits_after(model: Any, tokens: list[int], n: int) -> Any:
    """Of the last `n` tokens."""
    import torch

    with torch.inference_mode():
        out = model(torch.tensor([tokens]), use_cache=False, logits_to_keep=n)
    return out.logits[0].numpy()


def test_greedy_texts_are_those_of_transformers_up_to_close_calls(
    theirs: Any, gemma3_file: Path
) -> None:
    n_close = 0
    with akunu.load(gemma3_file, context=512) as model:
        for text in PROMPTS:
            prompt = model.tokenizer.encode(text)
            reply = list(model.generate(prompt, max_tokens=N_TOKENS, temperature=0.0).token_ids)
            after = logits_after(theirs, prompt + reply[:-1], len(reply))
            behind = after.max(axis=1) - after[np.arange(len(reply)), reply]
            assert behind.max() <= CLOSE, (text, model.tokenizer.decode(reply))
            n_close += int((behind > 0).sum())
    assert n_close <= len(PROMPTS) * N_TOKENS // 10


def test_the_next_token_beyond_every_window_is_that_of_transformers(
    theirs: Any, gemma3_file: Path
) -> None:
    """A text of three windows: the first two have left the windowed layers."""
    import torch

    with akunu.load(gemma3_file, context=2048) as model:
        tokens = model.tokenizer.encode(LICENSE.read_text())[:1536]
        ours = model.logits(tokens)[-1]
    expected = logits_after(theirs, tokens, 1)[0]
    assert ours.argmax() == expected.argmax()
    p, q = (torch.log_softmax(torch.tensor(x).double(), 0) for x in (expected, ours))
    assert float((p.exp() * (p - q)).sum()) <= 0.02
