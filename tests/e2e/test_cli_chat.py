"""`akunu chat` at a terminal: its commands, its history, texts over several lines, thoughts."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from cli_support import ask, ember_with_template

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}"
    "{% endfor %}{{ '<|im_start|>assistant\n' }}"
)
THINKING = CHATML + "{% if enable_thinking is not defined %}<think>\n{% endif %}"
# It refuses a system message also where that is the beginning of what the user says.
NO_SYSTEM = (
    "{% if 'Be brief.' in messages[0].content %}"
    "{{ raise_exception('only users speak') }}{% endif %}"
)
DIM = "\x1b[2m"


def test_help_lists_every_command(chat: Any) -> None:
    shown = ask(chat, "/help")
    for name in ("help", "system", "reset", "undo", "save", "load", "stats", "exit"):
        assert re.search(rf"(?m)^/{name}\b.*\w", shown)
    assert "Ctrl-C" in shown


def test_stats_tell_what_was_reused_and_what_was_prefilled(chat: Any) -> None:
    assert "no reply yet" in ask(chat, "/stats")
    ask(chat, "What is 12 + 7?")
    first = ask(chat, "/stats")
    prompt, reused, prefilled = counts(first)
    assert (reused, prefilled) == (0, prompt)
    ask(chat, "What is 2 + 2?")
    second = ask(chat, "/stats")
    then, reused, prefilled = counts(second)
    # The first prompt stays; the reply to it too, if there was time to read it.
    assert prompt <= reused < then
    assert reused + prefilled == then
    assert re.search(r"context +\d+ of 1024 tokens used", second)
    assert re.search(r"conversation +2 turns", second)


def counts(stats: str) -> tuple[int, int, int]:
    match = re.search(r"last prompt +(\d+) tokens: (\d+) reused, (\d+) prefilled", stats)
    assert match is not None, stats
    return int(match[1]), int(match[2]), int(match[3])


def test_undo_takes_a_turn_back(chat: Any) -> None:
    assert "nothing to remove" in ask(chat, "/undo")
    ask(chat, "What is 12 + 7?")
    ask(chat, "What is 2 + 2?")
    assert 'removed "What is 2 + 2?" and its reply; 1 turn left' in ask(chat, "/undo")
    assert re.search(r"conversation +1 turns?\b", ask(chat, "/stats"))


def test_reset_and_clear_start_anew(chat: Any) -> None:
    for command in ("/reset", "/clear"):
        ask(chat, "What is 12 + 7?")
        assert "a new conversation" in ask(chat, command)
        assert re.search(r"conversation +0 turns?\b", ask(chat, "/stats"))


def test_the_system_message_is_shown_set_and_removed(chat: Any) -> None:
    assert "no system message" in ask(chat, "/system")
    assert "is set" in ask(chat, "/system You are brief.")
    assert "You are brief." in ask(chat, "/system")
    ask(chat, "Hello!")
    ask(chat, "/stats")
    assert "is removed" in ask(chat, "/system -")
    assert "no system message" in ask(chat, "/system")


def test_a_slash_behind_a_space_is_a_question(chat: Any) -> None:
    assert "no command /etc" in ask(chat, "/etc is what?")
    for question in (" /etc is what?", "/etc/hosts is what?"):
        assert "no command" not in ask(chat, question)


def test_a_backslash_and_quotes_go_on_in_the_next_line(chat: Any, tmp_path: Path) -> None:
    chat.type("What is\\\n")
    chat.wait_for(r"\n\. ")
    chat.type("2 + 2?\n")
    chat.wait_for(r"\n> ")
    chat.type('"""\n')
    chat.wait_for(r"\n\. ")
    chat.type("/undo\n")
    chat.wait_for(r"\n\. ")
    chat.type('12 + 7"""\n')
    chat.wait_for(r"\n> ")
    ask(chat, '"""one line"""')
    ask(chat, f"/save {tmp_path}/talk.json")
    messages = json.loads((tmp_path / "talk.json").read_text())["messages"]
    questions = [message["content"] for message in messages[::2]]
    assert questions == ["What is\n2 + 2?", "/undo\n12 + 7", "one line"]


def test_ctrl_c_takes_an_unfinished_text_back(chat: Any, tmp_path: Path) -> None:
    chat.type('"""\n')
    chat.wait_for(r"\n\. ")
    chat.read_for(seconds=0.3)  # readline shows its prompt a moment before it listens
    chat.type("\x03")
    chat.wait_for(r"\n> ")
    chat.type("half a line")
    chat.wait_for("half a line")
    chat.read_for(seconds=0.3)  # a signal while readline shows a letter waits for the next one
    chat.type("\x03")
    chat.wait_for(r"\n> ")
    assert "nothing to remove" in ask(chat, "/undo")


def test_a_saved_conversation_goes_on_elsewhere(terminal: Any, tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    akunu = terminal("chat", "--system", "You are brief.")
    akunu.wait_for("> ")
    ask(akunu, "What is 12 + 7?")
    assert "saved 1 turn" in ask(akunu, f"/save {path}")
    saved = json.loads(path.read_text())
    assert [m["role"] for m in saved["messages"]] == ["system", "user", "assistant"]
    assert "19" in saved["messages"][2]["content"]
    assert path.stat().st_mode & 0o777 == 0o600
    akunu.type("/exit\n")
    assert akunu.exit_code() == 0

    other = terminal("chat")
    other.wait_for("> ")
    assert "loaded 1 turn and its system message" in ask(other, f"/load {path}")
    assert "no reply yet" in ask(other, "/stats")
    assert 'removed "What is 12 + 7?"' in ask(other, "/undo")
    assert "You are brief." in ask(other, "/system")


def test_a_file_is_replaced_only_when_asked(chat: Any, tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    path.write_text("mine")
    chat.type(f"/save {path}\n")
    chat.wait_for(r"exists; replace it\?\n\[y/n\] ")
    chat.type("n\n")
    assert "nothing was saved" in chat.wait_for(r"\n> ")
    assert path.read_text() == "mine"
    chat.type(f"/save {path}\n")
    chat.wait_for(r"\[y/n\] ")
    assert "saved 0 turns" in ask(chat, "y")
    assert json.loads(path.read_text())["messages"] == []
    assert os.listdir(tmp_path).count("talk.json") == 1
    assert [n for n in os.listdir(tmp_path) if n.startswith(".talk")] == []


def test_a_conversation_that_is_not_saved_is_not_forgotten_unasked(
    chat: Any, tmp_path: Path
) -> None:
    path = tmp_path / "talk.json"
    ask(chat, f"/save {path}")
    ask(chat, "What is 12 + 7?")
    chat.type(f"/load {path}\n")
    chat.wait_for(r"It is not saved\.\n\[y/n\] ")
    assert "nothing was loaded" in ask(chat, "n")
    assert re.search(r"conversation +1 turns?\b", ask(chat, "/stats"))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{", "is not JSON"),
        (b"\xff", "is not UTF-8"),
        (b"[]", "not a conversation saved by akunu"),
        (b'{"format": "akunu conversation", "version": 2}', "has version 2"),
        (b'{"format": "akunu conversation", "version": 1}', "no list of messages"),
        (b"[" * 100_000, "is not JSON"),
    ],
    ids=["half", "bytes", "list", "version", "no messages", "nested"],
)
def test_a_file_that_is_no_conversation_is_one_line(
    run_akunu: Any, tmp_path: Path, content: bytes, words: str
) -> None:
    (tmp_path / "talk.json").write_bytes(content)
    done = run_akunu("chat", "--load", "talk.json", "--prompt", "Hi")
    assert done.returncode != 0
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([{"role": "user", "content": "a"}], "ends with a question"),
        ([{"role": "assistant", "content": "a"}], r"messages[0].role is 'assistant'"),
        ([{"role": "user", "content": 1}], r"messages[0].content is not a string"),
        ([{"role": "user", "content": "a", "x": 1}], "the unknown key 'x'"),
        ([{"role": "user", "content": "\ud800"}], "half a surrogate pair"),
        (["a"], r"messages[0] is not an object"),
        ([{"role": "system", "content": "a"}] * 2, r"messages[1].role is 'system'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_messages_that_make_no_conversation_are_named(
    run_akunu: Any, tmp_path: Path, messages: list[Any], words: str
) -> None:
    content = {"format": "akunu conversation", "version": 1, "messages": messages}
    (tmp_path / "talk.json").write_text(json.dumps(content))
    done = run_akunu("chat", "--load", "talk.json", "--prompt", "Hi")
    assert done.returncode != 0
    assert words in done.stderr


def test_files_that_cannot_be_are_one_line(chat: Any, tmp_path: Path) -> None:
    (tmp_path / "no.json").write_text("[]")
    assert "not a conversation saved by akunu" in ask(chat, f"/load {tmp_path}/no.json")
    assert "No such file" in ask(chat, f"/load {tmp_path}/none.json")
    assert f"{tmp_path}/none/talk.json: No such file" in ask(
        chat, f"/save {tmp_path}/none/talk.json"
    )
    assert "is a directory" in ask(chat, f"/save {tmp_path}")
    assert "is not a file" in ask(chat, f"/load {tmp_path}")
    assert "the file name is missing" in ask(chat, "/save")
    assert "the file name is missing" in ask(chat, "/load")


def test_lines_are_kept_for_the_next_chat(terminal: Any, tmp_path: Path) -> None:
    first = terminal("chat")
    first.wait_for("> ")
    ask(first, "What is 12 + 7?")
    first.type("/exit\n")
    assert first.exit_code() == 0
    path = tmp_path / "state" / "akunu" / "chat-history"
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        "What is 12 + 7?",
        "/exit",
    ]
    assert path.stat().st_mode & 0o777 == 0o600
    second = terminal("chat")
    second.wait_for("> ")
    second.type("\x10\x10\n")  # Ctrl-P: the line before
    assert "19" in second.wait_for(r"\n> ")


def test_a_history_that_cannot_be_kept_is_said_once(terminal: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    akunu = terminal("chat", XDG_STATE_HOME=str(tmp_path / "file"))
    akunu.wait_for("> ")
    assert "19" in ask(akunu, "What is 12 + 7?")
    ask(akunu, "What is 2 + 2?")
    assert akunu.shown.count("is not kept for the next chat") == 1


def test_a_history_that_is_no_history_is_left_alone(terminal: Any, tmp_path: Path) -> None:
    path = tmp_path / "state" / "akunu" / "chat-history"
    path.mkdir(parents=True)
    akunu = terminal("chat")
    assert "is not kept for the next chat" in akunu.wait_for(r"\n> ")
    assert "19" in ask(akunu, "What is 12 + 7?")


def test_thoughts_are_dim_and_only_where_the_terminal_can(terminal: Any, tmp_path: Path) -> None:
    model = str(ember_with_template(tmp_path, THINKING))
    question = ["--prompt", "What is 12 + 7?", "--max-tokens", "8"]
    dim = terminal("chat", model, *question, TERM="xterm-256color")
    assert dim.exit_code() == 0
    assert DIM in dim.shown.splitlines()[0]
    for environment in ({"NO_COLOR": "1", "TERM": "xterm-256color"}, {"TERM": "dumb"}):
        plain = terminal("chat", model, *question, **environment)
        assert plain.exit_code() == 0
        assert plain.shown.splitlines()[0]
        assert "\x1b" not in plain.shown


def test_no_think_reaches_the_template(terminal: Any, tmp_path: Path) -> None:
    model = str(ember_with_template(tmp_path, THINKING))
    answer = terminal("chat", model, "--no-think", "--prompt", "What is 12 + 7?", TERM="xterm")
    assert answer.exit_code() == 0
    assert DIM not in answer.shown.splitlines()[0]
    assert "19" in answer.shown
    assert "no such switch" not in answer.shown


def test_a_pipe_gets_the_answer_and_thoughts_only_where_they_are_asked_for(
    run_akunu: Any, tmp_path: Path
) -> None:
    model = str(ember_with_template(tmp_path, THINKING))
    question = ("chat", model, "--prompt", "What is 12 + 7?", "--max-tokens", "8")
    thinks = run_akunu(*question)  # and never ends its thoughts
    assert (thinks.returncode, thinks.stdout) == (0, "\n")
    shown = run_akunu(*question, "--show-thinking")
    assert shown.stdout.startswith("<think>\n")
    off = run_akunu(*question, "--thinking", "off")
    assert "12 + 7" in off.stdout
    assert "<think>" not in off.stdout


def test_a_level_that_the_template_does_not_know_is_an_error(run_akunu: Any) -> None:
    done = run_akunu("chat", "--thinking", "low", "--prompt", "Hi")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--thinking is low; this model's chat template has no switch" in done.stderr
    done = run_akunu("chat", "--thinking", "on", "--no-think", "--prompt", "Hi")
    assert "--thinking on and --no-think contradict each other" in done.stderr


def test_thoughts_have_a_budget(run_akunu: Any, tmp_path: Path) -> None:
    model = str(ember_with_template(tmp_path, THINKING))
    question = ("chat", model, "--prompt", "What is 12 + 7?", "--show-thinking")
    endless = ("--max-tokens", "12", "--logit-bias", "0=-inf", "--logit-bias", "2=-inf")
    free = run_akunu(*question, *endless).stdout
    assert "</think>" not in free
    done = run_akunu(*question, *endless, "--thinking-budget", "1")
    thought, closed, answer = done.stdout.partition("\n</think>\n\n")
    assert closed
    assert answer.strip()
    assert free.startswith(thought)
    assert len(thought) < len(free)
    done = run_akunu("chat", "--prompt", "Hi", "--thinking-budget", "2")
    assert done.returncode == 2
    assert "--thinking-budget is set, but this model's" in done.stderr


def test_thinking_is_set_in_a_chat(terminal: Any, tmp_path: Path) -> None:
    chat = terminal("chat", str(ember_with_template(tmp_path, THINKING)))
    chat.wait_for("> ")
    chat.type("/set thinking off\n")
    assert "thinking is off" in chat.wait_for(r"\n> ")
    chat.type("/set thinking low\n")
    assert "thinking is low; this model's chat template knows on and off" in chat.wait_for(r"\n> ")
    chat.type("/show thinking\n")
    assert re.search(r"thinking +off", chat.wait_for(r"\n> "))
    chat.type("/set thinking_budget 20\n")
    assert "thinking_budget is set, but thinking is off" in chat.wait_for(r"\n> ")
    chat.type("/set thinking on\n")
    chat.wait_for(r"\n> ")
    chat.type("/set thinking_budget 20\n")
    assert "thinking_budget is 20" in chat.wait_for(r"\n> ")
    chat.type("/set thinking off\n")
    assert "thinking_budget is removed; it was 20" in chat.wait_for(r"\n> ")


def test_no_think_without_a_switch_is_said(terminal: Any) -> None:
    akunu = terminal("chat", "--no-think", "--prompt", "What is 12 + 7?")
    assert akunu.exit_code() == 0
    assert "--no-think: this model's chat template has no such switch" in akunu.shown
    assert "19" in akunu.shown


def test_a_system_message_that_is_refused_is_one_line(terminal: Any, tmp_path: Path) -> None:
    model = str(ember_with_template(tmp_path, NO_SYSTEM + CHATML))
    refused = terminal("chat", model, "--system", "Be brief.")
    assert refused.exit_code() == 1
    (line,) = refused.shown.splitlines()
    assert line.startswith("akunu: error: this model accepts no system message")
    assert "only users speak" in line
    akunu = terminal("chat", model)
    akunu.wait_for("> ")
    assert "accepts no system message" in ask(akunu, "/system Be brief.")
    assert "19" in ask(akunu, "What is 12 + 7?")


def test_an_interrupted_reply_stays_in_the_conversation(terminal: Any) -> None:
    akunu = terminal("chat", "--temperature", "50", "--seed", "3", AKUNU_CPU_ISA="generic")
    akunu.wait_for("> ")
    akunu.type("The\n")
    akunu.wait_for(r"The\n.")
    akunu.type("\x03")
    akunu.wait_for("akunu: stopped\n> ", timeout=10)
    shown = ask(akunu, "/stats")
    assert "ended by Ctrl-C" in shown
    assert re.search(r"conversation +1 turns?\b", shown)


def test_a_narrow_terminal_shows_all_the_same(terminal: Any) -> None:
    akunu = terminal("chat", "--prompt", "What is 12 + 7?", columns=9, TERM="xterm")
    assert akunu.exit_code() == 0
    assert "19" in akunu.shown
    for command in (["devices"], ["inspect"], ["--help"], ["bench", "--help"]):
        akunu = terminal(*command, columns=9, TERM="xterm")
        assert akunu.exit_code() == 0, akunu.shown
        assert "Traceback" not in akunu.shown
