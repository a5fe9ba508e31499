"""Writes docs/reference/command-line.md from the commands themselves: python -m tools.command_line

The page has what `akunu COMMAND --help-all` shows. An option of several commands stands once, with
their names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

import click
from typer.main import get_command

from akunu.cli.app import akunu_app

DOCUMENT: Final = Path(__file__).parents[1] / "docs" / "reference" / "command-line.md"

Record: TypeAlias = tuple[str, str]
"""The names of an option or argument, and its help."""

INTRODUCTION: Final = """\
# The command line

Every command and option, as `akunu COMMAND --help-all` shows them. `tools/command_line.py` writes
this page. [Chat](../chat.md), [models](../models.md), [the server](../server.md) and
[speed](../speed.md) explain their use.
"""
ALSO: Final = "Also: some [options of several commands](#options-of-several-commands).\n"
SAME_IN_ALL: Final = "--help"


def document() -> str:
    """Return the whole page."""
    commands = visible_commands()
    records = {name: list(_records(name, each)) for name, each in commands.items()}
    users: dict[Record, list[str]] = {}
    for name, found in records.items():
        for record in found:
            users.setdefault(record, []).append(name)
    shared = {record: names for record, names in users.items() if len(names) > 1}
    parts = [INTRODUCTION]
    for name, command in commands.items():
        own = [record for record in records[name] if record not in shared]
        parts.append(f"## `akunu {name}`\n\n{_help(command)}\n")
        if own:
            parts.append(_table(("option", "meaning"), own))
        if len(own) < len(records[name]):
            parts.append(ALSO)
    rows = [(*record, ", ".join(f"`{name}`" for name in names)) for record, names in shared.items()]
    parts.append("## Options of several commands\n")
    parts.append(_table(("option", "meaning", "commands"), rows))
    return "\n".join(parts)


def visible_commands() -> dict[str, click.Command]:
    """Return the commands by name, without hidden ones and the second name of `chat`."""
    app: Any = get_command(akunu_app())
    return {
        name: command
        for name, command in app.commands.items()
        if not command.hidden and name != "run"
    }


def _records(name: str, command: click.Command) -> Iterator[Record]:
    context = click.Context(command, info_name=f"akunu {name}")
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and SAME_IN_ALL not in parameter.opts:
            yield re.sub(r" <.*>$", "", _one_line(record[0])), _one_line(record[1])


def _help(command: click.Command) -> str:
    return (command.help or "").replace("\b", "").strip()


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for names, meaning, *others in rows:
        cells = [f"`{names}`", meaning.replace("<", "&lt;"), *others]
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
