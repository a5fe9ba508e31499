"""A chat at a terminal with a screen, as a person sees it: typing, pasting, stopping."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

PROMPT = r"\n>"


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
    akunu.see(r"\. # end\n(.+\n)+>")
    akunu.press("What is 12 + 7?")
    akunu.see(r"= 19\n>")
    assert questions(akunu, tmp_path) == ["if a:\n\tb()\n/exit\n# end", "What is 12 + 7?"]
    akunu.press("/exit")
    assert akunu.exit_code() == 0
