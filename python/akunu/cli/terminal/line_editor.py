"""Reading what a person types: the way of asking, whatever the terminal can do."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Protocol

from akunu.cli.conversation.entry import Entry
from akunu.cli.conversation.history import History
from akunu.cli.terminal import console

Complete = Callable[[str], list[tuple[str, str]]]
"""Takes a line; returns what its last word may become, each with a word of help."""


class LineEditor(Protocol):
    """Reads entries from the terminal that is standard input."""

    def read(self) -> Entry | None:
        """Return the next entry, None when there is no more (Ctrl-D).

        Ctrl-C takes back what was typed of this entry; with nothing typed it raises
        KeyboardInterrupt.
        """

    def edit(self, text: str) -> str | None:
        """Return what a person makes of `text`; None where they give up (Ctrl-C, Ctrl-D)."""

    def choose(self, question: str, answers: str) -> str:
        """Ask until one of these letters is typed and return it; "" for Ctrl-C and Ctrl-D."""


def has_screen() -> bool:
    """Whether a person types at a terminal that can move its cursor, and sees what they type."""
    return (
        console.is_terminal(sys.stdin)
        and (console.is_terminal(sys.stdout) or console.is_terminal(sys.stderr))
        and os.environ.get("TERM", "dumb").lower() not in ("", "dumb", "unknown")
    )


def open_editor(
    history: History, complete: Complete, typed: Callable[[], bytes] = bytes
) -> LineEditor:
    """Return the editor for this terminal.

    `complete`: what the Tab key does, where there is a screen; `typed`: see PromptEditor.
    """
    if has_screen():
        from akunu.cli.terminal.prompt_editor import PromptEditor

        return PromptEditor(history, complete, typed)
    from akunu.cli.terminal.plain_editor import PlainEditor

    return PlainEditor(history)
