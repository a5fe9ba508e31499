"""Files that tools/options.py writes are as the declarations say."""

from __future__ import annotations

from tools.options import ROOT, written


def test_the_written_files_are_up_to_date() -> None:
    for path, text in written().items():
        assert (ROOT / path).read_text(encoding="utf-8") == text, (
            f"{path}: run python -m tools.options"
        )
