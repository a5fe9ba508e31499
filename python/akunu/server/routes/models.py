"""GET /v1/models and /v1/models/{id}: what a request may name as its model."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from akunu.server.json_body import JsonResponse
from akunu.server.models import ServedModel
from akunu.server.ollama_models import capabilities
from akunu.server.state import state_of

router = APIRouter(tags=["models"])


@router.get("/models", summary="The models that are served", response_model=None)
async def models(request: Request) -> Response:
    """List all models, loaded or not."""
    listed = [described(each) for each in state_of(request).models.all]
    return JsonResponse({"object": "list", "data": listed})


@router.get("/models/{name:path}", summary="One model", response_model=None)
async def model(request: Request, name: str) -> Response:
    """Describe one model; its name may have slashes."""
    return JsonResponse(described(state_of(request).models.find(name)))


def described(served: ServedModel) -> dict[str, Any]:
    """Return what is known of a model: more of one that is loaded."""
    found: dict[str, Any] = {
        "id": served.name,
        "object": "model",
        "created": served.created,
        "owned_by": "akunu",
        "loaded": served.model is not None,
    }
    if served.aliases:
        found["aliases"] = list(served.aliases)
    if served.is_pinned:
        found["pinned"] = True
    model = served.model
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
        "size": sum(n for label, n in model.memory.items() if label.startswith("weights")),
        "architecture": config.architecture,
    }
    return found
