"""Agents of pydantic-ai."""

from __future__ import annotations

from pathlib import Path

from client_checks import client_checks

VERSION = "pydantic-ai-slim 2.68.0"


def judge(work: Path) -> dict[str, str]:
    """What was wrong with each of our checks, "" for nothing."""
    return client_checks(work, Path(__file__).parent, "pydantic-ai-slim[openai,anthropic]==2.68.0")
