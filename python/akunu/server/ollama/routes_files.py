"""Ollama's routes that download and delete models; a server has to allow them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from fastapi import APIRouter, Request
from starlette.responses import Response, StreamingResponse

from akunu.errors import ArgumentError
from akunu.hub import local_models, names
from akunu.hub.names import RepoName
from akunu.server.catalogue.created import LATEST
from akunu.server.catalogue.pulls import PullProgress
from akunu.server.fields.common import model_name
from akunu.server.fields.table import (
    Field,
    flag,
    honoured,
    ignored_header,
    read,
    refused,
    table_of,
    without_effect,
)
from akunu.server.http.errors import ApiError, api_error, invalid
from akunu.server.http.json_body import JsonResponse, json_bytes, json_object
from akunu.server.http.json_words import as_json
from akunu.server.ollama.answer import NDJSON
from akunu.server.routes.described import body_of
from akunu.server.state import ServerState, state_of

router = APIRouter(prefix="/api", tags=["ollama"])

PULL_FIELDS: Final[Mapping[str, Field]] = table_of(
    [
        honoured("model", "string", model_name, "org/repo, or org/repo:Q4_K_M"),
        honoured("name", "string", model_name, "the older name of model"),
        honoured("stream", "boolean", flag("stream"), "send a line for each step of the download"),
        refused("insecure", "models come over https", False),
        without_effect("username", "string", "set HF_TOKEN for the server"),
        without_effect("password", "string", "set HF_TOKEN for the server"),
    ]
)
DELETE_FIELDS: Final[Mapping[str, Field]] = table_of(
    [
        honoured("model", "string", model_name),
        honoured("name", "string", model_name, "the older name of model"),
    ]
)


@router.post(
    "/pull",
    summary="Download a model",
    response_model=None,
    openapi_extra=body_of(PULL_FIELDS, required=["model"]),
)
async def pull(request: Request) -> Response:
    """Download a model from the Hugging Face hub; a stream of lines tells how far it is.

    Another request for the same model joins the download, and it continues without clients.
    """
    state = allowing(request)
    found = read(PULL_FIELDS, await json_object(request))
    name = _repository(found.options.get("model"))
    headers = ignored_header(found.ignored)
    steps = state.pulls.pull(name)
    if not found.options.get("stream", True):
        async for _ in steps:
            pass
        return JsonResponse({"status": "success"}, headers=headers)
    return StreamingResponse(_lines(steps), media_type=NDJSON, headers=headers)


async def _lines(steps: AsyncIterator[PullProgress]) -> AsyncIterator[bytes]:
    try:
        async for step in steps:
            yield json_bytes(_line(step)) + b"\n"
    except Exception as error:
        yield json_bytes({"error": api_error(error).message}) + b"\n"
        return
    yield json_bytes({"status": "success"}) + b"\n"


def _line(step: PullProgress) -> dict[str, Any]:
    if not step.file:
        return {"status": "pulling manifest"}
    known = {} if step.total is None else {"total": step.total, "completed": step.n_here}
    return {"status": f"pulling {step.file}", "digest": step.file, **known}


@router.delete(
    "/delete",
    summary="Delete a model",
    response_model=None,
    openapi_extra=body_of(DELETE_FIELDS, required=["model"]),
)
async def delete(request: Request) -> Response:
    """Delete a created model or one of Hugging Face's cache; 409 while used or downloaded."""
    state = allowing(request)
    found = read(DELETE_FIELDS, await json_object(request))
    if "model" not in found.options:
        raise invalid("model", "model is missing", "missing_required_parameter")
    await state.models.seek(found.options["model"])
    created = state.models.created(found.options["model"].removesuffix(LATEST))
    if created is not None:
        await state.models.delete_created(created)
        return JsonResponse({}, headers=ignored_header(found.ignored))
    served = state.models.find(found.options["model"])
    name = names.parse_repo(served.name)
    if name is None or not served.is_discovered or served.source != served.name:
        raise invalid(
            "model",
            f"{served.name} cannot be deleted: only models that the server found in Hugging Face's "
            "cache, and created ones, can",
        )
    if needing := state.models.created_from(served.name):
        raise ApiError(
            409,
            f"{', '.join(needing)} {'was' if len(needing) == 1 else 'were'} created from "
            f"{served.name}: delete {'it' if len(needing) == 1 else 'them'} first",
            param="model",
        )
    if state.pulls.is_under_way(name):
        raise ApiError(409, f"{served.name} is being downloaded", param="model")
    await state.models.unload(served.name)
    await asyncio.get_running_loop().run_in_executor(None, _delete, name)
    await state.models.listed()
    return JsonResponse({}, headers=ignored_header(found.ignored))


def _delete(name: RepoName) -> None:
    local_models.remove(local_models.to_remove(name))


def allowing(request: Request) -> ServerState:
    """Return the state of a server that allows this; ApiError for another one."""
    state = state_of(request)
    if not state.settings.allow_pull:
        raise ApiError(
            403,
            "this server does not download, create or delete models: start it with --allow-pull",
            code="not_allowed",
        )
    return state


def _repository(name: str | None) -> RepoName:
    """Return the repository of a name; an address would let clients reach the server's network."""
    if name is None:
        raise invalid("model", "model is missing", "missing_required_parameter")
    try:
        meant = names.parse_repo(name.removesuffix(":latest"))
    except ArgumentError as error:
        raise invalid("model", str(error)) from None
    if meant is None:
        raise invalid(
            "model",
            f"model is {as_json(name)}; models are downloaded from the Hugging Face hub: write "
            "org/repo or org/repo:Q4_K_M",
        )
    return meant
