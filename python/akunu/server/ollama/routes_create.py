"""Ollama's routes that create models from served ones; a server has to allow them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from akunu.server.catalogue.created import new_name
from akunu.server.fields.table import Field, checked, honoured, ignored_header, read, table_of
from akunu.server.http.errors import invalid
from akunu.server.http.json_body import JsonResponse, json_bytes, json_object
from akunu.server.ollama.answer import NDJSON
from akunu.server.ollama.create_fields import CREATE_FIELDS, creation_of, derived
from akunu.server.ollama.routes_files import allowing
from akunu.server.routes.described import body_of

router = APIRouter(prefix="/api", tags=["ollama"])


def _name(name: str, value: Any) -> Mapping[str, Any]:
    return {name: checked(name, value, str)}


COPY_FIELDS: Final[Mapping[str, Field]] = table_of(
    [
        honoured("source", "string", _name, "the name of a served model"),
        honoured("destination", "string", _name, "the name of the new model"),
    ]
)
_STEPS: Final = ("reading model metadata", "writing manifest", "success")


@router.post(
    "/create",
    summary="Create a model: a served model with other settings",
    response_model=None,
    openapi_extra=body_of(CREATE_FIELDS, required=["model"]),
)
async def create(request: Request) -> Response:
    """Create a model, in place of a created one of this name; 409 while requests use that."""
    models = allowing(request).models
    body = await json_object(request)
    await models.listed()
    loop = asyncio.get_running_loop()
    creation = await loop.run_in_executor(None, partial(creation_of, body, models))
    await models.create(creation.model)
    headers = ignored_header(creation.ignored)
    if not creation.is_stream:
        return JsonResponse({"status": _STEPS[-1]}, headers=headers)
    lines = b"".join(json_bytes({"status": each}) + b"\n" for each in _STEPS)
    return Response(lines, media_type=NDJSON, headers=headers)


@router.post(
    "/copy",
    summary="Give a model a second name",
    response_model=None,
    openapi_extra=body_of(COPY_FIELDS, required=["source", "destination"]),
)
async def copy(request: Request) -> Response:
    """Create a model that is as another one; the weights are not copied."""
    models = allowing(request).models
    found = read(COPY_FIELDS, await json_object(request))
    for name in COPY_FIELDS:
        if name not in found.options:
            raise invalid(name, f"{name} is missing", "missing_required_parameter")
    await models.listed()
    name = new_name("destination", found.options["destination"])
    await models.create(derived(name, found.options["source"], models))
    return JsonResponse({}, headers=ignored_header(found.ignored))
