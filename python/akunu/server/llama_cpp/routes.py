"""llama.cpp's own routes: POST /completion and /infill, GET /props."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from akunu import __version__
from akunu.server.answered import answered
from akunu.server.http.json_body import JsonResponse
from akunu.server.llama_cpp.fields import (
    COMPLETION_FIELDS,
    INFILL_FIELDS,
    completion_request,
    infill_request,
)
from akunu.server.routes.described import body_of
from akunu.server.state import state_of

router = APIRouter(tags=["llama.cpp"])


@router.post(
    "/completion",
    summary="A completion of a prompt, in llama.cpp's form",
    response_model=None,
    openapi_extra=body_of(COMPLETION_FIELDS, required=["prompt"]),
)
async def completion(request: Request) -> Response:
    """Answer whole, or as a stream of events."""
    return await answered(request, completion_request)


@router.post(
    "/infill",
    summary="Fill in the middle, in llama.cpp's form",
    response_model=None,
    openapi_extra=body_of(INFILL_FIELDS, required=["input_prefix", "input_suffix"]),
)
async def infill(request: Request) -> Response:
    """Answer whole, or as a stream of events; refused where the model does not fill in."""
    return await answered(request, infill_request)


@router.get("/props", summary="Properties of a model, in llama.cpp's form", response_model=None)
async def props(request: Request, model: str | None = None) -> Response:
    """Describe a model, the first where none is named; it is loaded."""
    state = state_of(request)
    async with state.models.use(model) as (served, loaded):
        tokenizer = loaded.tokenizer
        names = {token: name for name, token in tokenizer.control_tokens().items()}
        described = {
            "default_generation_settings": {
                "n_ctx": loaded.context,
                "params": dict(loaded.sampling_defaults),
            },
            "total_slots": state.settings.max_waiting,
            "model_alias": served.name,
            "model_path": loaded.path.name,
            "chat_template": tokenizer.chat_template or "",
            "bos_token": names.get(tokenizer.bos_id, "") if tokenizer.bos_id is not None else "",
            "eos_token": names.get(tokenizer.eos_id, "") if tokenizer.eos_id is not None else "",
            "modalities": {"vision": loaded.reads_images, "audio": False},
            "build_info": f"akunu-{__version__}",
        }
    return JsonResponse(described)
