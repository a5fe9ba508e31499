"""What tests of grammars share: which texts one accepts."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest
from llguidance import LLMatcher, LLTokenizer

from akunu.grammar import Grammar
from akunu.grammar.limits import engine_limits

ROOT = Path(__file__).parents[2]


@cache
def _bytes() -> LLTokenizer:
    return LLTokenizer("byte")


def accepts(grammar: Grammar, text: str) -> bool:
    """Whether the whole text fits, byte by byte."""
    tokens = _bytes().tokenize_bytes(text.encode())
    matcher = LLMatcher(_bytes(), grammar.llguidance, limits=engine_limits())
    return matcher.try_consume_tokens(tokens) == len(tokens) and matcher.is_accepting()


def shared(variable: str, name: str) -> Path:
    """A file or folder of test data beside the repository; the test is skipped without it."""
    path = Path(os.environ.get(variable, ROOT.parent / "shared" / name))
    if not path.exists():
        pytest.skip(f"{path} ({variable}) is not there")
    return path
