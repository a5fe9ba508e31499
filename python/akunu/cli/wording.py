"""Pieces of sentences that several messages have."""

from __future__ import annotations


def counted(count: int, thing: str) -> str:
    """Return a number and the word for what it counts.

    >>> counted(1, "turn"), counted(2, "turn"), counted(0, "turn")
    ('1 turn', '2 turns', '0 turns')
    """
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def shortened(text: str, most: int = 60) -> str:
    """Return a text in one line of at most so many characters.

    >>> shortened("What is\\n12 + 7?"), shortened("What is it?", most=7)
    ('What is 12 + 7?', 'What...')
    """
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 3] + "..."


def reason(error: Exception) -> str:
    """Return what is wrong, and with which file where the system says it."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
