"""The tests inside the source package of openai 2."""

from __future__ import annotations

from pathlib import Path

from package_tests import OPENAI_TESTS, outcomes

VERSION = "openai 2.54.0"
# Of its lock file, with pytest-xdist for its options.
_TOOLS = [
    "hatchling==1.26.3",
    "hatch-fancy-pypi-readme==25.1.0",
    "pytest==8.4.2",
    "pytest-asyncio==1.2.0",
    "pytest-xdist==3.8.0",
    "respx==0.22.0",
    "rich==14.2.0",
    "dirty-equals==0.11",
    "inline-snapshot==0.31.1",
]
_MODELS = [
    "gpt-5.4",
    "gpt-5.1",
    "gpt-5.6-sol",
    "gpt-4o",
    "gpt-4o-mini",
    "gpt-3.5-turbo-instruct",
    "model",
]


def judge(work: Path) -> dict[str, str]:
    """Run them; what was wrong by test."""
    return outcomes(work, VERSION, OPENAI_TESTS, tools=_TOOLS, models=_MODELS)
