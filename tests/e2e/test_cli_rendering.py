"""Replies at a terminal, as they stand on its screen."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyte
import pytest
from cli_support import ember_with_template

import akunu
from akunu.cli.terminal.rows import cell_count

# A model whose next text is known: it is asked to go on, and the template shows it how.
STORY = "Tell me about the sea."


def screen_of(shown: str, columns: int = 80, rows: int = 60) -> pyte.Screen:
    screen = pyte.Screen(columns, rows)
    screen.set_mode(pyte.modes.LNM)
    pyte.Stream(screen).feed(shown)
    return screen


def lines_of(shown: str, columns: int = 80) -> list[str]:
    return [line.rstrip() for line in screen_of(shown, columns).display if line.strip()]


@pytest.fixture(scope="module")
def reply() -> str:
    with akunu.load() as model:
        return str(model.chat([{"role": "user", "content": STORY}], max_tokens=60))


def ask(terminal: Callable[..., Any], *more: str, **options: Any) -> Any:
    akunu = terminal("chat", "--prompt", STORY, "--max-tokens", "60", *more, **options)
    assert akunu.exit_code() == 0
    return akunu


@pytest.mark.parametrize("columns", [24, 40])
@pytest.mark.parametrize("term", ["dumb", "xterm-256color"])
def test_a_reply_is_broken_at_words(terminal: Any, reply: str, columns: int, term: str) -> None:
    shown = ask(terminal, columns=columns, TERM=term).shown
    lines = lines_of(shown, columns)
    words = reply.split()
    assert " ".join(lines).split()[: len(words)] == words
    if term == "dumb":
        assert "\x1b" not in shown
        assert max(map(len, shown.splitlines())) <= columns


def test_no_color_writes_no_escape_codes(terminal: Any) -> None:
    help_page = terminal("chat", "--help", TERM="xterm-256color", NO_COLOR="1")
    assert help_page.exit_code() == 0
    assert "\x1b" not in help_page.shown
    assert "\x1b" not in ask(terminal, TERM="xterm-256color", NO_COLOR="1").shown


def test_a_quiet_line_says_how_fast_and_how_full(terminal: Any) -> None:
    line = r"\d+ tokens?, [\d.]+ tok/s · context (\d+) of 128$"
    screen = screen_of(ask(terminal, "--context", "128", TERM="xterm").shown)
    below = next(row for row in reversed(screen.display) if row.strip())
    assert re.search(line, below.rstrip())
    more = ask(terminal, "--context", "128", "--verbose").shown
    why = "no text in the cache begins like it"
    prompt = rf"prompt \d+ tokens: 0 reused \({why}\), \d+ read in .* tok/s\n"
    assert re.search(prompt + r"reply \d+ token", more)


def test_a_pipe_gets_the_reply_alone(run_akunu: Any, reply: str) -> None:
    done = run_akunu("chat", "--prompt", STORY, "--max-tokens", "60")
    assert done.stdout == reply if reply.endswith("\n") else reply + "\n"
    assert "tok/s" not in done.stderr
    more = run_akunu("chat", "--prompt", STORY, "--max-tokens", "60", "--verbose")
    assert more.stdout == done.stdout
    assert "tok/s" in more.stderr


def test_errors_are_broken_at_words(terminal: Any) -> None:
    akunu = terminal("chat", "no such file of a model.gguf", "--prompt", "x", columns=40)
    assert akunu.exit_code() == 1
    words = " ".join(akunu.shown.split())
    assert words.startswith("akunu: error: ")
    assert max(map(len, akunu.shown.splitlines())) <= 40


@pytest.mark.parametrize("columns", [40, 80, 96])
def test_help_names_options_whole_at_any_width(terminal: Any, columns: int) -> None:
    akunu = terminal("chat", "--help-all", columns=columns, TERM="xterm")
    assert akunu.exit_code() == 0
    shown = re.sub(r"\x1b\[[0-9;]*m", "", akunu.shown)
    for option in ("--dry-sequence-breakers", "--no-penalize-prompt", "--show-thinking"):
        assert option in shown


def test_a_full_context_is_never_more_than_full(terminal: Any) -> None:
    hot = ("--temperature", "50", "--seed", "3", "--context", "64")
    akunu = terminal("chat", "--prompt", "The", *hot)
    assert akunu.exit_code() == 0
    assert "context 64 of 64" in " ".join(akunu.shown.split())


THINKS = "{{ messages[-1]['content'] }}<think>"


@pytest.fixture(scope="module")
def thinker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ember with a template that opens thoughts, which Ember never ends."""
    return ember_with_template(tmp_path_factory.mktemp("thinker"), THINKS)


def think(terminal: Any, thinker: Path, *more: str, **options: Any) -> list[str]:
    asked = ("chat", str(thinker), "--prompt", "What is 2 + 2?", "--max-tokens", "12")
    asked += ("--temperature", "50", "--seed", "3")  # words of all kinds, without an end
    akunu = terminal(*asked, *more, **options)
    assert akunu.exit_code() == 0
    return lines_of(akunu.shown)


def test_thoughts_are_folded_into_a_line(terminal: Any, thinker: Path) -> None:
    lines = think(terminal, thinker, TERM="xterm")
    assert re.fullmatch(r"thought for [\d.]+ s, \d+ tokens, and did not finish", lines[0])
    assert re.match(r"\d+ tokens, ", lines[1])


def test_thoughts_may_stay(terminal: Any, thinker: Path) -> None:
    lines = think(terminal, thinker, "--show-thinking", TERM="xterm")
    assert any(line.startswith("thought for ") for line in lines[1:])


def test_without_styles_thoughts_are_text_between_tags(terminal: Any, thinker: Path) -> None:
    lines = think(terminal, thinker)
    assert lines[0] == "<think>"
    assert not any(line.startswith("thought for ") for line in lines)


def test_rendering_can_be_switched_in_a_chat(terminal: Any) -> None:
    chat = terminal("chat")
    chat.wait_for("> ")
    chat.type("/set markdown off\n")
    assert "markdown is off" in chat.wait_for(r"\n> ")
    chat.type("/show markdown\n")
    assert re.search(r"markdown +off", chat.wait_for(r"\n> "))
    chat.type("/set verbose loud\n")
    assert "it must be on, off or default" in chat.wait_for(r"\n> ")


def test_a_resize_in_a_reply_counts_from_there_on(terminal: Any) -> None:
    hot = ("--temperature", "50", "--seed", "3", "--max-tokens", "600")
    chat = terminal("chat", "--prompt", "The", *hot, columns=90, AKUNU_CPU_ISA="generic")
    chat.wait_for(r"\n")  # the first row
    chat.resize(30)
    chat.wait_for(r"(.*\n){2}")  # what was on its way
    assert chat.exit_code() == 0
    rest = chat.shown[chat.shown.index("\n", len(chat.shown) * 3 // 4) + 1 :]
    rows = rest.splitlines()
    assert len(rows) > 5
    assert max(map(cell_count, rows)) <= 30
