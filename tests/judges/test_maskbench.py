"""Schemas from the wild: some of them here, all of them nightly, against the committed report."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tools.judge_grammar.acceptance import Judge
from tools.judge_grammar.maskbench import Outcome, judged, report, schemas

import akunu

ROOT = Path(__file__).parents[2]
REPORT = json.loads((Path(__file__).parent / "maskbench.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def judge() -> Judge:
    return Judge(akunu.Tokenizer.from_gguf("ember"))


def outcomes(judge: Judge, every: int) -> list[Outcome]:
    folder = Path(os.environ.get("AKUNU_TEST_MASKBENCH", ROOT.parent / "shared" / "maskbench"))
    file = folder / "schemas.jsonl.gz"
    if not file.is_file():
        pytest.skip(f"{file} (AKUNU_TEST_MASKBENCH) is not there")
    return [judged(judge, case) for case in list(schemas(file))[::every]]


def check(found: list[Outcome]) -> None:
    assert {one.name for one in found if one.refused} <= set(REPORT["refused_schemas"])
    assert [one.name for one in found if one.refused and not one.llguidance_refuses] == []
    assert [one.name for one in found if one.invalid_accepted] == []
    refusing = [one for one in found if one.valid_refused]
    assert [one.name for one in refusing if not one.llguidance_refuses_them] == []


def test_a_sample_is_compiled_or_refused_and_its_instances_are_judged_right(judge: Judge) -> None:
    check(outcomes(judge, 29))


@pytest.mark.slow
def test_every_schema_is_judged_as_the_report_says(judge: Judge) -> None:
    found = outcomes(judge, 1)
    check(found)
    counts = report(found, judge)
    for key in ("schemas", "compiled", "refused", "reasons", "compiled_where_llguidance_refuses"):
        assert counts[key] == REPORT[key], key
