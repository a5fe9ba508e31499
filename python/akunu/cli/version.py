"""`akunu --version`: answered before anything else is imported."""

from __future__ import annotations


def show_version() -> int:
    """Write name and version to stdout; return the exit code."""
    from akunu import __version__

    print(f"akunu {__version__}")
    return 0
