"""Reading what a person types: what every editor of entries does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from akunu.cli.conversation.entry import Entry

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
