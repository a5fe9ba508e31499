"""The cache of Gemma 3 270M, of whose 18 layers fifteen see 512 positions."""

from __future__ import annotations

from pathlib import Path
from pydoc_data.topics import topics

import pytest

import akunu

pytestmark = pytest.mark.real

PAGE = 256  # positions
LAYERS, HEAD_DIM = 18, 256  # one head of keys and values


@pytest.fixture(scope="module")
def tokens(gemma3_file: Path) -> list[int]:
    """Long English text that every Python has: what `help` says about the language."""
    text = "\n\n".join(topics[name] for name in sorted(topics))
    return akunu.Tokenizer.from_gguf(gemma3_file).encode(text[:40_000])


def test_of_a_long_context_it_takes_at_most_a_quarter_of_full_layers(gemma3_file: Path) -> None:
    full = LAYERS * 32_768 * HEAD_DIM * 2 * 2  # keys and values, of halves
    with akunu.load(gemma3_file, context=32_768) as model:
        assert model.memory["cache"] <= full / 4


def test_instructions_that_prompts_share_are_found_beyond_their_window(
    gemma3_file: Path, tokens: list[int]
) -> None:
    prompts = [tokens[:1200] + tokens[n : n + 400] for n in (2000, 3000, 4000, 5000)]
    with akunu.load(gemma3_file, context=4096, prefix_cache=False) as cold:
        expected = [cold.generate(prompt, max_tokens=12, temperature=0) for prompt in prompts]
    with akunu.load(gemma3_file, context=4096) as warm:
        replies = [warm.generate(prompt, max_tokens=12, temperature=0) for prompt in prompts]
    assert replies == expected
    assert [reply.cached_tokens for reply in replies[2:]] == [1200, 1200]


def test_texts_that_step_back_are_those_alone(gemma3_file: Path, tokens: list[int]) -> None:
    """Two texts that grow beyond their window, in a cache of five pages: both begin with two."""
    prompts = [tokens[n : n + 500] for n in (0, 6000)]
    page = 2 * HEAD_DIM * 2 * PAGE  # of a layer
    with akunu.load(gemma3_file, context=4 * PAGE, prefix_cache=False) as alone:
        expected = [alone.generate(prompt, max_tokens=120, temperature=0) for prompt in prompts]
    with akunu.load(gemma3_file, context=4 * PAGE, kv_memory=5 * LAYERS * page, threads=1) as model:
        streams = [
            model.generate(prompt, max_tokens=120, temperature=0, stream=True) for prompt in prompts
        ]
        for stream, text in zip(streams, expected, strict=True):
            assert "".join(stream) == text
