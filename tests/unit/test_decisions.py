"""Chapters of docs/decisions: README lists each, and files refer to chapters that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = {path.name for path in (ROOT / "docs" / "decisions").glob("*.md")} - {"README.md"}
MOST_LINES = 120
REFERENCE = re.compile(r"docs/decisions/([\w.-]+\.md)((?:, [\w-]+\.md)*)")
BY_NUMBER = re.compile(r"\b[Dd]ecisions? \d|decisions/\d")
FOLDERS = ("src", "backend", "include", "python", "tools", "tests", "docs", "benchmarks")
ENDINGS = {".cpp", ".h", ".cu", ".cuh", ".metal", ".py", ".md", ".csv", ".txt"}


def files() -> list[Path]:
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.*")]
    return [ROOT / "CHANGELOG.md", *(path for path in found if path.suffix in ENDINGS)]


def test_readme_lists_every_chapter() -> None:
    text = (ROOT / "docs" / "decisions" / "README.md").read_text()
    assert set(re.findall(r"^\| \[[\w-]+\]\(([\w.-]+)\)", text, re.M)) == CHAPTERS


def test_a_chapter_is_one_page() -> None:
    lengths = {
        name: len((ROOT / "docs/decisions" / name).read_text().split("\n")) for name in CHAPTERS
    }
    assert {name: n for name, n in lengths.items() if n > MOST_LINES + 1} == {}


def test_files_refer_to_chapters_by_name() -> None:
    mistakes, n_references = [], 0
    for path in files():
        if path == Path(__file__).resolve():
            continue
        text = path.read_text(errors="replace")
        for first, more in REFERENCE.findall(text):
            names = {first, *filter(None, more.split(", "))}
            n_references += len(names)
            mistakes += [f"{path}: {name}" for name in names - CHAPTERS - {"README.md"}]
        mistakes += [f"{path}: {found}" for found in BY_NUMBER.findall(text)]
    assert mistakes == []
    assert n_references > 40
