"""Anthropic's Python client, used as its users do."""

from __future__ import annotations

from pathlib import Path

from client_checks import client_checks

VERSION = "anthropic 2.14.0"


def judge(work: Path) -> dict[str, str]:
    """What was wrong with each of our checks, "" for nothing."""
    return client_checks(work, Path(__file__).parent, "anthropic==2.14.0")
