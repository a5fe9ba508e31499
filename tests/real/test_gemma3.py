"""Gemma 3 270M, a base model with windows in five of six layers, beside other engines."""

from __future__ import annotations

from pathlib import Path

import pytest

import akunu

pytestmark = pytest.mark.real


def test_a_greedy_text_is_that_of_transformers(gemma3_file: Path) -> None:
    """transformers 5 on the dequantised weights in float32 continues like this."""
    with akunu.load(gemma3_file, context=512) as model:
        reply = model.generate("The capital of France is", max_tokens=20, temperature=0.0)
    assert reply.text == (
        " the capital of the country of France. It is the largest city in France and the second "
        "largest city"
    )
