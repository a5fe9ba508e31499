"""/v1/models: what a request may name as its model; models are loaded and unloaded by name."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from akunu.server.anthropic.models import model_info, models_page
from akunu.server.fields.common import model_name
from akunu.server.fields.table import honoured, ignored_header, read, table_of
from akunu.server.http.error_shapes import is_anthropic
from akunu.server.http.errors import invalid
from akunu.server.http.json_body import JsonResponse, json_object
from akunu.server.model_files import file_of
from akunu.server.models import ServedModels
from akunu.server.ollama.models import capabilities
from akunu.server.routes.described import body_of
from akunu.server.served_model import ServedModel
from akunu.server.state import state_of

router = APIRouter(tags=["models"])

_NAMED: Final = table_of([honoured("model", "string", model_name)])


@router.get("/models", summary="The models that are served", response_model=None)
async def models(request: Request) -> Response:
    """List all models, loaded or not; for Anthropic's clients, whose header tells them, theirs."""
    there = await state_of(request).models.listed()
    if is_anthropic(request.scope):
        return JsonResponse(models_page(there, request.query_params))
    listed = [entry for each in there for entry in (await described(each), *adapters_of(each))]
    return JsonResponse({"object": "list", "data": listed})


@router.get("/models/{name:path}", summary="One model", response_model=None)
async def model(request: Request, name: str) -> Response:
    """Describe one model; its name may have slashes."""
    if not name:
        raise HTTPException(404)
    await state_of(request).models.seek(name)
    served = state_of(request).models.find(name)
    if is_anthropic(request.scope):
        return JsonResponse(model_info(served))
    await state_of(request).models.looked_at(served)
    for entry in adapters_of(served):
        if entry["id"] == name:
            return JsonResponse(entry)
    return JsonResponse(await described(served))


@router.post(
    "/models/load",
    summary="Load a model",
    response_model=None,
    openapi_extra=body_of(_NAMED, required=["model"]),
)
async def load(request: Request) -> Response:
    """Answer when the model is loaded; a request that names it does the same."""
    models, name, headers = await _named(request)
    served = await models.load(name)
    return JsonResponse({"success": True, **await described(served)}, headers=headers)


@router.post(
    "/models/unload",
    summary="Unload a model",
    response_model=None,
    openapi_extra=body_of(_NAMED, required=["model"]),
)
async def unload(request: Request) -> Response:
    """Answer when the model is unloaded; 409 while requests use it."""
    models, name, headers = await _named(request)
    await models.unload(name)
    return JsonResponse({"success": True, **await described(models.find(name))}, headers=headers)


async def _named(request: Request) -> tuple[ServedModels, str, dict[str, str]]:
    found = read(_NAMED, await json_object(request))
    if "model" not in found.options:
        raise invalid("model", "model is missing", "missing_required_parameter")
    return state_of(request).models, found.options["model"], ignored_header(found.ignored)


def adapters_of(served: ServedModel) -> list[dict[str, Any]]:
    """Return entries for the adapters of a model."""
    return [
        {
            "id": f"{served.name}:{adapter}",
            "object": "model",
            "created": served.created,
            "owned_by": "akunu",
            "loaded": served.model is not None,
            "status": {"value": served.state},
            "parent": served.name,  # as vLLM has it
        }
        for adapter in served.adapters
    ]


async def described(served: ServedModel) -> dict[str, Any]:
    """Return what is known of a model: more of one that is loaded."""
    file = await file_of(served)
    found: dict[str, Any] = {
        "id": served.name,
        "object": "model",
        "created": served.created,
        "owned_by": "akunu",
        "loaded": served.model is not None,
        "status": {"value": served.state},  # as llama.cpp's server has it
    }
    if served.aliases:
        found["aliases"] = list(served.aliases)
    if served.is_pinned:
        found["pinned"] = True
    if served.is_speech:
        found["capabilities"] = ["transcription"]
    model = served.text_model
    if model is None:
        return found
    found["capabilities"] = capabilities(model)
    config = model.config
    found["max_model_len"] = model.context  # as vLLM calls it
    found["meta"] = {  # as llama.cpp has it
        "n_ctx": model.context,
        "n_ctx_train": config.context_length,
        "n_vocab": config.vocab_size,
        "n_embd": config.dim,
        "n_params": 0 if file is None else file.n_parameters,
        "size": sum(n for label, n in model.memory.items() if label.startswith("weights")),
        "architecture": config.architecture,
    }
    return found
