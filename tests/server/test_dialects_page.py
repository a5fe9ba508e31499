"""The documents and the OpenAPI document have every field of every API."""

from __future__ import annotations

import sys
from pathlib import Path

import httpx

from akunu.server.fields.meanings import meaning_of
from lines import each_line

sys.path.insert(0, str(Path(__file__).parents[2]))
from tools.request_fields import DOCUMENT, ROUTES, document

PAGE = (Path(__file__).parents[2] / "docs" / "server.md").read_text(encoding="utf-8")
POSTED = [each.removeprefix("POST ") for each in ROUTES if each.startswith("POST")]


def test_the_page_of_all_fields_is_up_to_date() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == document(), "run: python -m tools.request_fields"


@each_line("route", ROUTES)
def test_every_field_says_what_becomes_of_it(route: str) -> None:
    assert [each.name for each in ROUTES[route].values() if not meaning_of(each)] == []


@each_line("path", POSTED)
def test_the_page_of_the_server_describes_every_route(path: str) -> None:
    assert f"`POST {path}`" in PAGE


@each_line("path", POSTED)
def test_the_openapi_document_describes_every_field(client: httpx.Client, path: str) -> None:
    route = client.get("/openapi.json").json()["paths"][path]["post"]
    (body,) = route["requestBody"]["content"].values()  # JSON, or a form
    schema = body["schema"]
    assert set(schema["properties"]) == set(ROUTES[f"POST {path}"])
    assert all(each.get("description") for each in schema["properties"].values())
