"""What the OpenAPI document says of routes that read their bodies themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def body_of(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a route adds to the document: a body of JSON."""
    content = {"application/json": {"schema": dict(schema)}}
    return {"requestBody": {"required": True, "content": content}}
