"""`akunu devices`: what akunu can compute on here."""

from __future__ import annotations

import sys

from akunu import _core
from akunu.cli import console


def show_devices() -> int:
    """Write one table per device to stdout; return the exit code."""
    for device in _core.devices():
        _write_table(dict(_shown(key, value) for key, value in device.items()))
    return 0


def _shown(key: str, value: object) -> tuple[str, str]:
    """Return a fact's name and value as a person reads them."""
    if key.endswith("_bytes") and isinstance(value, int):
        return key.removesuffix("_bytes").replace("_", " "), f"{value / 2**30:.1f} GiB"
    return key.replace("_", " "), str(value)


def _write_table(facts: dict[str, str]) -> None:
    if console.is_terminal(sys.stdout):
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(show_header=False)
        for name, value in facts.items():
            table.add_row(Text(name, style="bold"), Text(value))
        Console().print(table)
        return
    width = max(map(len, facts), default=0)
    for name, value in facts.items():
        print(f"{name:<{width}}  {value}")
