"""Ollama's own Python client."""

from __future__ import annotations

from pathlib import Path

from client_checks import client_checks

VERSION = "ollama 0.6.3"


def judge(work: Path) -> dict[str, str]:
    """What was wrong with each of our checks, "" for nothing."""
    return client_checks(work, Path(__file__).parent, "ollama==0.6.3")
