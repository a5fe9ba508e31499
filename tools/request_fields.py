"""Writes docs/reference/request-fields.md, with every field of every route, from the tables.

python -m tools.request_fields
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from akunu.server.app import all_routers
from akunu.server.fields.meanings import meaning_of
from akunu.server.fields.sampling import SAMPLING_FIELDS
from akunu.server.fields.structure import STRUCTURE_FIELDS
from akunu.server.fields.table import Field
from akunu.server.ollama.fields import OLLAMA_OPTIONS
from akunu.server.routes.described import fields_of_routes

DOCUMENT: Final = Path(__file__).parents[1] / "docs" / "reference" / "request-fields.md"

ROUTES: Final = fields_of_routes(all_routers())
SHARED: Final = {
    "Sampling": SAMPLING_FIELDS,
    "Structured output": STRUCTURE_FIELDS,
}
INTRODUCTION: Final = """\
# Fields of requests

The meaning of each field of a request to the server ([the server](../server.md)).
`tools/request_fields.py` writes this page from the server's tables.

A field that is null counts as not set. A refused field is answered with 400, and its name
is in `param`. The header `x-akunu-ignored` of the answer names fields without effect and fields
that are not listed here. It also names keys of messages and their parts that neither the server nor
the model's chat template reads (`messages.mood`, `messages.content.cache_control`).
"""


def document() -> str:
    """Return the whole page."""
    parts = [INTRODUCTION]
    for title, fields in SHARED.items():
        same = "Several routes share these fields."
        parts.append(f"## {title}\n\n{same}\n\n{_table(fields)}")
    for route, fields in ROUTES.items():
        routes = [each for each, table in ROUTES.items() if table is fields]
        if route != routes[0]:
            continue  # it is there
        others = ", ".join(f"`{each}`" for each in routes[1:])
        also = f"Also of {others}.\n\n" if others else ""
        parts.append(f"## `{route}`\n\n{also}{_fields(fields)}")
    parts.append(f"## `options` of /api/chat and /api/generate\n\n{_fields(OLLAMA_OPTIONS)}")
    return "\n".join(parts)


def _fields(fields: Mapping[str, Field]) -> str:
    return _shared(fields) + _table(_own(fields))


def _own(fields: Mapping[str, Field]) -> list[Field]:
    shared = [each for group in SHARED.values() for each in group]
    return [each for each in fields.values() if not any(each is other for other in shared)]


def _shared(fields: Mapping[str, Field]) -> str:
    said = []
    for title, group in SHARED.items():
        missing = [each.name for each in group if fields.get(each.name) is not each]
        if len(missing) == len(group):
            continue
        link = f"[{title.lower()}](#{title.lower().replace(' ', '-')})"
        but = f" (except {', '.join(f'`{name}`' for name in missing)})" if missing else ""
        said.append(link + but)
    return f"Besides {' and '.join(said)}:\n\n" if said else ""


def _table(fields: Iterable[Field]) -> str:
    order = ("honoured", "refused", "ignored")
    rows = sorted(fields, key=lambda each: order.index(each.effect))  # which keeps their order
    lines = ["| field | meaning |", "|---|---|"]
    lines += [f"| `{each.name}` | {_effect(each)} |" for each in rows]
    return "\n".join(lines) + "\n"


def _effect(field: Field) -> str:
    meaning = meaning_of(field).rstrip(".").replace("|", "\\|")
    if not meaning[1:2].isupper():
        meaning = meaning[:1].lower() + meaning[1:]
    if field.effect == "refused":
        return f"refused: {meaning}"
    if field.effect == "ignored":
        return f"no effect: {meaning}"
    return meaning


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
