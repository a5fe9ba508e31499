"""Instructor over OpenAI's client."""

from __future__ import annotations

from pathlib import Path

from client_checks import client_checks

VERSION = "instructor 1.17.0"


def judge(work: Path) -> dict[str, str]:
    """What was wrong with each of our checks, "" for nothing."""
    return client_checks(work, Path(__file__).parent, "instructor==1.17.0", "openai==3.3.0")
