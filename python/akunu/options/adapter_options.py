"""Checks of adapters: their paths when a model is loaded, their weights in a text."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from akunu.common.checks import number, refusal


def adapter_paths(name: str, value: Any) -> tuple[tuple[str, Path], ...]:
    """Return names with their paths, in order; ArgumentError for anything else."""
    try:
        pairs = _pairs(value or {})
        return tuple((each, Path(os.fsdecode(path)).expanduser()) for each, path in pairs)
    except (TypeError, ValueError, RuntimeError):
        raise refusal(name, value, "a dict of names and paths", "or None") from None


def adapter_weights(name: str, value: Any) -> tuple[tuple[str, float], ...]:
    """Return names with their weights, in order; ArgumentError for anything else."""
    try:
        pairs = _pairs({value: 1.0} if isinstance(value, str) else value)
        return tuple((each, number("weight", weight, -1e4, 1e4)) for each, weight in pairs)
    except (TypeError, ValueError):  # the ArgumentError, too
        allowed = "the name of an adapter, or a dict of names and numbers"
        raise refusal(name, value, allowed, "") from None


def _pairs(value: Any) -> list[tuple[str, Any]]:
    """Return a dict, or pairs as options keep them, by name; TypeError for anything else."""
    if not isinstance(value, (Mapping, tuple)):
        raise TypeError
    pairs = sorted(dict(value).items(), key=lambda pair: str(pair[0]))
    if not all(isinstance(each, str) and each and each.isprintable() for each, _ in pairs):
        raise TypeError
    return pairs
