"""`akunu devices`: what akunu can compute on here."""

from __future__ import annotations

import sys

from akunu import _core
from akunu.cli import console


def show_devices() -> int:
    """Write one table per device to stdout; return the exit code."""
    for device in _core.devices():
        facts = {key.replace("_", " "): _shown(value) for key, value in device.items()}
        _write_table(facts)
    return 0


def _shown(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


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
