"""docs/dialects.md and the OpenAPI document have every field of every API."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest

from akunu.server.anthropic_fields import MESSAGES_FIELDS
from akunu.server.fields import Field
from akunu.server.llama_cpp_fields import COMPLETION_FIELDS, INFILL_FIELDS
from akunu.server.ollama_fields import (
    OLLAMA_CHAT_FIELDS,
    OLLAMA_GENERATE_FIELDS,
    OLLAMA_OPTIONS,
)
from akunu.server.responses_fields import RESPONSES_FIELDS

PAGE = Path(__file__).parents[2] / "docs/dialects.md"
TABLES = {
    "/v1/messages": MESSAGES_FIELDS,
    "/v1/responses": RESPONSES_FIELDS,
    "/api/chat": OLLAMA_CHAT_FIELDS,
    "/api/generate": OLLAMA_GENERATE_FIELDS,
    "/completion": COMPLETION_FIELDS,
    "/infill": INFILL_FIELDS,
}


@pytest.mark.parametrize("path", TABLES)
def test_the_page_has_every_field(path: str) -> None:
    table: Mapping[str, Field] = TABLES[path]
    page = PAGE.read_text()
    assert f"`POST {path}`" in page
    for name in table:
        assert f"`{name}`" in page, name


def test_the_page_has_every_option_of_ollamas() -> None:
    page = PAGE.read_text()
    for name in OLLAMA_OPTIONS:
        assert f"`{name}`" in page, name


@pytest.mark.parametrize("path", TABLES)
def test_the_document_describes_every_field(client: httpx.Client, path: str) -> None:
    route = client.get("/openapi.json").json()["paths"][path]["post"]
    schema = route["requestBody"]["content"]["application/json"]["schema"]
    assert set(schema["properties"]) == set(TABLES[path])
