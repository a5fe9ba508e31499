"""Files that a person wrote: UTF-8, perhaps with the byte order mark that some editors write."""

from __future__ import annotations

from pathlib import Path


def read_text(path: Path) -> str:
    """Return a file's text without its byte order mark; raises OSError and UnicodeDecodeError."""
    return path.read_bytes().decode("utf-8-sig")
