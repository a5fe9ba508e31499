"""What a person types behind a slash: options, models, replies again, conversations kept."""

from __future__ import annotations

import base64
import dataclasses
import json
import os
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from cli_support import EMBER, ask, ember_with_template

import akunu

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}"
    "{% endfor %}{{ '<|im_start|>assistant\n' }}"
)
# It refuses a system message also where that is the beginning of what the user says.
NO_SYSTEM = (
    "{% if 'Be brief.' in messages[0].content %}"
    "{{ raise_exception('only users speak') }}{% endif %}"
)


def kept(folder: Path) -> list[str]:
    """The contents of the messages that the last conversation has."""
    path = folder / "state" / "akunu" / "last-conversation.json"
    assert path.stat().st_mode & 0o777 == 0o600
    return [message["content"] for message in json.loads(path.read_text())["messages"]]


def test_every_sampling_option_is_shown_and_set(chat: Any) -> None:
    values = {
        "max_tokens": "5",
        "temperature": "0.5",
        "top_k": "3",
        "top_p": "0.9",
        "min_p": "0.1",
        "typical_p": "0.9",
        "top_n_sigma": "1.5",
        "xtc_probability": "0.2",
        "xtc_threshold": "0.15",
        "repetition_penalty": "1.1",
        "frequency_penalty": "0.1",
        "presence_penalty": "0.2",
        "penalty_window": "32",
        "penalize_prompt": "off",
        "dry_multiplier": "0.8",
        "dry_base": "2",
        "dry_allowed_length": "3",
        "dry_penalty_last_n": "100",
        "dry_sequence_breakers": '["a", "b"]',
        "samplers": "top_k,temperature,penalties,dry,top_n_sigma,typical_p,top_p,min_p,xtc",
        "min_tokens": "2",
        "seed": "7",
        "stop": "END",
        "stop_token_ids": "17 4000",
        "ignore_eos": "on",
        "logit_bias": "17=-2.5 4=-inf",
        "adapters": "poet=0.5 terse=1",
        "context_overflow": "error",
        "speculation": "4",
    }
    only_complete = {"logprobs", "prompt_logprobs", "echo", "answer_index"}
    every = {field.name for field in dataclasses.fields(akunu.SamplingOptions)}
    assert set(values) <= every - only_complete
    shown = ask(chat, "/show")
    assert all(re.search(rf"(?m)^{name} ", shown) for name in every - only_complete)
    for name, value in values.items():
        assert re.search(rf"(?m)^{name} +\S.*  \((default|from the model file)\)$", shown)
        assert f"{name} is {json.dumps(value) if name == 'stop' else value}" in ask(
            chat, f"/set {name} {value}"
        )
    shown = ask(chat, "/show")
    for name, value in values.items():
        assert re.search(rf'(?m)^{name} +"?{re.escape(value)}"?$', shown)
    assert "Ember" in shown
    assert "top_k is 0" in ask(chat, "/set top_k default")
    assert "max_tokens is none" in ask(chat, "/set num_predict none")


def test_escapes_in_what_is_set_are_read_as_on_the_command_line(chat: Any) -> None:
    assert r'stop is "\n" (\n is a newline)' in ask(chat, r"/set stop \n")
    assert re.search(r'(?m)^stop +"\\n"$', ask(chat, "/show stop"))
    shown = ask(chat, r"/set dry_sequence_breakers a\t\\n\t")
    assert r'dry_sequence_breakers is "a\t\\n\t" (\t is a tab, \\ is a backslash)' in shown
    assert r'dry_sequence_breakers is ["\n", ":"]' in ask(
        chat, r'/set dry_sequence_breakers ["\n", ":"]'
    )
    assert r"stop is '\d': \d is not one of \n, \r, \t and \\" in ask(chat, r"/set stop \d")
    assert "samplers is top_k,top_p,temperature" in ask(
        chat, "/set samplers top_k;top_p;temperature"
    )


def test_what_is_set_reaches_the_model_and_nonsense_does_not(chat: Any, ember: Any) -> None:
    assert "max_tokens is 3" in ask(chat, "/set max_tokens 3")
    shown = ask(chat, "Spell the word apple.")
    assert "cut after 3 tokens" in shown
    assert "top_p is 2; it must be a number from 0 (excluded) to 1" in ask(chat, "/set top_p 2")
    assert "top_k is 'many'; it must be an integer" in ask(chat, "/set top_k many")
    assert "logit_bias is '5=nan'; it must be" in ask(chat, "/set logit_bias 5=nan")
    assert "token 999999 of logit_bias is out" in ask(chat, "/set logit_bias 17=1 999999=1")
    shown = ask(chat, "/set temprature 1")
    assert "there is no option temprature (did you mean temperature?)" in shown
    assert "max_tokens" in shown
    assert "when akunu starts: akunu chat --context" in ask(chat, "/set num_ctx 4096")
    assert re.search(r"(?m)^temperature +0 ", ask(chat, "/show temperature"))
    assert re.search(r"(?m)^model +Ember", ask(chat, "/show model"))
    assert re.search(r"(?m)^system message +none", ask(chat, "/show system"))


def test_replies_may_have_a_form(chat: Any, tmp_path: Path) -> None:
    assert 'choice is ["red", "green"]' in ask(chat, '/set choice ["red", "green"]')
    ask(chat, "What is 12 + 7?")
    assert kept(tmp_path)[1] in ("red", "green")
    assert "regex is none" in ask(chat, "/set regex none")
    assert re.search(r'(?m)^choice +\["red", "green"\]$', ask(chat, "/show"))
    assert "cannot be read" in ask(chat, "/set schema nowhere.json")
    assert "regex is [0-9]{30}" in ask(chat, "/set regex [0-9]{30}")
    assert re.search(r"(?m)^choice +none$", ask(chat, "/set choice"))
    ask(chat, "/set max_tokens 4")
    assert "/continue" not in ask(chat, "What is 2 + 2?")
    assert "a constrained reply (regex) cannot be continued" in ask(chat, "/continue")
    assert "regex is none" in ask(chat, "/set regex none")
    ask(chat, "/set max_tokens none")
    ask(chat, "What is 12 + 7?")
    assert kept(tmp_path)[-1] == "12 + 7 = 19"


def test_a_cut_reply_goes_on(chat: Any, tmp_path: Path, ember: Any) -> None:
    question = "Spell the word elephant."
    whole = ember.chat([{"role": "user", "content": question}])
    assert "no reply to continue" in ask(chat, "/continue")
    ask(chat, "/set max_tokens 4")
    assert "/continue writes the rest" in ask(chat, question)
    ask(chat, "/set max_tokens none")
    ask(chat, "/continue")
    assert kept(tmp_path) == [question, whole]
    assert "the last reply is complete" in ask(chat, "/continue")


def test_the_last_question_is_answered_anew_or_changed(chat: Any, tmp_path: Path) -> None:
    for command in ("/retry", "/edit", "/copy"):
        assert "there is no" in ask(chat, command)
    ask(chat, "What is 12 + 7?")
    shown = ask(chat, "/retry")
    assert "temperature 0 gives the same reply" in shown
    assert "19" in shown
    chat.type("/edit\n")
    chat.wait_for(r"type it again.*\n> ")
    assert "4" in ask(chat, "What is 2 + 2?")
    chat.type("/edit\n")
    chat.wait_for(r"type it again.*\n> ")
    assert "is unchanged" in ask(chat, "")
    assert len(kept(tmp_path)) == 2
    assert kept(tmp_path)[0] == "What is 2 + 2?"


def test_undo_takes_as_many_turns_as_it_is_told(chat: Any) -> None:
    for question in ("What is 1 + 1?", "What is 2 + 2?", "What is 3 + 3?"):
        ask(chat, question)
    assert "the conversation has only 3 turns; nothing was removed" in ask(chat, "/undo 4")
    assert "N is 'all'; it must be a number" in ask(chat, "/undo all")
    shown = ask(chat, "/undo 2")
    assert 'removed 2 turns, from "What is 2 + 2?" on; 1 turn left' in shown


def test_names_that_other_programs_have_and_typos(chat: Any) -> None:
    assert "/undo" in ask(chat, "/?")
    shown = ask(chat, "/help system")
    assert re.search(r"(?m)^/system \[TEXT \| -\]  .*\(also /sys\)$", shown)
    assert "/undo" not in shown
    assert "temperature" in ask(chat, "/help set")
    assert "did you mean /undo? /help lists them" in ask(chat, "/udno")
    assert "/reset takes no argument, got 'now'" in ask(chat, "/reset now")
    chat.type('/sys """You are brief.\n')
    chat.wait_for(r"\n\. ")
    assert "is set" in ask(chat, 'You are kind."""')
    assert "system message: You are brief.\nYou are kind.\n" in ask(chat, "/system")
    chat.type("/bye\n")
    assert chat.exit_code() == 0


def test_a_narrow_terminal_shows_long_values_below_their_names(terminal: Any) -> None:
    akunu = terminal("chat", columns=40)
    akunu.wait_for("> ")
    shown = ask(akunu, "/show")
    assert re.search(r"(?m)^file\n */", shown)
    assert re.search(r"(?m)^max_tokens +none  \(default\)$", shown)


def test_another_model_goes_on_with_the_conversation(chat: Any, tmp_path: Path) -> None:
    other = ember_with_template(tmp_path, NO_SYSTEM + CHATML)
    ask(chat, "What is 12 + 7?")
    assert "nowhere.gguf" in ask(chat, "/model nowhere.gguf")
    assert "19" in ask(chat, "What is 12 + 7?")
    assert "the conversation continues with 2 turns" in ask(chat, f"/model {other}")
    assert str(other) in ask(chat, "/model")
    assert "4" in ask(chat, "What is 2 + 2?")
    ask(chat, "/model ember")
    ask(chat, "/system Be brief.")
    shown = ask(chat, f"/model {other}")
    assert "only users speak" in shown
    assert "stays" in shown
    assert "system message: Be brief." in ask(chat, "/system")
    assert "19" in ask(chat, "What is 12 + 7?")
    assert len(kept(tmp_path)) == 1 + 2 * 4


def test_the_last_conversation_goes_on(terminal: Any, run_akunu: Any, tmp_path: Path) -> None:
    state = {"XDG_STATE_HOME": str(tmp_path / "state")}
    done = run_akunu("chat", "--continue", "-p", "x", **state)
    assert done.returncode == 2
    assert "there is no last conversation" in done.stderr
    akunu = terminal("chat", str(EMBER), "--system", "You are brief.")
    akunu.wait_for("> ")
    ask(akunu, "What is 12 + 7?")
    akunu.type("/exit\n")
    assert akunu.exit_code() == 0
    assert kept(tmp_path)[:2] == ["You are brief.", "What is 12 + 7?"]

    again = terminal("chat", "-c")
    assert 'continuing after 1 turn, the last: "What is 12 + 7?"' in again.wait_for("\n> ")
    assert "You are brief." in ask(again, "/system")
    assert "removed" in ask(again, "/undo")
    again.type("/exit\n")
    assert again.exit_code() == 0

    done = run_akunu("chat", "-c", "-p", "x", **state)
    assert "there is no last conversation" in done.stderr  # it was taken back

    chat = terminal("chat", TERM="xterm")
    chat.see(r"\n>")
    chat.press("What is 12 + 7?")
    chat.see(r"19\n.*\n>")
    done = run_akunu("chat", "-c", "-p", "What is 2 + 2?", **state)
    assert done.stdout == "2 + 2 = 4\n"
    assert done.stderr == 'akunu: continuing after 1 turn, the last: "What is 12 + 7?"\n'
    assert kept(tmp_path)[2:] == ["What is 2 + 2?", "2 + 2 = 4"]
    chat.press("Spell cat.")
    other = tmp_path / "state" / "akunu" / "last-conversation-2.json"
    chat.wait_for("another akunu kept its conversation in the meantime")
    chat.see(r"\n>")
    chat.type("\x03")
    assert chat.exit_code() == 130
    assert f"akunu chat --load {other} continues" in " ".join(chat.shown.split())
    assert kept(tmp_path)[2:] == ["What is 2 + 2?", "2 + 2 = 4"]
    asked = [m["content"] for m in json.loads(other.read_text())["messages"][::2]]
    assert asked == ["What is 12 + 7?", "Spell cat."]
    other.unlink()
    path = tmp_path / "mine.json"
    os.rename(tmp_path / "state" / "akunu" / "last-conversation.json", path)
    loaded = terminal("chat", "--load", str(path), "--no-keep")
    loaded.wait_for("continuing after 2 turns(.|\n)*> ")
    ask(loaded, "What is 3 + 3?")
    loaded.type("/exit\n")
    assert loaded.exit_code() == 0
    assert os.listdir(tmp_path / "state" / "akunu") == ["chat-history"]
    history = (tmp_path / "state" / "akunu" / "chat-history").read_text()
    assert "What is 12 + 7?" in history
    assert "3 + 3" not in history


def test_a_reply_is_copied_by_a_program_or_by_the_terminal(terminal: Any, tmp_path: Path) -> None:
    program = tmp_path / "xclip"
    copied = tmp_path / "copied"
    program.write_text(f"#!/bin/sh\nexec cat >{shlex.quote(str(copied))}\n")
    program.chmod(0o755)
    akunu = terminal("chat", DISPLAY=":0", PATH=f"{tmp_path}:{os.environ['PATH']}")
    akunu.wait_for("> ")
    ask(akunu, "Spell cat.")
    assert "copied 5 characters with xclip" in ask(akunu, "/copy")
    assert copied.read_text() == "c-a-t"

    akunu = terminal("chat", TERM="xterm", DISPLAY="", WAYLAND_DISPLAY="")
    akunu.see(r"\n>")
    akunu.press("Spell cat.")
    akunu.see(r"c-a-t\n.*\n>")
    akunu.press("/copy")
    akunu.see(r"through the terminal \(OSC 52\).*\n(.*\n)?>")
    assert f"\x1b]52;c;{base64.b64encode(b'c-a-t').decode()}\x07" in akunu.shown


def test_a_conversation_that_does_not_fit_the_disk_leaves_the_file(tmp_path: Path) -> None:
    from akunu.cli.conversation.saved_conversation import save_conversation
    from akunu.text.conversation import Conversation

    path = tmp_path / "talk.json"
    path.write_text("mine")
    with akunu.load() as model:
        talk = Conversation(model.tokenizer)
        talk.add("x" * 20_000, "y")
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(OSError, match=re.escape(str(path))):
            save_conversation(path, talk, "Ember", "ember")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_text() == "mine"
    assert os.listdir(tmp_path) == ["talk.json"]
