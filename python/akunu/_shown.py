"""Values as messages show them."""

from __future__ import annotations


def shorten(value: object) -> str:
    """Return what a value looks like in at most 120 characters: its beginning and its end."""
    shown = repr(value)  # a path is known by its end, a text taken for one by its beginning
    return shown if len(shown) <= 120 else f"{shown[:40]}...{shown[-77:]}"
