"""How many refused constructions each file still has: a number that may only shrink."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from tools.english.rules import Hit, hits
from tools.english.texts import texts_of

ROOT: Final = Path(__file__).parents[2]
RECORD: Final = Path(__file__).with_name("counts.txt")
BY_FILE: Final = ("docs/", "python/akunu/", "tools/english/")
"""Folders whose files are counted one by one; of others, each folder of the second level is."""
NOT_OURS: Final = ("/vendor/", ".min.js")


def place_of(path: str) -> str:
    """Return under which name a file is counted.

    >>> place_of("python/akunu/model.py"), place_of("src/core/rows.h"), place_of("README.md")
    ('python/akunu/model.py', 'src/core/', 'README.md')
    """
    parts = path.split("/")
    if path.startswith(BY_FILE) or len(parts) < 3:
        return path
    return "/".join(parts[:2]) + "/"


def hits_of(root: Path, path: str) -> Iterator[tuple[int, Hit]]:
    """Yield the hits in a file of the tree, each with the line where its text begins."""
    for text in texts_of(root / path, strings=not path.startswith("tests/")):
        for hit in hits(text.text, is_help=text.is_help):
            yield text.line, hit


def files_of(root: Path) -> list[str]:
    """Return the files that git tracks, without those that others wrote."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    return [
        path
        for path in listed
        if path and (root / path).is_file() and not any(part in path for part in NOT_OURS)
    ]


def counts_of(root: Path, paths: Iterable[str]) -> Counter[str]:
    """Return the number of hits of each place that has some."""
    counts: Counter[str] = Counter()
    for path in paths:
        counts[place_of(path)] += sum(1 for _ in hits_of(root, path))
    return +counts


def recorded(text: str) -> dict[str, int]:
    """Return the numbers of a record, by place.

    >>> recorded("# a comment\\n3 docs/a.md\\n")
    {'docs/a.md': 3}
    """
    lines = [line.split(" ", 1) for line in text.splitlines() if line and line[0] != "#"]
    return {place: int(number) for number, place in lines}


def complaints(counts: Mapping[str, int], record: Mapping[str, int]) -> list[str]:
    """Return a line for each place whose number is not the recorded one."""
    found = []
    for place in sorted({*counts, *record}):
        now, before = counts.get(place, 0), record.get(place, 0)
        if now > before:
            found.append(
                f"{place}: {now} constructions that docs/glossary.md refuses, {before} recorded; "
                f"see: python -m tools.english show {place}"
            )
        elif now < before:
            found.append(
                f"{place}: lower the number: {before} are recorded, {now} are left; "
                "python -m tools.english lower"
            )
    return found


def lowered(counts: Mapping[str, int], record: Mapping[str, int]) -> str:
    """Return the record with lower numbers where there are fewer; none is raised."""
    head = [line for line in RECORD.read_text("utf-8").splitlines() if line.startswith("#")]
    numbers = {place: min(before, counts.get(place, 0)) for place, before in record.items()}
    lines = [f"{numbers[place]} {place}" for place in sorted(numbers) if numbers[place]]
    return "\n".join([*head, *lines, ""])
