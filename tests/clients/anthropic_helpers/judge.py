"""What Anthropic's client does beyond single requests: streams, parsed answers, tools it calls."""

from __future__ import annotations

from pathlib import Path

from environment import pytest_outcomes, virtual_environment
from serving import serving

VERSION = "anthropic 2.14.0"


def judge(work: Path) -> dict[str, str]:
    """Run `helpers.py` beside this file; what was wrong by test."""
    number = VERSION.split()[1]
    python = virtual_environment(work / "venv", f"anthropic=={number}", "pytest==9.0.3")
    (work / "helpers.py").write_bytes(Path(__file__).with_name("helpers.py").read_bytes())
    with serving(work, "ember") as address:
        return pytest_outcomes(python, work, "helpers.py", ANTHROPIC_BASE_URL=address)
