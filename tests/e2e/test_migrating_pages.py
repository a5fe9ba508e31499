"""docs/migrating: what the pages say that akunu has is there."""

from __future__ import annotations

import inspect
import re

from cli_support import CHECKOUT

import akunu
from akunu.options.load_options import KV_TYPES
from akunu.options.text_options import SamplingOptions
from lines import each_line

PAGES = sorted(CHECKOUT.glob("docs/migrating/*.md"))
FIELDS = (CHECKOUT / "docs/reference/request-fields.md").read_text()


def rows() -> list[tuple[str, str, str]]:
    """Page, header of the last column, and that column, of each row of a table."""
    found = []
    for page in PAGES:
        header = ""
        for line in page.read_text().splitlines():
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            if not cells:
                header = ""
            elif not header:
                header = cells[-1]
            elif not cells[-1].startswith("---"):
                found.append((page.stem, header, cells[-1]))
    return found


ROWS = rows()


def said(column: str) -> list[str]:
    """What a cell has in backticks; of "no: …", nothing."""
    return [] if column.startswith("no") else re.findall(r"`([^`]+)`", column)


def arguments() -> set[str]:
    """The names of arguments of the public calls."""
    calls = (
        akunu.load,
        akunu.load_whisper,
        akunu.Model.generate,
        akunu.Model.chat,
        akunu.Model.embed,
        akunu.Model.rank,
        akunu.SpeechModel.transcribe,
        akunu.SentenceEncoder.__init__,
        akunu.SentenceEncoder.encode,
        akunu.Tokenizer.encode,
    )
    names = {name for call in calls for name in inspect.signature(call).parameters}
    return names | set(SamplingOptions.__dataclass_fields__)


@each_line("page", [page.stem for page in PAGES])
def test_options_and_commands_exist(page: str) -> None:
    from typer.main import get_command

    from akunu.cli.app import akunu_app

    app = get_command(akunu_app())
    commands = app.commands  # type: ignore[attr-defined]
    options = {
        name
        for command in (app, *commands.values())
        for option in command.params
        for name in (*option.opts, *option.secondary_opts)
    }
    for _, _, column in (row for row in ROWS if row[0] == page):
        for text in said(column):
            for name in re.findall(r"(?<!\S)--[a-z-]+", text):
                assert name in options, f"{name} in: {column}"
            if command := re.match(r"akunu ([a-z]+)", text):
                assert command[1] in commands, f"{text} in: {column}"


def test_arguments_exist() -> None:
    known = arguments() | {"language", "max_tokens"}
    for _, _, column in ROWS:
        for text in said(column):
            for name in re.findall(r"(?:^|[(, ])([a-z_]+)=", text):
                assert name in known, f"{name}= in: {column}"


def test_fields_of_requests_exist() -> None:
    for _, header, column in ROWS:
        if header.startswith("field of a request") or "of a request" in column:
            for name in said(column):
                if re.fullmatch(r"[a-z_]+", name):
                    assert f"| `{name}` |" in FIELDS, f"{name} in: {column}"


def test_routes_exist() -> None:
    page = (CHECKOUT / "docs/server.md").read_text()
    for _, _, column in ROWS:
        for text in said(column):
            if text.startswith("/"):
                assert f"{text}`" in page, f"{text} in: {column}"


def test_every_number_format_of_the_cache_is_named() -> None:
    columns = [column for *_, column in ROWS if "--kv-type" in column or "kv_type=" in column]
    assert len(columns) == 3
    for column in columns:
        assert all(name in column for name in KV_TYPES), column
