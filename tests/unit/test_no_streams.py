"""The engine reads what it must know without streams and locales: see src/core/system_file.h."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]

_HEADERS = "fstream|sstream|iostream|istream|ostream|iomanip|locale|regex|clocale|locale.h"
_INCLUDE = re.compile(rf"#\s*include\s*[<\"]({_HEADERS})[>\"]")


def test_no_source_of_the_engine_includes_streams_or_locales() -> None:
    sources = [
        path
        for folder in ("src", "backend")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".cpp", ".h", ".hpp")
    ]
    assert len(sources) > 150  # this looks where they are
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in sources
        if (match := _INCLUDE.search(path.read_text(encoding="utf-8")))
    ]
    assert not found
