"""What formats a commit is what CI looks with: versions are pinned in two places."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_pre_commit_and_ci_have_the_same_versions() -> None:
    hooks = (ROOT / ".pre-commit-config.yaml").read_text("utf-8")
    wanted = (ROOT / ".ci" / "requirements-lint.txt").read_text("utf-8")
    pinned = re.findall(r"additional_dependencies: \[(.*)\]", hooks)
    assert {version.split("==")[0] for version in pinned} == {"ruff", "clang-format"}
    assert set(pinned) <= set(wanted.splitlines())
