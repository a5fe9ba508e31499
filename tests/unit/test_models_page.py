"""docs/reference/models.md is up to date, and has every architecture and format."""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from tools.models_page import DOCUMENT, RESULTS, document, read_results

from akunu import _core

SOURCES = Path(__file__).parents[2] / "src" / "core"


def in_source(file: str, pattern: str) -> set[str]:
    """Every match in a file of the engine's."""
    return set(re.findall(pattern, (SOURCES / file).read_text(encoding="utf-8")))


def test_the_page_of_models_is_up_to_date() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == document(), "run: python -m tools.models_page"


def test_every_architecture_and_number_format_was_measured_on_the_cpu() -> None:
    measured = [key for key in read_results(RESULTS) if key[2] == "cpu"]
    assert {key[0] for key in measured} == {family["architecture"] for family in _core.families()}
    gguf = {key[1].removeprefix("GGUF ").lower() for key in measured if key[1].startswith("GGUF")}
    assert gguf == in_source("format.cpp", r'made_of\(Format::(\w+), "') - {"mlx_mxfp4"}
    mlx = {key[1].removeprefix("MLX ") for key in measured if key[1].startswith("MLX")}
    assert mlx == {"mxfp4", *(f"{bits} bits" for bits in (2, 3, 4, 5, 6, 8))}
