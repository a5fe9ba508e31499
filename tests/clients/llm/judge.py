"""The program `llm` of Simon Willison."""

from __future__ import annotations

from pathlib import Path

from client_checks import client_checks

VERSION = "llm 0.36"


def judge(work: Path) -> dict[str, str]:
    """What was wrong with each of our checks, "" for nothing."""
    return client_checks(work, Path(__file__).parent, "llm==0.36")
