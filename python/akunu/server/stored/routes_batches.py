"""/v1/batches: begin, list, look at and cancel batches of requests."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, cast

from fastapi import APIRouter, Request
from starlette.responses import Response

from akunu.server.fields.table import Field, checked, honoured, ignored_header, read, table_of
from akunu.server.http.errors import invalid, unsupported
from akunu.server.http.json_body import JsonResponse, json_object
from akunu.server.http.json_words import as_json
from akunu.server.routes.described import body_of
from akunu.server.state import entry_of
from akunu.server.stored.batch_lines import ENDPOINTS
from akunu.server.stored.batches import Batches
from akunu.server.stored.files import StoredFiles, folder_of
from akunu.server.stored.items import Limit, page_of
from akunu.server.stored.lifetimes import lifetime

router = APIRouter(prefix="/batches", tags=["batches"])


def _endpoint(name: str, value: Any) -> Mapping[str, Any]:
    if value not in ENDPOINTS:
        raise unsupported(
            name, f"endpoint is {as_json(value)}; it must be {' or '.join(ENDPOINTS)}"
        )
    return {name: value}


def _window(name: str, value: Any) -> Mapping[str, Any]:
    if value != "24h":
        raise invalid(name, f"{name} is {as_json(value)}; it must be '24h'")
    return {name: value}


def _as(kind: type) -> Any:
    return lambda name, value: {name: checked(name, value, kind)}


BATCH_FIELDS: Final[Mapping[str, Field]] = table_of(
    [
        honoured("input_file_id", "string", _as(str), "an uploaded file of requests"),
        honoured("endpoint", {"enum": list(ENDPOINTS)}, _endpoint, "the route of all requests"),
        honoured(
            "completion_window",
            {"enum": ["24h"]},
            _window,
            "24h; a batch takes the time that it needs",
        ),
        honoured("metadata", "object", _as(dict), "texts that the batch repeats"),
        honoured(
            "output_expires_after",
            "object",
            lifetime,
            "when the answers are deleted: anchor, seconds",
        ),
    ]
)
_REQUIRED: Final = ("input_file_id", "endpoint", "completion_window")


@router.post(
    "",
    summary="Answer the requests of a file",
    response_model=None,
    openapi_extra=body_of(BATCH_FIELDS, required=_REQUIRED),
)
async def create(request: Request) -> Response:
    """Begin a batch, which continues without a client, and after a restart."""
    batches = _batches_of(request)
    found = read(BATCH_FIELDS, await json_object(request))
    for name in _REQUIRED:
        if name not in found.options:
            raise invalid(name, f"{name} is missing", "missing_required_parameter")
    file = StoredFiles.of(request).find(found.options["input_file_id"], "input_file_id")
    if file["purpose"] != "batch":
        raise invalid("input_file_id", "input_file_id: the purpose of the file is not batch")
    batch = batches.create(_owner_of(request), found.options)
    return JsonResponse(batch, headers=ignored_header(found.ignored))


@router.get("", summary="List batches", response_model=None)
async def list_batches(request: Request, after: str | None = None, limit: Limit = 20) -> Response:
    """Return the batches of the key, the newest first."""
    look = partial(_batches_of(request).all, _owner_of(request))
    batches = await asyncio.get_running_loop().run_in_executor(None, look)
    return JsonResponse(page_of(batches, after=after, limit=limit, order="desc"))


@router.get("/{batch_id}", summary="How far a batch is", response_model=None)
async def retrieve(request: Request, batch_id: str) -> Response:
    """Return its status, counts and files."""
    return JsonResponse(_batches_of(request).find(_owner_of(request), batch_id))


@router.post("/{batch_id}/cancel", summary="Cancel a batch", response_model=None)
async def cancel(request: Request, batch_id: str) -> Response:
    """End a batch; what is answered stays in its files."""
    return JsonResponse(_batches_of(request).cancel(_owner_of(request), batch_id))


def _owner_of(request: Request) -> str:
    return entry_of(request).owner or ""


def _batches_of(request: Request) -> Batches:
    folder_of(request, "batches")
    return cast(Batches, request.app.state.akunu_batches)
