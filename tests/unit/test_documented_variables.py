"""Variables of the environment that the pages name: each is read by something in the repository."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VARIABLE = re.compile(r"\bAKUNU_[A-Z0-9_]+\b")
# Of tables of settings, whose names say what the variable is called.
SETTINGS = ("AKUNU_SERVE_", "AKUNU_RAY_")
NOT_OURS = {"AKUNU_API_KEY"}  # what the settings of a client of the server are told to look for


def variables_in(*paths: Path) -> set[str]:
    return {name for path in paths for name in VARIABLE.findall(path.read_text(errors="replace"))}


def sources() -> list[Path]:
    endings = {".py", ".cpp", ".h", ".txt", ".cmake", ".toml", ".sh", ""}
    folders = (
        "src",
        "backend",
        "include",
        "python",
        "tools",
        "tests",
        "packaging",
        "bindings",
        ".ci",
    )
    found = [
        path
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.suffix in endings and path.is_file() and "build" not in path.parts
    ]
    return [ROOT / "CMakeLists.txt", *found]


def test_every_variable_that_a_page_names_is_read_somewhere() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    named = {name for name in variables_in(*pages) if not name.startswith(SETTINGS)}
    assert named - NOT_OURS <= variables_in(*sources())


def test_every_setting_that_a_page_names_as_a_variable_is_one() -> None:
    settings = pytest.importorskip("akunu.server.settings").ServerSettings
    ray = pytest.importorskip("akunu.ray.settings").RaySettings
    known = {
        prefix + name.upper()
        for prefix, kind in zip(SETTINGS, (settings, ray), strict=True)
        for name in kind.__dataclass_fields__
    }
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    assert {name for name in variables_in(*pages) if name.startswith(SETTINGS)} <= known
