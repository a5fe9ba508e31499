"""Text broken into rows of a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wcwidth import wcswidth

from akunu.cli.terminal.rows import cell_count, end_of, ready_to_show, wrap, wrap_lines


def texts(line: str, width: int) -> list[str]:
    return [row.text for row in wrap(line, width)]


def test_rows_end_between_words() -> None:
    assert texts("the quick brown fox jumps", 11) == ["the quick", "brown fox", "jumps"]


def test_a_word_that_fills_the_row_fits() -> None:
    assert texts("one three", 3) == ["one", "thr", "ee"]
    assert texts("one two", 3) == ["one", "two"]


def test_wide_characters_take_two_cells_and_may_be_parted() -> None:
    assert texts("日本語の文", 6) == ["日本語", "の文"]


def test_punctuation_clings_to_the_wide_character_before_it() -> None:
    assert texts("日本語。", 6) == ["日本", "語。"]


def test_an_emoji_made_of_several_stays_whole() -> None:
    family = "\N{MAN}\N{ZERO WIDTH JOINER}\N{WOMAN}\N{ZERO WIDTH JOINER}\N{GIRL}"
    assert texts(f"abc {family}", 8) == ["abc", family]


def test_the_indent_of_a_line_stays_and_spaces_at_a_break_go() -> None:
    assert texts("  two  spaces   here  ", 13) == ["  two  spaces", "here"]


def test_what_does_not_fit_goes_on_behind_the_indent() -> None:
    assert wrap_lines("/help  lists the commands\n\nend", 16, indent="       ") == (
        "/help  lists the\n       commands\n\nend"
    )


@pytest.mark.parametrize("text", ["日本語", "abc", "e\N{COMBINING ACUTE ACCENT}", "\N{FIRE}!"])
def test_cells_are_those_that_terminals_count(text: str) -> None:
    assert cell_count(text) == wcswidth(text)


def test_the_cursor_is_where_a_terminal_that_breaks_lines_has_it() -> None:
    assert end_of("abcd", 4) == (0, 4)  # full, not broken yet
    assert end_of("abcde", 4) == (1, 1)
    assert end_of("abc日", 4) == (1, 2)
    assert end_of("a\tb", 20) == (0, 9)


def test_a_word_waits_for_its_end_unless_it_is_longer_than_a_row() -> None:
    assert ready_to_show("Once upon", 20) == len("Once ")
    assert ready_to_show("Once upon ", 20) == len("Once upon ")
    assert ready_to_show("x" * 30, 20) == 30
    assert ready_to_show("日本", 20) == 1
    assert ready_to_show("日本:", 20) == 1  # a colon stays on the row of the character before it


@given(st.text(st.sampled_from("ab \N{FIRE}日e\u0301,\t")), st.integers(2, 30))
def test_no_row_is_too_long_and_nothing_is_lost(text: str, width: int) -> None:
    rows = texts(text, width)
    assert all(cell_count(row) <= width for row in rows)
    assert "".join("".join(rows).split()) == "".join(text.split())
