"""What the OpenAPI document says of routes that read their bodies and write answers themselves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fastapi import APIRouter
from fastapi.routing import APIRoute

from akunu.server.fields.meanings import request_schema
from akunu.server.fields.table import Field
from akunu.server.http.error_shapes import is_anthropic

_TEXT: Final = {"type": "string"}
_TEXT_OR_NULL: Final = {"type": ["string", "null"]}
_ERROR: Final = {
    "type": "object",
    "properties": {
        "message": _TEXT,
        "type": _TEXT,
        "param": _TEXT_OR_NULL,
        "code": _TEXT_OR_NULL,
    },
    "required": ["message", "type", "param", "code"],
}
_ERRORS: Final[Mapping[str, Mapping[str, Any]]] = {
    "Error": {"type": "object", "properties": {"error": _ERROR}, "required": ["error"]},
    "AnthropicError": {
        "type": "object",
        "properties": {"type": {"const": "error"}, "error": _ERROR, "request_id": _TEXT_OR_NULL},
        "required": ["type", "error", "request_id"],
    },
    "OllamaError": {"type": "object", "properties": {"error": _TEXT}, "required": ["error"]},
}
_LISTS: Final = ("/completion", "/lora-adapters", "/v1/rerank")  # answers that may be lists


class RequestBody(dict[str, Any]):
    """What a route adds to the document, and the table of the fields that it reads."""

    fields: Mapping[str, Field]


def body_of(fields: Mapping[str, Field], required: Iterable[str] = ()) -> RequestBody:
    """Return what a route adds to the document that reads these fields from a body of JSON."""
    body = RequestBody(json_body(request_schema(fields, required)))
    body.fields = fields
    return body


def form_of_fields(fields: Mapping[str, Field], required: Iterable[str] = ()) -> RequestBody:
    """Return the same for a form with a file, whose answer may be text."""
    content = {"multipart/form-data": {"schema": request_schema(fields, required)}}
    answers = {"200": {"content": {"text/plain": {"schema": _TEXT}}}}
    body = RequestBody(requestBody={"required": True, "content": content}, responses=answers)
    body.fields = fields
    return body


def json_body(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a route adds to the document: a body of JSON."""
    content = {"application/json": {"schema": dict(schema)}}
    return {"requestBody": {"required": True, "content": content}}


def fields_of_routes(routers: Iterable[tuple[str, APIRouter]]) -> dict[str, Mapping[str, Field]]:
    """Return the tables of fields, by method and path, of routers with their prefixes."""
    return {
        f"{method} {prefix}{route.path}": route.openapi_extra.fields
        for prefix, router in routers
        for route in router.routes
        if isinstance(route, APIRoute) and isinstance(route.openapi_extra, RequestBody)
        for method in route.methods or ()
    }


def with_answers(document: dict[str, Any]) -> dict[str, Any]:
    """Complete FastAPI's document: streams, errors of each dialect, none of FastAPI's own."""
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas.update(_ERRORS)
    for path, methods in document["paths"].items():
        for operation in methods.values():
            answers = operation["responses"]
            answers.pop("422", None)
            whole = answers["200"].setdefault("content", {}).get("application/json")
            if whole is not None and not whole.get("schema"):
                kinds = ["object", "array"] if path in _LISTS else "object"
                whole["schema"] = {"type": kinds}
            if _may_stream(operation):
                lines = "application/x-ndjson" if path.startswith("/api/") else "text/event-stream"
                answers["200"]["content"][lines] = {}
            answers["default"] = _error_of(path)
    return document


def _may_stream(operation: Mapping[str, Any]) -> bool:
    bodies = operation.get("requestBody", {}).get("content", {})
    fields = {
        name for body in bodies.values() for name in body.get("schema", {}).get("properties", {})
    }
    is_generation = not operation["operationId"].startswith(("count_", "input_", "apply_"))
    return "stream" in fields and is_generation


def _error_of(path: str) -> dict[str, Any]:
    name = "Error"
    if path.startswith("/api/"):
        name = "OllamaError"
    elif is_anthropic({"path": path, "headers": ()}):
        name = "AnthropicError"
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}
    return {"description": "The error", "content": content}
