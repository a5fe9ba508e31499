"""The folder where akunu keeps files that are neither settings nor a cache."""

from __future__ import annotations

import os
from pathlib import Path


def state_path(name: str) -> Path | None:
    """Return where a file or folder of this name is: under XDG_STATE_HOME; None without a home."""
    given = os.environ.get("XDG_STATE_HOME", "")
    if os.path.isabs(given):  # the specification says to ignore others
        return Path(given) / "akunu" / name
    try:
        return Path.home() / ".local" / "state" / "akunu" / name
    except RuntimeError:
        return None
