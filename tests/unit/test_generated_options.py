"""Generated files are as the declarations of options say."""

from __future__ import annotations

from tools.options import ROOT, generated_files


def test_the_generated_files_are_up_to_date() -> None:
    for path, text in generated_files().items():
        assert (ROOT / path).read_text(encoding="utf-8") == text, (
            f"{path}: run python -m tools.options"
        )
