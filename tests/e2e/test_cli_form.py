"""`akunu complete` with a form."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


def complete(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "akunu", "complete", "--prompt", "Say: ", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_a_schema_in_a_file_gives_json(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}
    (tmp_path / "schema.json").write_text(json.dumps({**schema, "additionalProperties": False}))
    done = complete("--schema", str(tmp_path / "schema.json"), "--max-tokens", "200")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["a"] in (True, False)


def test_choices_and_rules_hold(tmp_path: Path) -> None:
    assert complete("--choice", "red", "--choice", "green").stdout in ("red\n", "green\n")
    (tmp_path / "rules").write_text('root ::= "blue"')
    assert complete("--grammar", str(tmp_path / "rules")).stdout == "blue\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--regex", "a", "--choice", "b"), "--regex and --choice are given; a text has one form"),
        (("--schema", "nowhere.json"), "--schema nowhere.json cannot be read"),
    ],
)
def test_what_makes_no_sense_is_said(arguments: tuple[str, ...], message: str) -> None:
    done = complete(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
