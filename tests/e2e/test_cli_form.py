"""`akunu complete` and `akunu chat` with a form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lines import each_line

OBJECT = {
    "type": "object",
    "properties": {"a": {"type": "boolean"}},
    "required": ["a"],
    "additionalProperties": False,
}
# Ember goes on with 1, 1, 1: no grammar knows that these are equal.
DIFFERENT = json.dumps(
    {
        "type": "array",
        "items": {"type": "integer", "minimum": 1, "maximum": 9},
        "minItems": 3,
        "maxItems": 4,
        "uniqueItems": True,
    }
)
BLUE = 'root ::= "blue"'


@pytest.fixture
def say(run_akunu: Any) -> Any:
    """`say("complete", "--regex", "a")`: what came of a command."""

    def call(command: str, *arguments: str) -> Any:
        done = run_akunu(command, "--prompt", "Say: ", *arguments)
        assert done.returncode == 0, done.stderr
        return done

    return call


@pytest.mark.parametrize("command", ["complete", "chat"])
def test_forms_hold(say: Any, command: str, tmp_path: Path) -> None:
    assert not say(command, "--max-tokens", "2").stdout.startswith("{")
    assert say(command, "--json-object", "--max-tokens", "2").stdout.startswith("{")
    assert say(command, "--choice", "red", "--choice", "green").stdout in ("red\n", "green\n")
    assert say(command, "--regex", "a{7}").stdout == "aaaaaaa\n"
    (tmp_path / "schema.json").write_text(json.dumps(OBJECT))
    (tmp_path / "rules").write_text('root ::= "*blue*"')
    done = say(command, "--schema", "schema.json", "--max-tokens", "200")
    assert json.loads(done.stdout)["a"] in (True, False)
    assert say(command, "--grammar", "rules").stdout == "*blue*\n"


@pytest.mark.parametrize(
    ("option", "text", "reply"),
    [
        ("--schema", ' {"const": 12}', "12\n"),
        ("--schema", json.dumps({"const": "x" * 300}), json.dumps("x" * 300) + "\n"),
        ("--grammar", BLUE, "blue\n"),
        ("--grammar", 'start: "blue"', "blue\n"),
        ("--grammar", 'root ::= a\na ::= "blue"', "blue\n"),
    ],
)
def test_schemas_and_rules_may_be_texts(say: Any, option: str, text: str, reply: str) -> None:
    assert say("complete", option, text, "--no-loop-guard").stdout == reply


def test_a_file_is_read_whatever_its_name_looks_like(say: Any, tmp_path: Path) -> None:
    (tmp_path / "{}").write_text('{"const": 7}')
    (tmp_path / "root: x").write_text(BLUE)
    assert say("complete", "--schema", "{}").stdout == "7\n"
    assert say("complete", "--grammar", "root: x").stdout == "blue\n"


@pytest.mark.parametrize("command", ["complete", "chat"])
def test_what_no_grammar_can_hold_is_left_out_where_asked_and_said(
    say: Any, run_akunu: Any, command: str
) -> None:
    asked = (command, "--prompt", "1, 1, 1: ", "--schema", DIFFERENT)
    refused = run_akunu(*asked)
    assert refused.returncode == 1
    assert "/uniqueItems: no grammar can compare items" in refused.stderr
    done = run_akunu(*asked, "--weaken-schema")
    assert json.loads(done.stdout)[:3] == [1, 1, 1]
    assert "--weaken-schema: /uniqueItems is ignored: no grammar can compare items" in done.stderr
    assert "the text does not fit its schema: at its root: [1, 1, 1" in done.stderr


def test_json_tells_what_was_left_out_and_what_the_text_does_against_it(run_akunu: Any) -> None:
    asked = ("complete", "--prompt", "1, 1, 1: ", "--json", "--schema")
    found = json.loads(run_akunu(*asked, DIFFERENT, "--weaken-schema").stdout)
    assert [each["pointer"] for each in found["weakened"]] == ["/uniqueItems"]
    assert "has non-unique elements" in found["mistakes"][0]
    assert "weakened" not in json.loads(run_akunu(*asked, json.dumps({"const": 1})).stdout)


@each_line(
    ("arguments", "message"),
    [
        (("--regex", "a", "--choice", "b"), "--regex and --choice are set: use only one of them"),
        (("--json-object", "--regex", "a"), "--json-object and --regex are set"),
        (("--schema", "nowhere.json"), "--schema nowhere.json cannot be read: No such file"),
        (("--schema", ""), "--schema is empty; set a text or a file with text"),
        (("--grammar", "nowhere.gbnf"), "--grammar nowhere.gbnf cannot be read: No such file"),
        (("--weaken-schema",), "--weaken-schema needs --schema"),
    ],
)
@each_line("command", ["complete", "chat"])
def test_what_makes_no_sense_is_said(
    run_akunu: Any, command: str, arguments: tuple[str, ...], message: str
) -> None:
    done = run_akunu(command, "--prompt", "Say: ", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
