"""The command line at a terminal: a conversation, typed."""

from __future__ import annotations

import os
import re
from typing import Any

import pytest

# So hot that the next token is nearly any: such a text goes on until the context is full.
LONG = ["--temperature", "50", "--seed", "3"]


def test_a_conversation_has_a_banner_replies_and_an_end(terminal: Any) -> None:
    akunu = terminal("chat")
    banner = akunu.wait_for(r"(?m)^.*\n> ")
    assert "Ember, a small demonstration model" in banner
    assert "/exit" in banner
    assert len(banner.splitlines()) == 2
    akunu.type("What is 12 + 7?\n")
    reply = akunu.wait_for(r"\n> ")
    assert "19" in reply
    akunu.type("/exit\n")
    assert akunu.exit_code() == 0


QUESTION = "What is 12 + 7?\n"


def fill_the_context(akunu: Any) -> str:
    """Ask until there is no room for the question; return what was said about it."""
    akunu.wait_for("> ")
    for _ in range(20):
        akunu.type(QUESTION)
        shown = akunu.wait_for(r"\n(> |\[d/n/s\] )")
        if "context is full" in shown:
            return str(shown)
    pytest.fail("twenty turns do not fill 96 positions: the history is lost")


def test_a_full_context_is_said_and_the_oldest_turns_may_go(terminal: Any) -> None:
    akunu = terminal("chat", "--context", "96")
    shown = fill_the_context(akunu)
    assert re.search(r"\d turns and this question take \d+ tokens, of 96", shown)
    akunu.type("x\n")  # no such choice: it asks again
    akunu.wait_for(r"\n\[d/n/s\] ")
    akunu.type("d\n")
    shown = akunu.wait_for(r"\n> ")
    assert re.search(r"dropped the oldest \d of \d turns\n.*19", shown)


def test_a_full_context_may_be_left_for_a_new_conversation(terminal: Any) -> None:
    akunu = terminal("chat", "--context", "96")
    fill_the_context(akunu)
    akunu.type("n\n")
    assert "19" in akunu.wait_for(r"a new conversation\n(.*\n)+> ")
    akunu.type("/stats\n")
    assert re.search(r"conversation +1 turns?\b", akunu.wait_for(r"\n> "))


def test_a_full_context_may_stay_as_it_is(terminal: Any) -> None:
    akunu = terminal("chat", "--context", "96")
    shown = fill_the_context(akunu)
    turns = re.search(r"(\d) turns and", shown)
    assert turns is not None
    for key in ("s\n", "\x04"):
        akunu.type(key)
        assert "the question is dropped" in akunu.wait_for(r"\n> ")
        akunu.type("/stats\n")
        assert re.search(rf"conversation +{turns[1]} turns", akunu.wait_for(r"\n> "))
        akunu.type(QUESTION)
        akunu.wait_for(r"\n\[d/n/s\] ")


def test_a_question_beyond_the_context_is_said_without_a_choice(terminal: Any) -> None:
    akunu = terminal("chat", "--context", "32")
    akunu.wait_for("> ")
    akunu.type("word " * 40 + "\n")
    shown = akunu.wait_for(r"\n> ")
    assert re.search(r"this question takes \d+ tokens, the context has 32", shown)
    assert "--context" in shown
    akunu.type("Hi\n")
    akunu.wait_for(r"\n> ")
    akunu.type("word " * 40 + "\n")
    assert "the conversation stays as it is" in akunu.wait_for(r"\n(> |\[d/n/s\] )")
    akunu.type("/stats\n")
    assert re.search(r"conversation +1 turn\b", akunu.wait_for(r"\n> "))


def test_ctrl_d_leaves_with_0(terminal: Any) -> None:
    akunu = terminal("chat")
    akunu.wait_for("> ")
    akunu.type("\x04")
    assert akunu.exit_code() == 0


def test_ctrl_c_at_the_prompt_leaves_with_130(terminal: Any) -> None:
    akunu = terminal("chat")
    akunu.wait_for("> ")
    # Readline shows its prompt just before it listens, and loses an interrupt in between; a person
    # who presses Ctrl-C within that moment presses it again.
    for _ in range(10):
        if akunu.is_running():
            akunu.type("\x03")
            akunu.read_for(seconds=2)
    assert akunu.exit_code() == 130
    assert "Traceback" not in akunu.shown


def test_ctrl_c_stops_a_reply_and_stays(terminal: Any) -> None:
    akunu = terminal("chat", *LONG, AKUNU_CPU_ISA="generic")
    akunu.wait_for("> ")
    akunu.type("The\n")
    akunu.wait_for(r"The\n.")  # the echo, and the first of the reply
    akunu.type("\x03")
    akunu.wait_for("akunu: stopped\n> ", timeout=10)
    akunu.type("/exit\n")
    assert akunu.exit_code() == 0
    assert "Traceback" not in akunu.shown


def test_empty_lines_and_unknown_commands_reach_no_model(terminal: Any) -> None:
    akunu = terminal("chat")
    akunu.wait_for("> ")
    akunu.type("\n")
    akunu.wait_for("> ")
    akunu.type("/fly\n")
    assert "no command /fly" in akunu.wait_for(r"\n> ")


def test_with_stdout_elsewhere_only_replies_go_there(terminal: Any) -> None:
    read_end, write_end = os.pipe()
    akunu = terminal("chat", stdout=write_end)
    os.close(write_end)
    akunu.wait_for("> ")
    akunu.type("What is 12 + 7?\n")
    with os.fdopen(read_end) as replies:
        akunu.wait_for("> ")
        akunu.type("/exit\n")
        assert akunu.exit_code() == 0
        text = replies.read()
    assert "19" in text
    assert ">" not in text
    assert "19" not in akunu.shown


def test_colours_come_at_a_terminal_and_no_color_is_respected(terminal: Any) -> None:
    coloured = terminal("chat", "none.gguf", "--prompt", "x", TERM="xterm-256color")
    assert coloured.exit_code() == 1
    assert "\x1b[" in coloured.shown
    plain = terminal("chat", "none.gguf", "--prompt", "x", TERM="xterm-256color", NO_COLOR="1")
    assert plain.exit_code() == 1
    assert "akunu: error: " in plain.shown
    assert "\x1b[3" not in plain.shown  # the codes of colours


def test_a_terminal_as_stdin_does_not_make_one_answer_wait(terminal: Any) -> None:
    akunu = terminal("chat", "--prompt", "What is 12 + 7?")
    assert akunu.exit_code() == 0
    assert "19" in akunu.shown
    assert "> " not in akunu.shown
