"""Options of `akunu complete` that change what is read and where it ends."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from akunu.cli.options import unescaped_all
from lines import each_line

CHATML = "<|im_start|>user\nWhat is 12 + 7?<|im_end|>\n<|im_start|>assistant\n"


def test_names_of_control_tokens_are_tokens_where_that_is_asked_for(run_akunu: Any) -> None:
    done = run_akunu("complete", "--parse-special", "--prompt", CHATML)
    assert done.stdout == "12 + 7 = 19\n"


def test_a_stop_text_may_be_escaped(run_akunu: Any, ember: Any) -> None:
    prompt = "Spell the word apple."
    whole = ember.generate(prompt, max_tokens=60, temperature=3, seed=4)
    done = run_akunu(
        *("complete", "--prompt", prompt, "--max-tokens", "60", "--temperature", "3"),
        *("--seed", "4", "--stop", r"\n", "--no-loop-guard"),
    )
    assert done.stdout == whole.partition("\n")[0] + "\n"


@each_line(
    ("typed", "meant"),
    [(r"\n", "\n"), (r"\t", "\t"), (r"\\n", r"\n"), (r"a\\\nb", "a\\\nb"), ("plain", "plain")],
)
def test_escapes_mean_what_they_mean_elsewhere(typed: str, meant: str) -> None:
    assert unescaped_all("--stop", [typed]) == (meant,)


@pytest.mark.parametrize("typed", [r"\d", "\\", "a\\"])
def test_a_backslash_before_anything_else_is_refused(run_akunu: Any, typed: str) -> None:
    done = run_akunu("complete", "--prompt", "x", "--stop", typed)
    assert done.returncode == 2
    assert r"is not one of \n, \r, \t and \\" in done.stderr


@pytest.mark.parametrize("text", ["Once upon a time", "Once"])
def test_a_text_in_the_place_of_the_model_is_told_where_it_goes(run_akunu: Any, text: str) -> None:
    done = run_akunu("complete", text, stdin="more")
    assert done.returncode != 0
    assert f"akunu complete --prompt {shlex.quote(text)}" in done.stderr


@pytest.mark.parametrize("arguments", [(), ("--file", "-")], ids=["no option", "--file -"])
def test_nothing_on_standard_input_is_no_text(run_akunu: Any, arguments: tuple[str, ...]) -> None:
    done = run_akunu("complete", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "standard input is empty: there is no text to continue" in done.stderr


@pytest.mark.parametrize("command", [("tokenize", "-p", "Hello"), ("plan", "--no-speed")])
def test_the_model_may_be_named_by_an_option(run_akunu: Any, command: tuple[str, ...]) -> None:
    named = run_akunu(*command, "-m", "ember", "--json")
    assert named.returncode == 0
    usual = run_akunu(*command, "--json")
    assert named.stdout.splitlines()[:3] == usual.stdout.splitlines()[:3]  # free memory changes
    twice = run_akunu(*command[:1], "ember", "-m", "ember")
    assert twice.returncode == 2
    assert "the model is set twice: ember, and ember with -m" in twice.stderr


def test_several_texts_differ_and_are_those_that_their_numbers_give(run_akunu: Any) -> None:
    asked = (
        "complete",
        "--prompt",
        "One",
        "--max-tokens",
        "6",
        "--temperature",
        "2",
        "--seed",
        "4",
    )
    alone = [
        json.loads(run_akunu(*asked, "--json", "--answer-index", str(index)).stdout)
        for index in range(3)
    ]
    several = json.loads(run_akunu(*asked, "--json", "--n", "3").stdout)
    assert [each["token_ids"] for each in several] == [each["token_ids"] for each in alone]
    written = run_akunu(*asked, "--n", "3", "--no-loop-guard")
    assert written.stdout == "".join(each["text"].rstrip("\n") + "\n" for each in alone)
    assert "akunu: text 1 of 3\n" in written.stderr


@each_line(
    ("arguments", "message"),
    [
        (("--n", "0"), "--n is 0; it must be an integer from 1 to 1088"),
        (("--n", "2000"), "--n is 2000; it must be an integer from 1 to 1088"),
        (("--samplers", "top_k;mirostat"), "--samplers is ['top_k', 'mirostat']; it must be a"),
        (("--thinking", "on"), "No such option: --thinking; akunu chat has it"),
    ],
)
def test_what_complete_cannot_do_is_said(
    run_akunu: Any, arguments: tuple[str, ...], message: str
) -> None:
    done = run_akunu("complete", "--prompt", "One", *arguments)
    assert done.returncode == 2
    assert message in done.stderr


def test_samplers_may_stand_between_semicolons_as_for_llama_cpp(run_akunu: Any) -> None:
    asked = ("complete", "--prompt", "One", "--max-tokens", "6", "--seed", "4", "--top-k", "5")
    texts = [
        run_akunu(*asked, "--temperature", "2", "--samplers", names).stdout
        for names in ("top_k;top_p;temperature", "top_k,top_p,temperature")
    ]
    assert texts[0] == texts[1] != ""
