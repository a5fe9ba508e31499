"""Adapters of a model: llama.cpp's list with scales, and vLLM's routes that load and unload one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from fastapi import APIRouter, Request
from starlette.responses import PlainTextResponse, Response

from akunu.errors import AkunuError, ArgumentError
from akunu.model import Model
from akunu.server.fields.common import model_name
from akunu.server.fields.lora import LORA_SCHEMA, by_name, lora
from akunu.server.fields.table import Field, checked, honoured, ignored_header, read, table_of
from akunu.server.http.errors import ApiError, invalid, without_folders
from akunu.server.http.json_body import JsonResponse, json_object, json_value
from akunu.server.routes.described import body_of, json_body
from akunu.server.served_model import ServedModel
from akunu.server.state import ServerState, state_of

router = APIRouter(tags=["models"])
root_router = APIRouter(tags=["llama.cpp"])


def _text(name: str, value: Any) -> Mapping[str, Any]:
    text = checked(name, value, str)
    if not text:
        raise invalid(name, f"{name} is empty")
    return {name: text}


_NAME: Final = honoured("lora_name", "string", _text, "the name of the adapter")
_MODEL: Final = honoured("model", "string", model_name, "its model; default: the first")
LOAD_FIELDS: Final[Mapping[str, Field]] = table_of(
    [
        _NAME,
        honoured("lora_path", "string", _text, "a GGUF file or a peft directory on the server"),
        _MODEL,
    ]
)
UNLOAD_FIELDS: Final[Mapping[str, Field]] = table_of([_NAME, _MODEL])


@root_router.get("/lora-adapters", summary="Adapters, in llama.cpp's form", response_model=None)
async def adapters(request: Request, model: str | None = None) -> Response:
    """List the adapters of a model, the first where none is named; it is loaded."""
    async with state_of(request).models.use(model) as (served, loaded):
        paths = _paths(served)
        listed = [
            {
                "id": number,
                "name": name,
                "path": paths[name].name if name in paths else "",
                "scale": served.adapter_scales.get(name, 0.0),
            }
            for number, name in enumerate(loaded._pipeline.adapter_numbers)
            if name
        ]
    return JsonResponse(listed)


@root_router.post(
    "/lora-adapters",
    summary="Set scales of adapters for requests that name none",
    response_model=None,
    openapi_extra=json_body({**LORA_SCHEMA, "type": "array"}),
)
async def set_scales(request: Request, model: str | None = None) -> Response:
    """Set them; an adapter that the list lacks has the scale 0."""
    scales = lora("lora", await json_value(request))["lora"]
    async with state_of(request).models.use(model) as (served, loaded):
        found = by_name("lora", scales, loaded._pipeline.adapter_numbers)
        served.adapter_scales = {name: scale for name, scale in found.items() if scale}
    return JsonResponse({"success": True})


@router.post(
    "/load_lora_adapter",
    summary="Load an adapter",
    response_model=None,
    openapi_extra=body_of(LOAD_FIELDS, required=["lora_name", "lora_path"]),
)
async def load(request: Request) -> Response:
    """Answer when texts can name it, as MODEL:NAME; the server must allow it."""
    state, options, headers = await _read(request, LOAD_FIELDS)
    name, path = options["lora_name"], options["lora_path"]
    async with state.models.use(options.get("model")) as (served, model):
        if f"{served.name}:{name}" in state.models.names:
            raise ApiError(400, f"{served.name}:{name} is served already", param="lora_name")
        try:
            await asyncio.get_running_loop().run_in_executor(None, model.load_adapter, name, path)
        except AkunuError as error:
            why = without_folders(str(error))
            raise invalid("lora_path", f"the adapter {name} was not loaded: {why}") from error
        _keep(served, model, {**_paths(served), name: Path(path)})
    text = f"Success: LoRA adapter '{name}' added successfully."
    return PlainTextResponse(text, headers=headers)


@router.post(
    "/unload_lora_adapter",
    summary="Unload an adapter",
    response_model=None,
    openapi_extra=body_of(UNLOAD_FIELDS, required=["lora_name"]),
)
async def unload(request: Request) -> Response:
    """Answer when its memory is free; 409 while texts use it. The server must allow it."""
    state, options, headers = await _read(request, UNLOAD_FIELDS)
    name = options["lora_name"]
    async with state.models.use(options.get("model")) as (served, model):
        if name not in model.adapters:
            there = ", ".join(model.adapters) or "none"
            raise ApiError(
                404, f"{served.name} has no adapter {name}; there is {there}", param="lora_name"
            )
        try:
            await asyncio.get_running_loop().run_in_executor(None, model.unload_adapter, name)
        except ArgumentError as error:
            raise ApiError(409, str(error), param="lora_name") from error
        _keep(served, model, {each: of for each, of in _paths(served).items() if each != name})
        served.adapter_scales.pop(name, None)
    text = f"Success: LoRA adapter '{name}' removed successfully."
    return PlainTextResponse(text, headers=headers)


def _paths(served: ServedModel) -> dict[str, Path]:
    return {name: Path(path) for name, path in dict(served.options.adapters or {}).items()}


def _keep(served: ServedModel, model: Model, adapters: Mapping[str, Path]) -> None:
    """Have the model loaded with these adapters the next time, too."""
    served.options = replace(served.options, adapters=adapters)
    served.n_bytes = served.known_bytes = model.memory["total"]


async def _read(
    request: Request, table: Mapping[str, Field]
) -> tuple[ServerState, dict[str, Any], dict[str, str]]:
    """Return what a request asks for; ApiError where the server does not allow it."""
    state = state_of(request)
    if not state.settings.allow_pull:
        raise ApiError(
            403,
            "this server does not load or unload adapters: start it with --allow-pull",
            code="not_allowed",
        )
    found = read(table, await json_object(request))
    for name in table:
        if name != "model" and name not in found.options:
            raise invalid(name, f"{name} is missing", "missing_required_parameter")
    return state, found.options, ignored_header(found.ignored)
