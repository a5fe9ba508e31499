"""A chat at a terminal with a screen, as a person sees it: typing, pasting, stopping."""

from __future__ import annotations

import json
import re
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from cli_support import COMMAND

PROMPT = r"\n>"
# What a reply took, and the prompt behind it.
DONE = r"\n\d+ tokens.*\n>"
# So hot that the next token is nearly any: such a text goes on until the context is full.
LONG = ["--temperature", "50", "--seed", "3"]


@pytest.fixture
def screen(terminal: Any) -> Any:
    """`screen("--system", "Be brief.", columns=40)`: a chat that has come to its first prompt."""

    def start(*arguments: str, **options: Any) -> Any:
        akunu = terminal("chat", *arguments, **{"TERM": "xterm-256color", **options})
        akunu.see(PROMPT)
        return akunu

    return start


def questions(akunu: Any, folder: Path) -> list[str]:
    """Save the conversation and return its questions."""
    path = folder / "talk.json"
    akunu.press(f"/save {path}")
    akunu.see(r"saved .*(\n.*)*" + PROMPT)
    messages = json.loads(path.read_text())["messages"]
    path.unlink()
    return [message["content"] for message in messages if message["role"] == "user"]


def test_a_paste_is_one_entry_and_nothing_in_it_is_a_command(screen: Any, tmp_path: Path) -> None:
    akunu = screen()
    akunu.paste("if a:\n\tb()\n/exit\n")
    akunu.see(r"\n> if a:\n\.     b\(\)\n\. /exit\n\.")
    akunu.press("# end")
    akunu.see(r"\. # end\n.+" + DONE)
    akunu.press("What is 12 + 7?")
    akunu.see(r"= 19" + DONE)
    assert questions(akunu, tmp_path) == ["if a:\n\tb()\n/exit\n# end", "What is 12 + 7?"]
    akunu.press("/exit")
    assert akunu.exit_code() == 0


def test_entries_of_several_lines_are_typed_and_brought_back(screen: Any, tmp_path: Path) -> None:
    akunu = screen()
    akunu.type("What is\x0a2 + 2?\x1b\r")  # Ctrl-J, and Alt-Enter
    akunu.see(r"\n> What is\n\. 2 \+ 2\?\n\.")
    akunu.press("")
    akunu.see(r"4" + DONE)
    akunu.press("What is\\")
    akunu.see(r"\n> What is\n\.")
    akunu.press("12 + 7?")
    akunu.see(r"= 19" + DONE)
    akunu.press('"""')
    akunu.see(r'\n> """\n\.')
    akunu.press("/undo")
    akunu.see(r"\n\. /undo\n\.")
    akunu.press('Spell cat."""')
    akunu.see(r'Spell cat\."""\n.+' + DONE)
    akunu.type("\x10" * 4)  # Ctrl-P: the entry before, from its last line up, and the one before
    akunu.see(r"\n> What is\n\. 12 \+ 7\?")
    akunu.type("\x03")
    akunu.see(PROMPT)
    akunu.type("\x122 + 2")  # Ctrl-R searches
    akunu.see(r"> What is\n\. 2 \+ 2\?\n\.\nI-search backward: 2 \+ 2")
    akunu.press("")
    akunu.see(r"> What is\n\. 2 \+ 2\?\n\.")
    akunu.press("")
    akunu.see(r"4" + DONE)
    asked = ["What is\n2 + 2?", "What is\n12 + 7?", "/undo\nSpell cat.", "What is\n2 + 2?"]
    assert questions(akunu, tmp_path) == asked


def test_what_is_typed_meanwhile_is_in_the_next_entry(terminal: Any) -> None:
    akunu = terminal("chat", *LONG, TERM="xterm", AKUNU_CPU_ISA="generic")
    akunu.press("/stats")  # while it starts
    akunu.see(r"> /stats\nno reply yet.*\n>")
    akunu.press("The")
    akunu.see(r"> The\n[^>]+")
    akunu.press("/undo")
    akunu.type("half a line")
    shown = akunu.shown
    akunu.type("\x03")  # drops nothing of it
    akunu.see(r"stopped\n> /undo\n.*removed.*\n.*\n?> half a line")
    assert "/undo" not in shown[shown.index("> The") :]
    akunu.type("\x03")
    akunu.see(PROMPT)
    akunu.type("\x04")
    assert akunu.exit_code() == 0


def test_ctrl_c_clears_what_is_typed_and_then_leaves(screen: Any) -> None:
    akunu = screen()
    akunu.paste("two\nlines")
    akunu.see(r"> two\n\. lines")
    akunu.type("\x03")
    akunu.see(PROMPT)
    akunu.press("/load")
    akunu.see(r"the file name is missing\n>")
    akunu.type("\x03")
    assert akunu.exit_code() == 130
    assert "Traceback" not in akunu.shown


def test_a_narrow_screen_wraps_and_a_resized_one_is_drawn_anew(screen: Any) -> None:
    akunu = screen(columns=40)
    assert all(len(line) <= 40 for line in akunu.lines())
    akunu.type("What is the capital of France, and what is it?")
    akunu.see(r"\n> What is the capital of France, and wha\n  t is it\?")
    akunu.resize(80)
    akunu.see(r"\n> What is the capital of France, and what is it\?")
    akunu.press("")
    akunu.see(r"Paris.*" + DONE)


def test_colours_are_off_where_nobody_wants_them(screen: Any) -> None:
    akunu = screen(NO_COLOR="1")
    akunu.type("/s\t")
    akunu.see(r"> /s\n +/s\w+ .*(\n.*)+")
    assert not re.search(r"\x1b\[[0-9;]*[34]\d?[0-9;]*m", akunu.shown)


def test_ctrl_z_lends_the_terminal_to_the_shell(terminal: Any) -> None:
    bash = shutil.which("bash")
    assert bash is not None, "bash lends its terminal to programs, and gets it back"
    shell = terminal(
        **{"command": [bash, "--norc", "-i"], "columns": 120, "TERM": "xterm", "PS1": "$ "},
        AKUNU_CPU_ISA="generic",
    )
    shell.see(r"\$")
    shell.press(" ".join([*COMMAND, "chat", *LONG]))
    shell.see(r"exit leaves\n>")
    shell.type("half a")
    shell.see("> half a")
    shell.type("\x1a")
    shell.see(r"Stopped[^$]*\n\$")
    shell.press("stty -a | grep -o ' echo '")
    shell.see(r" echo\n\$")
    shell.press("fg")
    shell.see("> half a")
    shell.press(" line")
    shell.see(r"> half a line\n[^>]+")
    shell.type("/stats\rhalf a line")  # for the chat, not for the shell
    shell.type("\x1a")
    shell.see(r"Stopped[^$]*\n\$")
    shell.press("stty -a | grep -o ' icanon '")
    shell.see(r" icanon\n\$")
    shell.press("fg")
    shell.see(r"\$ fg\n.*chat.*\n[^>]+")
    shell.type("\x03")
    stats = shell.see(r"stopped\n> /stats\n(.*\n)+> half a line")
    (reply,) = (line for line in stats if line.startswith("last reply"))
    assert re.fullmatch(r"last reply +\d+ tokens?, ended by Ctrl-C.*", reply)  # no speed
    shell.type("\x03")
    shell.see(PROMPT)
    shell.press("/exit")
    shell.see(r"> /exit\n\$")
    shell.press("stty -a | grep -o ' echo '")
    shell.see(r" echo\n\$")


def test_ctrl_c_while_a_model_loads_leaves_the_terminal_as_it_was(terminal: Any) -> None:
    akunu = terminal("chat", TERM="xterm")
    while akunu.shows_keys():  # until it is the chat's
        assert akunu.is_running()
        akunu.read_for(seconds=0.01)
    akunu.type("\x03")
    assert akunu.exit_code() == 130
    assert akunu.shows_keys()
    assert "Traceback" not in akunu.shown


def test_ctrl_c_while_a_prompt_is_read_and_in_a_question_stays(
    terminal: Any, tmp_path: Path
) -> None:
    path = tmp_path / "talk.json"
    path.write_text("mine")
    akunu = terminal("chat", "--threads", "1", TERM="xterm", AKUNU_CPU_ISA="generic")
    akunu.see(PROMPT)
    akunu.type(f"/save {path}\rWhat is 2 + 2?")  # typed ahead: no answer to what is asked
    akunu.see(r"replace it\?\n\[y/n\]")
    akunu.press("maybe")
    akunu.see(r"\[y/n\] maybe\n\[y/n\]")
    akunu.type("\x03")
    akunu.see(r"nothing was saved\n> What is 2 \+ 2\?")
    akunu.type("\x03")
    akunu.see(PROMPT)
    akunu.paste("What is 12 + 7? " * 110)
    akunu.press("")
    akunu.wait_for(r"read \d+ of \d+ tokens")
    akunu.type("\x03")
    akunu.see(r"stopped; the question is dropped\n>")
    akunu.send_signal(signal.SIGTERM)
    assert akunu.exit_code() == -signal.SIGTERM
    assert akunu.shows_keys()
    assert path.read_text() == "mine"
    assert "Traceback" not in akunu.shown


def test_the_last_question_is_edited_in_place_and_commands_are_completed(
    screen: Any, tmp_path: Path
) -> None:
    akunu = screen()
    akunu.press("Spell the word cat.")
    akunu.see(r"c-a-t" + DONE)
    akunu.press("/ed\t")
    akunu.see(r"> /edit\n> Spell the word cat\.")
    akunu.type("\x7f" * 4 + "dog.")
    akunu.see(r"\n> Spell the word dog\.")
    akunu.press("")
    akunu.see(r"d-o-g" + DONE)
    akunu.press("/set top_k 4\t")  # nothing to complete
    akunu.see(r"top_k is 4\n>")
    assert questions(akunu, tmp_path) == ["Spell the word dog."]


def test_help_fits_a_narrow_screen_and_stays_off_stdout(terminal: Any, tmp_path: Path) -> None:
    with open(tmp_path / "replies", "wb") as replies:
        akunu = terminal("chat", columns=40, TERM="xterm", stdout=replies.fileno())
    akunu.see(PROMPT)
    akunu.press("/help")
    shown = akunu.see(r"/exit\n    leave, as Ctrl-D does\n(.+\n)+>")
    assert "    continue a conversation from a file" in shown
    akunu.press("Spell cat.")
    akunu.see(r"> Spell cat\.\n>")
    akunu.press("/exit")
    assert akunu.exit_code() == 0
    assert (tmp_path / "replies").read_text() == "c-a-t\n"
