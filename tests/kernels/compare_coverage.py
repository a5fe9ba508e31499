"""Whether the tables have every line that the parametrised items before them had.

`coverage_before.txt.gz` has those items: a line each, of a file, a test, a level, and the values of
the parameters. Run it in an environment with akunu: `python tests/kernels/compare_coverage.py`.
"""

from __future__ import annotations

import gzip
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tables import Case

HERE = Path(__file__).parent
BEFORE = HERE / "coverage_before.txt.gz"


class Collected:
    """A plugin of pytest that keeps the lines of the items it collects."""

    def __init__(self) -> None:
        self.on_change: Counter[str] = Counter()
        self.nightly: Counter[str] = Counter()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            for case in getattr(item, "cases", [None]):
                name = item.name if case is None else case.function.__name__
                later = case is not None and not case.on_change
                (self.nightly if later else self.on_change)[described(item, name, case)] += 1


def described(item: pytest.Item, name: str, case: Case | None) -> str:
    from tables import labelled  # the conftest of all tests makes the path to it

    targets = list(case.on_device.values()) if case else []
    arguments = case.line.arguments if case else {}
    words = sorted(f"{column}={labelled(value, 0)}" for column, value in arguments.items())
    return "\t".join([item.path.name, name, str(targets[0]) if targets else "-", *words])


def main() -> int:
    found = Collected()
    pytest.main(["--collect-only", "-qq", "-n", "0", "-m", "", str(HERE)], plugins=[found])
    lines = found.on_change + found.nightly
    levels = {line.split("\t")[2] for line in lines}
    every = gzip.decompress(BEFORE.read_bytes()).decode().splitlines()
    before = Counter(line for line in every if line.split("\t")[2] in levels)
    missing = before - lines
    print("\n".join(missing.elements()))
    print(
        f"before: {len(every)} items, {before.total()} of them on levels of this machine; lines: "
        f"{lines.total()}, {found.on_change.total()} with every change; missing: {missing.total()}"
    )
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
