"""/v1/files: upload, list, retrieve, read and delete files for batches."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import FileResponse, Response

from akunu.server.fields.table import Field, honoured, ignored_header, read, table_of
from akunu.server.http.errors import invalid, unsupported
from akunu.server.http.form_body import Upload, form_of
from akunu.server.http.json_body import JsonResponse
from akunu.server.http.json_words import as_json
from akunu.server.routes.described import form_of_fields
from akunu.server.stored.files import StoredFiles
from akunu.server.stored.items import page_of
from akunu.server.stored.lifetimes import lifetime

router = APIRouter(prefix="/files", tags=["files"])


def _file(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Upload):
        raise invalid(name, f"{name} must be an uploaded file, with a filename")
    return {"file": value}


def _purpose(name: str, value: Any) -> Mapping[str, Any]:
    if value != "batch":
        raise unsupported(name, f"purpose is {as_json(value)}; only 'batch' is supported")
    return {"purpose": value}


FILES_FIELDS: Final[Mapping[str, Field]] = table_of(
    [
        honoured(
            "file",
            {"type": "string", "format": "binary"},
            _file,
            "requests, one a line as JSON; at most `max_body` bytes",
        ),
        honoured("purpose", {"enum": ["batch"]}, _purpose, "what the file is for: batch"),
        honoured("expires_after", "object", lifetime, "when the file is deleted: anchor, seconds"),
    ]
)


@router.post(
    "",
    summary="Upload a file",
    response_model=None,
    openapi_extra=form_of_fields(FILES_FIELDS, required=["file", "purpose"]),
)
async def upload(request: Request) -> Response:
    """Store a file; one that is too large is refused while it arrives."""
    files = StoredFiles.of(request)
    async with form_of(request, ()) as form:
        found = read(FILES_FIELDS, form)
        for name in ("file", "purpose"):
            if name not in found.options:
                raise invalid(name, f"{name} is missing", "missing_required_parameter")
        given: Upload = found.options["file"]
        store = partial(files.upload, given.file, given.name, found.options.get("seconds"))
        told = await asyncio.get_running_loop().run_in_executor(None, store)
    return JsonResponse(told, headers=ignored_header(found.ignored))


@router.get("", summary="List files", response_model=None)
async def list_files(
    request: Request,
    purpose: str | None = None,
    after: str | None = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 10_000,
    order: Literal["asc", "desc"] = "desc",
) -> Response:
    """Return the files of the key, the newest first; `purpose`: those for it only."""
    files = await asyncio.get_running_loop().run_in_executor(None, StoredFiles.of(request).all)
    chosen = [each for each in files if purpose in (None, each["purpose"])]
    return JsonResponse(page_of(chosen, after=after, limit=limit, order=order))


@router.get("/{file_id}", summary="Facts about a file", response_model=None)
async def retrieve(request: Request, file_id: str) -> Response:
    """Return its name, size and purpose."""
    return JsonResponse(StoredFiles.of(request).find(file_id))


@router.get(
    "/{file_id}/content",
    summary="The content of a file",
    response_model=None,
    response_class=FileResponse,
    responses={200: {"content": {"application/octet-stream": {}}}},
)
async def content(request: Request, file_id: str) -> Response:
    """Return its bytes, as they are on the disk."""
    files = StoredFiles.of(request)
    files.find(file_id)
    return FileResponse(files.content(file_id), media_type="application/octet-stream")


@router.delete("/{file_id}", summary="Delete a file", response_model=None)
async def delete(request: Request, file_id: str) -> Response:
    """Delete a file; a batch that still reads it fails."""
    StoredFiles.of(request).delete(file_id)
    return JsonResponse({"id": file_id, "object": "file", "deleted": True})
