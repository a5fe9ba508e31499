"""Values as messages show them."""

from __future__ import annotations


def shorten(value: object) -> str:
    """Return what a value looks like in at most 120 characters: its beginning and its end."""
    return shorten_text(repr(value))


def shorten_text(shown: str) -> str:
    """Return a text's beginning and end; a path is known by its end, many others by their start."""
    return shown if len(shown) <= 120 else f"{shown[:40]}...{shown[-77:]}"
