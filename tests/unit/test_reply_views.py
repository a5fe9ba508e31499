"""What stands on the screen beside an answer: thoughts, and hints while it comes."""

from __future__ import annotations

import io

import pytest
from screen_support import FULL, Screen

from akunu.cli.reply.output import ReplyOptions
from akunu.cli.reply.renderer import ReplyRenderer
from akunu.cli.reply.summary import reply_summary
from akunu.cli.reply.terminal_output import TerminalOutput
from akunu.cli.reply.thinking_view import FoldedThoughts
from akunu.cli.reply.thinking_view import VisibleThoughts as ShownThoughts
from akunu.cli.terminal.live_rows import LiveRows as Painter
from akunu.text.completion import Completion
from akunu.text.deltas import ReasoningDelta, TextDelta
from akunu.text.reply_splitter import ReplySplitter
from akunu.thinking.markers import markers_of


class TerminalOnScreen(io.StringIO):
    """Standard output of a program at a terminal."""

    def __init__(self, screen: Screen) -> None:
        super().__init__()
        self._screen = screen

    def isatty(self) -> bool:
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    def write(self, text: str) -> int:
        self._screen.put(text)
        return len(text)


@pytest.mark.parametrize(
    ("pieces", "lines"),
    [
        (
            ["<think>", "\nHm.\n", "</think>", "\n\n", "```", "py", "\n", "x = 1", "\n", "```"],
            ["thought for 2.0 s, 9 tokens", "", "py", "x = 1"],
        ),
        (["Hello", "\n", "there", ".\n"], ["Hello", "there."]),
        (["\n", "\n", "Hello", " there"], ["Hello there"]),
    ],
)
def test_no_line_end_is_lost_between_pieces(
    pieces: list[str], lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Screen(80)
    monkeypatch.setattr("sys.stdout", TerminalOnScreen(screen))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    output = TerminalOutput(ReplyOptions())
    splitter = ReplySplitter(markers_of(None))
    for part in [*map(splitter.push, pieces), splitter.finish()]:
        for delta in part:
            assert isinstance(delta, (TextDelta, ReasoningDelta))
            is_thought = isinstance(delta, ReasoningDelta)
            output.push(delta.text, is_thought=is_thought, tokens=9, seconds=2.0)
    output.finish()
    output.end_line()
    assert screen.lines == lines


THOUGHTS = [
    "",
    "Let me see.\nTwo and ",
    "two, said Euclid ",
    "once, are ",
    "four.",
    "",
]


def test_thoughts_are_a_few_lines_and_then_one() -> None:
    screen = Screen(20)
    thoughts = FoldedThoughts(Painter(screen.put, 20), lambda: screen.size)
    shown = []
    for number, text in enumerate(THOUGHTS):
        thoughts.push(text, number + 1, number / 2)
        shown.append(screen.lines)
    assert shown[0] == []
    assert shown[1] == ["thinking, 0.5 s", "  Let me see.", "  Two and"]
    assert shown[3] == ["thinking, 1.5 s", "  Two and two, said", "  Euclid once, are"]
    thoughts.finish()
    assert screen.lines == ["thought for 2.5 s, 6", "tokens"]


def test_thoughts_without_a_word_leave_no_line() -> None:
    screen = Screen(20)
    thoughts = FoldedThoughts(Painter(screen.put, 20), lambda: screen.size)
    thoughts.push("\n\n", 4, 0.1)
    thoughts.finish()
    assert screen.written == ""


def test_shown_thoughts_stay_above_the_line_about_them() -> None:
    screen = Screen(40)
    thoughts = ShownThoughts(Painter(screen.put, 40), lambda: screen.size)
    for text in THOUGHTS:
        thoughts.push(text, 6, 1.0)
    thoughts.finish()
    assert screen.lines == [
        "Let me see.",
        "Two and two, said Euclid once, are four.",
        "thought for 1.0 s, 6 tokens",
    ]


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        ("Some **bold ", "words** here", ["Some bold", "! note", "words here"]),
        ("", "words", ["! note", "words"]),
        ("- an item ", "of a list\n- b", ["• an item", "! note", "  of a list", "• b"]),
        ("```\nx = ", "1\n```", ["x =", "! note", "1"]),
        ("|a|b|\n|-|-|\n|c| ", "d|\n", ["a │ b", "──┼──", "|c|", "! note", "c │ d"]),
    ],
)
def test_a_hint_stands_between_rows_and_loses_nothing(
    before: str, after: str, lines: list[str]
) -> None:
    screen = Screen(40)
    renderer = ReplyRenderer(Painter(screen.put, 40), FULL, lambda: screen.size)
    renderer.push(before)
    renderer.insert("! note", "2")
    renderer.push(after)
    renderer.finish()
    assert screen.lines == lines


def completion(prompt: int, tokens: int) -> Completion:
    return Completion(
        "x",
        token_ids=range(tokens),
        finish_reason="length",
        prompt_tokens=prompt,
        completion_tokens=tokens,
    )


def test_a_context_is_never_more_than_full() -> None:
    # The last token takes no position: nothing is computed after it.
    assert reply_summary(completion(200, 57), 256) == "57 tokens · context 256 of 256"
    assert reply_summary(completion(200, 1), 256) == "1 token · context 201 of 256"
