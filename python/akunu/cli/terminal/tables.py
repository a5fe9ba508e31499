"""Tables on stdout: drawn where a person looks, aligned columns anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from akunu.cli.terminal import console


def write_facts(title: str, facts: Sequence[tuple[str, str]]) -> None:
    """Write names and values, one pair a line; an empty title is left out."""
    if console.is_terminal(sys.stdout):
        from rich.text import Text

        table = _new_table(title)
        for name, value in facts:
            table.add_row(Text(_line(name), style="bold"), Text(_line(value), overflow="fold"))
        _print(table)
        return
    if title:
        print(f"{title}:")
    width = max((len(_line(name)) for name, _ in facts), default=0)
    indent = "  " if title else ""
    for name, value in facts:
        print(f"{indent}{_line(name):<{width}}  {_line(value)}".rstrip())
    if title:
        print()


def write_rows(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Write rows under a header; columns whose every value begins with a digit stand right.

    Where there is no value, the cell is empty.
    """
    values = [[row[column] for row in rows if row[column]] for column in range(len(header))]
    right = [bool(column) and all(cell[:1].isdigit() for cell in column) for column in values]
    if console.is_terminal(sys.stdout):
        from rich.text import Text

        table = _new_table(title)
        table.show_header = True
        for name, is_right in zip(header, right, strict=True):
            table.add_column(name, justify="right" if is_right else "left", overflow="fold")
        for row in rows:
            table.add_row(*[Text(_line(value)) for value in row])
        _print(table)
        return
    if title:
        print(f"{title}:")
    lines = [[_line(value) for value in row] for row in (header, *rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    indent = "  " if title else ""
    for line in lines:
        cells = [
            f"{cell:>{width}}" if is_right else f"{cell:<{width}}"
            for cell, width, is_right in zip(line, widths, right, strict=True)
        ]
        print(f"{indent}{'  '.join(cells)}".rstrip())
    if title:
        print()


def bytes_text(size: int) -> str:
    """Return a number of bytes as a person reads it.

    >>> bytes_text(1536), bytes_text(10 * 2**30)
    ('1.5 KiB', '10.0 GiB')
    """
    if size < 1024:
        return f"{size} B"
    value = float(size)
    for unit in ("KiB", "MiB", "GiB"):
        value /= 1024
        if value < 1024:
            return f"{value:.1f} {unit}"
    return f"{value / 1024:.1f} TiB"


def _line(text: str) -> str:
    """Return text that cannot break a line or steer a terminal."""
    return console.for_terminal(text.replace("\n", "\\n").replace("\t", "\\t"))


def _new_table(title: str):  # type: ignore[no-untyped-def]  # rich is imported by the caller only
    from rich.table import Table
    from rich.text import Text

    return Table(
        title=Text(title, style="bold") if title else None,
        title_justify="left",
        show_header=False,
    )


def _print(table: object) -> None:
    from rich.console import Console

    Console(highlight=False, markup=False).print(table)
