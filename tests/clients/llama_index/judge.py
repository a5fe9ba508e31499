"""LlamaIndex's OpenAILike."""

from __future__ import annotations

from pathlib import Path

from client_checks import client_checks

VERSION = "llama-index-llms-openai-like 0.8.1"


def judge(work: Path) -> dict[str, str]:
    """What was wrong with each of our checks, "" for nothing."""
    return client_checks(work, Path(__file__).parent, "llama-index-llms-openai-like==0.8.1")
