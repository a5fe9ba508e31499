"""Tables of the C++ tokenizers that are written by tools."""

from __future__ import annotations

from pathlib import Path

from tools.make_pre_tokenizers import families

ROOT = Path(__file__).parents[2]


def test_families_are_those_of_the_package() -> None:
    written = (ROOT / "src" / "text" / "pre_tokenizers.inc").read_text()
    assert written == families(), (
        "run: python -m tools.make_pre_tokenizers src/text/pre_tokenizers.inc"
    )
