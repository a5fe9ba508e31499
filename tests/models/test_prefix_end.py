"""Why a prompt took over no more of the cache, for texts whose history is known."""

from __future__ import annotations

import pytest

import akunu

_PROMPT = list(range(40, 90))


def _begin(model: akunu.Model, prompt: list[int]) -> tuple[int, str]:
    stream = model.generate(prompt, max_tokens=1, stream=True)
    for _ in stream:
        pass
    assert stream._decoder is not None
    return stream.cached_tokens, stream._decoder.generation.prefix_end


def test_the_engine_says_why_a_prefix_ends() -> None:
    with akunu.load("ember", context=512) as model:
        assert _begin(model, _PROMPT) == (0, "unknown")
        assert _begin(model, _PROMPT) == (len(_PROMPT) - 1, "whole")
        assert _begin(model, [*_PROMPT[:20], 7, 8, 9]) == (20, "differs")


@pytest.mark.parametrize("prompt", [_PROMPT, _PROMPT[:5]])
def test_a_model_that_keeps_nothing_says_so(prompt: list[int]) -> None:
    with akunu.load("ember", context=512, prefix_cache=False) as model:
        _begin(model, prompt)
        assert _begin(model, prompt) == (0, "off")
