"""What models wrote under schemas from the wild, as committed; nightly, some of it again."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tools.judge_grammar.generation import generated

ROOT = Path(__file__).parents[2]
REPORTS = json.loads((Path(__file__).parent / "generation.json").read_text(encoding="utf-8"))


BRIEF = [report for report in REPORTS if report["brief"]]


@pytest.mark.parametrize("report", BRIEF, ids=lambda report: report["model"])
def test_nine_of_ten_texts_came_to_an_end_and_all_of_them_were_valid(report: dict) -> None:
    assert report["texts"] >= 100
    assert report["complete"] >= 0.9 * report["texts"]
    assert report["invalid"] == []


def test_of_texts_without_bounds_none_was_invalid_either() -> None:
    assert [report["invalid"] for report in REPORTS if not report["brief"]] == [[]]


@pytest.mark.slow
def test_texts_are_complete_and_valid_again() -> None:
    folder = Path(os.environ.get("AKUNU_TEST_MASKBENCH", ROOT.parent / "shared" / "maskbench"))
    file = folder / "schemas.jsonl.gz"
    if not file.is_file():
        pytest.skip(f"{file} (AKUNU_TEST_MASKBENCH) is not there")
    found = generated("ember", file, 60, 1)
    assert found["invalid"] == []
    assert found["complete"] >= 51
