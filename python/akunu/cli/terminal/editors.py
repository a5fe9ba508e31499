"""Which editor reads what a person types: it depends on what the terminal can do."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from akunu.cli.conversation.history import History
from akunu.cli.terminal import console
from akunu.cli.terminal.line_editor import Complete, LineEditor
from akunu.cli.terminal.plain_editor import PlainEditor


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
        # prompt_toolkit takes longer to import than a question without a screen to answer.
        from akunu.cli.terminal.prompt_editor import PromptEditor

        return PromptEditor(history, complete, typed)
    return PlainEditor(history)
