"""What reaches a terminal cannot steer it."""

from __future__ import annotations

from akunu.cli.terminal.console import for_terminal


def test_control_characters_become_visible() -> None:
    assert for_terminal("a\x1b[2Jb\x07\r\x9bc") == "a\\x1b[2Jb\\x07\\x0d\\x9bc"


def test_text_stays_as_it_is() -> None:
    text = "tab\tline\n\N{FIRE} \N{LATIN SMALL LETTER U WITH DIAERESIS}"
    assert for_terminal(text) == text
