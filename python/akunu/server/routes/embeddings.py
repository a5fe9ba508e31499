"""POST /v1/embeddings, and Ollama's /api/embed: vectors of texts."""

from __future__ import annotations

import time
from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from akunu.server.embeddings import (
    EMBEDDINGS_FIELDS,
    OLLAMA_EMBED_FIELDS,
    as_openai,
    embedded,
    texts_of,
)
from akunu.server.errors import invalid
from akunu.server.fields import Read, ignored_header, read, request_schema
from akunu.server.json_body import JsonResponse, json_object
from akunu.server.ollama_models import named
from akunu.server.routes.described import body_of
from akunu.server.state import state_of

router = APIRouter(tags=["embeddings"])
ollama_router = APIRouter(prefix="/api", tags=["ollama"])
_NANOSECONDS: Final = 1_000_000_000


@router.post(
    "/embeddings",
    summary="Vectors of texts",
    response_model=None,
    openapi_extra=body_of(request_schema(EMBEDDINGS_FIELDS, required=["input"])),
)
async def embeddings(request: Request) -> Response:
    """Return a vector for each text."""
    found = _read(read(EMBEDDINGS_FIELDS, await json_object(request)))
    options = found.options
    async with state_of(request).models.use(options.get("model")) as (served, model):
        vectors = await embedded(
            model,
            texts_of(options["input"]),
            dimensions=options.get("dimensions"),
            truncate=options.get("truncate", False),
        )
    answer = as_openai(vectors, served.name, options.get("encoding", "float"))
    return JsonResponse(answer, headers=ignored_header(found.ignored))


@ollama_router.post(
    "/embed",
    summary="Vectors of texts, as Ollama has it",
    response_model=None,
    openapi_extra=body_of(request_schema(OLLAMA_EMBED_FIELDS, required=["model", "input"])),
)
async def embed(request: Request) -> Response:
    """Return a vector for each text; long texts are cut unless the request says otherwise."""
    started = time.monotonic()
    found = _read(read(OLLAMA_EMBED_FIELDS, await json_object(request)))
    options = found.options
    if "model" not in options:
        raise invalid("model", "model is missing", "missing_required_parameter")
    models = state_of(request).models
    async with models.use(named(models, options["model"])) as (_, model):
        loaded = time.monotonic()
        vectors = await embedded(
            model,
            texts_of(options["input"]),
            dimensions=options.get("dimensions"),
            truncate=options.get("truncate", True),
        )
    answer = {
        "model": options["model"],
        "embeddings": [[float(each) for each in vector] for vector in vectors.vectors],
        "total_duration": int((time.monotonic() - started) * _NANOSECONDS),
        "load_duration": int((loaded - started) * _NANOSECONDS),
        "prompt_eval_count": vectors.n_tokens,
    }
    return JsonResponse(answer, headers=ignored_header(found.ignored))


def _read(found: Read) -> Read:
    if "input" not in found.options:
        raise invalid("input", "input is missing", "missing_required_parameter")
    return found
