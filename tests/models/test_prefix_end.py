"""Why a prompt took over no more of the cache, for texts whose history is known."""

from __future__ import annotations

from typing import get_args

import pytest
from engine import settle

import akunu
from akunu.common.prefix_end import PrefixEnd, explained

_PROMPT = list(range(40, 90))


def _begin(model: akunu.Model, prompt: list[int]) -> tuple[int, str]:
    reply = model.generate(prompt, max_tokens=1)
    return reply.cached_tokens, reply.prefix_end


def test_a_text_says_why_a_prefix_ends() -> None:
    with akunu.load("ember", context=512) as model:
        assert _begin(model, _PROMPT) == (0, "unknown")
        assert _begin(model, _PROMPT) == (len(_PROMPT) - 1, "whole")
        assert _begin(model, [*_PROMPT[:20], 7, 8, 9]) == (20, "differs")
        settle(model)
        reply = model.generate(_PROMPT, max_tokens=1)
        settle(model)
        n = len(_PROMPT) + 1
        assert _begin(model, [*_PROMPT, *reply.token_ids, 5, 6]) == (n, "ends")


def test_a_stream_says_it_too() -> None:
    with akunu.load("ember", context=512) as model:
        with model.generate(_PROMPT, max_tokens=2, stream=True) as stream:
            list(stream)
        assert stream.prefix_end == stream.completion.prefix_end == "unknown"


def test_outputs_that_are_wanted_are_computed() -> None:
    with akunu.load("ember", context=512) as model:
        _begin(model, _PROMPT)
        reply = model.generate(_PROMPT, max_tokens=1, prompt_logprobs=0)
        assert (reply.cached_tokens, reply.prefix_end) == (0, "outputs")


@pytest.mark.parametrize("prompt", [_PROMPT, _PROMPT[:5]])
def test_a_model_that_keeps_nothing_says_so(prompt: list[int]) -> None:
    with akunu.load("ember", context=512, prefix_cache=False) as model:
        _begin(model, prompt)
        assert _begin(model, prompt) == (0, "off")


def test_all_but_the_good_ones_are_explained() -> None:
    assert {end for end in get_args(PrefixEnd) if not explained(end)} == {"", "whole"}
