"""openai-python as its users use it, in its two newest major versions."""

from __future__ import annotations

from pathlib import Path

from client_checks import client_checks

VERSIONS = ("2.54.0", "3.57.0")
VERSION = f"openai {' and '.join(VERSIONS)}"


def judge(work: Path) -> dict[str, str]:
    """What was wrong with each of our checks by version, "" for nothing."""
    found = {}
    for version in VERSIONS:
        (work / version).mkdir()
        told = client_checks(work / version, Path(__file__).parent, f"openai=={version}")
        found.update({f"{version}: {check}": wrong for check, wrong in told.items()})
    return found
