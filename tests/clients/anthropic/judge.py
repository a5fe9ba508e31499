"""The tests inside the source package of Anthropic's client."""

from __future__ import annotations

from pathlib import Path

from package_tests import outcomes

VERSION = "anthropic 2.14.0"
_TESTS = (
    "tests/api_resources/test_messages.py",
    "tests/api_resources/test_models.py",
    "tests/api_resources/beta/test_messages.py",
    "tests/api_resources/beta/test_models.py",
)
# Of its lock file.
_TOOLS = [
    "hatchling==1.26.3",
    "hatch-fancy-pypi-readme==25.1.0",
    "pytest==9.0.3",
    "pytest-asyncio==1.3.0",
    "pytest-xdist==3.8.0",
    "respx==0.22.0",
    "rich==14.3.3",
    "http-snapshot==0.1.9",
    "inline-snapshot==0.32.5",
]
_MODELS = [
    "claude-opus-5-5",
    "claude-mythos-preview",
    "claude-opus-4-5",
    "claude-opus-4-5-20251101",
    "claude-sonnet-4-5",
    "claude-sonnet-4-5-20250929",
    "model_id",
]


def judge(work: Path) -> dict[str, str]:
    """Run them; what was wrong by test."""
    return outcomes(work, VERSION, _TESTS, tools=_TOOLS, models=_MODELS, base="")
