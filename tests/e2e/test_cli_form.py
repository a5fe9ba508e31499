"""`akunu complete` and `akunu chat` with a form."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


def complete(*arguments: str, command: str = "complete") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "akunu", command, "--prompt", "Say: ", *arguments],
        stdin=subprocess.DEVNULL,
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


@pytest.mark.parametrize("command", ["complete", "chat"])
def test_a_json_object_begins_as_one(command: str) -> None:
    assert not complete("--max-tokens", "2", command=command).stdout.startswith("{")
    assert complete("--json-object", "--max-tokens", "2", command=command).stdout.startswith("{")


def test_an_answer_may_have_a_form(tmp_path: Path) -> None:
    def chat(*arguments: str) -> str:
        return complete(*arguments, command="chat").stdout

    assert chat("--choice", "red", "--choice", "green") in ("red\n", "green\n")
    assert chat("--regex", "a{7}") == "aaaaaaa\n"
    (tmp_path / "schema").write_text('{"const": [1, 2]}')
    assert json.loads(chat("--schema", str(tmp_path / "schema"))) == [1, 2]
    (tmp_path / "rules").write_text('root ::= "*blue*"')
    assert chat("--grammar", str(tmp_path / "rules")) == "*blue*\n"


def test_choices_and_rules_hold(tmp_path: Path) -> None:
    assert complete("--choice", "red", "--choice", "green").stdout in ("red\n", "green\n")
    (tmp_path / "rules").write_text('root ::= "blue"')
    assert complete("--grammar", str(tmp_path / "rules")).stdout == "blue\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--regex", "a", "--choice", "b"), "--regex and --choice are given; a text has one form"),
        (("--json-object", "--regex", "a"), "--json-object and --regex are given"),
        (("--schema", "nowhere.json"), "--schema nowhere.json cannot be read"),
    ],
)
@pytest.mark.parametrize("command", ["complete", "chat"])
def test_what_makes_no_sense_is_said(
    command: str, arguments: tuple[str, ...], message: str
) -> None:
    done = complete(*arguments, command=command)
    assert done.returncode == 2
    assert message in done.stderr
