"""Checks of adapters: their paths when a model is loaded, their weights in a text."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from akunu._checks import number, refusal


def adapter_paths(name: str, value: Any) -> dict[str, Path]:
    """Return paths by names, in the order of the names; ArgumentError for what is none."""
    try:
        pairs = dict(value or {}).items()
        if not all(isinstance(each, str) and each and each.isprintable() for each, _ in pairs):
            raise TypeError
        return {each: Path(os.fsdecode(path)).expanduser() for each, path in sorted(pairs)}
    except (TypeError, ValueError, RuntimeError):
        raise refusal(name, value, "a dict of names and paths", "or None") from None


def adapter_weights(name: str, value: Any) -> tuple[tuple[str, float], ...]:
    """Return names with their weights, in order; ArgumentError for what is none."""
    given = {value: 1.0} if isinstance(value, str) else value
    try:
        pairs = dict(given).items()
        if not all(isinstance(each, str) and each for each, _ in pairs):
            raise TypeError
        return tuple(sorted((each, number("weight", by, -1e4, 1e4)) for each, by in pairs))
    except (TypeError, ValueError):  # the ArgumentError, too
        allowed = "the name of an adapter, or a dict of names and numbers"
        raise refusal(name, value, allowed, "") from None
