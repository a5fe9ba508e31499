"""The JSON Schema organisation's tests, against the committed report.

Debian's package has drafts 4 to 7. AKUNU_TEST_SCHEMA_SUITE may name another folder with `tests` in
it, such as `json` in the source package of jsonschema, which has 2019-09 and 2020-12 too.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tools.judge_grammar.acceptance import Judge
from tools.judge_grammar.suite import DEBIAN, judged_suite

import akunu

REPORT = json.loads((Path(__file__).parent / "schema_suite.json").read_text(encoding="utf-8"))
REFUSED = {name for names in REPORT["valid_refused"].values() for name in names}


def judged(every: int) -> dict[str, Any]:
    folder = Path(os.environ.get("AKUNU_TEST_SCHEMA_SUITE", DEBIAN))
    if not folder.is_dir():
        pytest.skip(f"{folder} (AKUNU_TEST_SCHEMA_SUITE) is not there")
    found = judged_suite(folder, Judge(akunu.Tokenizer.from_gguf("ember")), every)
    assert found
    for counts in found.values():
        assert counts["invalid_accepted"] == []
        assert set(counts["valid_refused"]) <= REFUSED
    return found


def test_of_a_sample_no_invalid_instance_is_accepted_and_no_valid_one_refused() -> None:
    judged(every=17)


@pytest.mark.slow
def test_every_group_is_judged_as_the_report_says() -> None:
    found = judged(every=1)
    known = [report for report in REPORT["counts"].values() if set(report) == set(found)]
    same_size = [
        report
        for report in known
        if all(report[draft]["groups"] == found[draft]["groups"] for draft in found)
    ]
    if not same_size:
        pytest.skip("another version of the suite than those of the report: no counts to compare")
    for draft, counts in found.items():
        expected = same_size[0][draft]
        assert {key: counts[key] for key in expected} == expected
