"""What a model computes when it is loaded, so that its first request is as fast as others."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from akunu.errors import AkunuError
from akunu.model import Model
from akunu.text.request import Request

_TEXT: Final = "Hello"
_N_PROMPT: Final = 32
"""Enough rows for the kernels of prompts."""


def warm_up(model: Model) -> None:
    """Build a model's tokenizer and template, read a prompt and generate a token.

    An error is not raised: the first request reports it.
    """
    with suppress(AkunuError):
        if model.embedding is not None:
            model.embed([_TEXT])
            return
        model.tokenizer.encode(_TEXT)
        with suppress(AkunuError):  # a model without a template continues texts
            model._pipeline.prompt(Request(messages=[{"role": "user", "content": _TEXT}]))
        # No request begins like this: the prefix cache has nothing for it from here.
        prompt = [model.config.vocab_size - 1] * min(_N_PROMPT, model.context - 2)
        model.generate(prompt, max_tokens=2, temperature=0, ignore_eos=True)
