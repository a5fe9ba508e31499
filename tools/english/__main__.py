"""The linter of prose.

python -m tools.english            refuses what counts.txt does not allow
python -m tools.english show PATH  shows each hit in a file or folder
python -m tools.english lower      lowers the numbers of counts.txt to those of today
"""

from __future__ import annotations

import sys
from collections import Counter

from tools.english.counts import (
    RECORD,
    ROOT,
    complaints,
    counts_of,
    files_of,
    hits_of,
    lowered,
    recorded,
)


def _check() -> int:
    counts = counts_of(ROOT, files_of(ROOT))
    found = complaints(counts, recorded(RECORD.read_text("utf-8")))
    print("\n".join([*found, f"{counts.total()} constructions are left to rewrite"]))
    return 1 if found else 0


def _show(start: str) -> int:
    rules: Counter[str] = Counter()
    for path in files_of(ROOT):
        if path == start or path.startswith(start.rstrip("/") + "/") or start == ".":
            for line, hit in hits_of(ROOT, path):
                rules[hit.rule] += 1
                print(f"{path}:{line}: {hit.rule}: {hit.found} (instead: {hit.instead})")
    print(rules.total(), dict(rules.most_common()))
    return 0


def _lower() -> int:
    record = recorded(RECORD.read_text("utf-8"))
    RECORD.write_text(lowered(counts_of(ROOT, files_of(ROOT)), record), "utf-8")
    return 0


def main(arguments: list[str]) -> int:
    match arguments:
        case []:
            return _check()
        case ["show", path]:
            return _show(path)
        case ["lower"]:
            return _lower()
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
