"""Patterns of schemas are ECMAScript's: a table keeps what a JavaScript engine said of them."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from tools.judge_grammar.ecma import compared, engine_says, table

TABLE = json.loads((Path(__file__).parent / "ecma.json").read_text(encoding="utf-8"))
UNSAID = re.compile(
    "a backreference|a word boundary|a repeated lookaround or edge|"
    r"\\p without a property|a lookahead or lookbehind that is too large"
)


def test_patterns_accept_what_the_engine_accepts() -> None:
    refused, taken, wrong = compared(TABLE)
    assert wrong == {}
    assert taken == {}, "patterns that the engine refuses"
    assert {pattern: why for pattern, why in refused.items() if not UNSAID.match(why)} == {}
    assert len(refused) < 0.03 * len(TABLE["patterns"])


@pytest.mark.skipif(shutil.which("node") is None, reason="no node here to ask")
def test_the_table_is_what_the_engine_says() -> None:
    patterns = list(TABLE["patterns"])
    said = engine_says([(pattern, TABLE["texts"]) for pattern in patterns])
    assert said == [TABLE["patterns"][pattern] for pattern in patterns]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="no node here to ask")
def test_thousands_of_patterns_accept_what_the_engine_accepts() -> None:
    _, taken, wrong = compared(table(seed=1, n=5000))
    assert wrong == {}
    assert taken == {}
