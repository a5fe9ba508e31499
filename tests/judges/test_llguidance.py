"""llguidance's own tests through akunu's grammars and their masks, against the committed report."""

from __future__ import annotations

import json
from pathlib import Path

from tools.judge_grammar.acceptance import Judge
from tools.judge_grammar.llguidance import judged_tests, published

import akunu

FOLDER = Path(__file__).parent
REPORT = json.loads((FOLDER / "llguidance.json").read_text(encoding="utf-8"))


def test_published_expectations_of_llguidance_are_met_as_the_report_says() -> None:
    judge = Judge(akunu.Tokenizer.from_gguf("ember"))
    assert judged_tests(published(FOLDER / "llguidance_tests.json"), judge) == REPORT
