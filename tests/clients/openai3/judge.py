"""The tests inside the source package of openai 3."""

from __future__ import annotations

from pathlib import Path

from package_tests import OPENAI_TESTS, outcomes

VERSION = "openai 3.57.0"
# As its lock file has them.
_TOOLS = [
    "hatchling==1.33.0",
    "pytest==9.0.3",
    "pytest-asyncio==1.4.0",
    "pytest-xdist==3.8.0",
    "rich==14.2.0",
    "inline-snapshot==0.31.1",
]
_MODELS = ["gpt-6-astra", "gpt-3.5-turbo-instruct", "model"]


def judge(work: Path) -> dict[str, str]:
    """Run them; what was wrong by test."""
    return outcomes(work, VERSION, OPENAI_TESTS, tools=_TOOLS, models=_MODELS)
