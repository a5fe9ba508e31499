"""`akunu chat` samples as the model's file recommends, unless the command line says otherwise."""

from __future__ import annotations

import json
import math
from dataclasses import fields
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from cli_support import EMBER
from edited_model import edited

import akunu
from akunu import SamplingOptions
from akunu.cli import app

QUESTION = "Tell me something about the sea."


@pytest.fixture(scope="module")
def hot_ember(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ember, with the recommendation to surprise."""
    folder = tmp_path_factory.mktemp("hot")
    return edited(EMBER, folder / "hot.gguf", {"general.sampling.temp": 30.0})


def reply(temperature: float) -> str:
    with akunu.load() as model:
        question = [{"role": "user", "content": QUESTION}]
        return str(model.chat(question, temperature=temperature, seed=5, max_tokens=12))


def test_chat_does_what_the_file_says_and_says_so(run_akunu: Any, hot_ember: Path) -> None:
    asked = ("--prompt", QUESTION, "--seed", "5", "--max-tokens", "12")
    done = run_akunu("chat", str(hot_ember), *asked)
    assert done.stdout.rstrip("\n") == reply(temperature=30.0).rstrip("\n")
    assert "sampling settings from the model file: temperature 30\n" in done.stderr


def test_what_the_command_line_gives_wins_over_the_file(run_akunu: Any, hot_ember: Path) -> None:
    asked = ("--prompt", QUESTION, "--seed", "5", "--max-tokens", "12", "--temperature", "0")
    done = run_akunu("chat", str(hot_ember), *asked)
    assert done.stdout.rstrip("\n") == reply(temperature=0.0).rstrip("\n")
    assert "sampling as" not in done.stderr


@pytest.mark.parametrize("command", [app.chat, app.complete])
def test_chat_and_complete_have_every_sampling_option(command: Any) -> None:
    every = {field.name for field in fields(SamplingOptions)}
    if command is app.chat:  # they mean nothing in a conversation
        every -= {"logprobs", "prompt_logprobs", "echo", "answer_index"}
    assert every <= set(signature(command).parameters)
    assert command is app.complete or "echo" not in signature(command).parameters


def test_complete_writes_logprobs_as_json(run_akunu: Any, ember: Any) -> None:
    asked = ("complete", "--prompt", "The sea", "--max-tokens", "2", "--logprobs", "2")
    done = run_akunu(*asked)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--logprobs needs --json" in done.stderr
    written = json.loads(run_akunu(*asked, "--json", "--echo").stdout)
    text = ember.generate("The sea", max_tokens=2, logprobs=2)
    assert written["text"] == "The sea" + text
    assert [one["logprob"] for one in written["logprobs"]] == [o.logprob for o in text.logprobs]
    assert [one["top"][1]["token_id"] for one in written["logprobs"]] == [
        one.top[1].token_id for one in text.logprobs
    ]
    assert "prompt_logprobs" not in written


def test_chat_ends_a_reply_before_a_stop_text(run_akunu: Any) -> None:
    asked = ("--prompt", "What is 12 + 7?", "--penalty-window", "0", "--frequency-penalty", "1")
    done = run_akunu("chat", *asked, "--stop", " = ", "--stop", "never")
    assert (done.stdout, done.stderr) == ("12 + 7\n", "")


def test_complete_takes_biases_of_tokens(run_akunu: Any, ember: Any) -> None:
    usual = ember.generate("The sea", max_tokens=1)
    token = usual.token_ids[0]
    asked = ("complete", "--prompt", "The sea", "--max-tokens", "1")
    done = run_akunu(*asked, "--logit-bias", f"{token}=-inf", "--logit-bias", f"{token + 1}=2.5")
    biases = {token: -math.inf, token + 1: 2.5}
    assert done.stdout.rstrip("\n") == ember.generate(
        "The sea", max_tokens=1, logit_bias=biases
    ).rstrip("\n")
    for wrong in ("7", "7=x", "7=1=2", "-1=1", "5=1e999"):
        done = run_akunu(*asked, "--logit-bias", wrong)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"--logit-bias is '{wrong}'; it must be a token's id and a number" in done.stderr


def test_complete_stays_with_the_defaults(run_akunu: Any, hot_ember: Path, ember: Any) -> None:
    done = run_akunu("complete", str(hot_ember), "--prompt", "The sea", "--max-tokens", "8")
    assert done.stdout.rstrip("\n") == ember.generate("The sea", max_tokens=8).rstrip("\n")
