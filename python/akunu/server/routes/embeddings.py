"""POST /v1/embeddings, and Ollama's /api/embed and /api/embeddings: vectors of texts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from akunu.model import Model
from akunu.server.fields.table import Read, ignored_header, read
from akunu.server.http.errors import ApiError, invalid
from akunu.server.http.json_body import JsonResponse, json_object, read_body
from akunu.server.openai.embeddings import (
    EMBEDDINGS_FIELDS,
    OLLAMA_EMBED_FIELDS,
    OLLAMA_EMBEDDINGS_FIELDS,
    as_openai,
    embedded,
    texts_of,
)
from akunu.server.routes.described import body_of
from akunu.server.state import state_of

router = APIRouter(tags=["embeddings"])
root_router = APIRouter(prefix="/api", tags=["ollama"])
_NANOSECONDS: Final = 1_000_000_000


@router.post(
    "/embeddings",
    summary="Embeddings of texts",
    response_model=None,
    openapi_extra=body_of(EMBEDDINGS_FIELDS, required=["input"]),
)
async def embeddings(request: Request) -> Response:
    """Return a vector for each text."""
    found, texts = await read_body(request, _read)
    options = found.options
    async with state_of(request).models.use(options.get("model")) as (served, model):
        vectors = await embedded(
            model,
            texts,
            dimensions=options.get("dimensions"),
            truncate=options.get("truncate", False),
        )
        name = served.name

    def answer() -> Response:  # in a thread: it may be millions of numbers
        told = as_openai(vectors, name, options.get("encoding", "float"))
        return JsonResponse(told, headers=ignored_header(found.ignored))

    return await asyncio.get_running_loop().run_in_executor(None, answer)


@root_router.post(
    "/embed",
    summary="Embeddings of texts, in Ollama's form",
    response_model=None,
    openapi_extra=body_of(OLLAMA_EMBED_FIELDS, required=["model"]),
)
async def embed(request: Request) -> Response:
    """Return a vector for each text; long texts are cut unless the request says otherwise."""
    started = time.monotonic()
    found = read(OLLAMA_EMBED_FIELDS, await json_object(request))
    options = found.options
    if not options.get("input"):
        return await _without_text(
            request, found, {"model": options.get("model"), "embeddings": []}
        )
    async with _ollamas(request, found) as model:
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


@root_router.post(
    "/embeddings",
    summary="Embedding of one text, by Ollama's older route",
    response_model=None,
    openapi_extra=body_of(OLLAMA_EMBEDDINGS_FIELDS, required=["model"]),
)
async def older_embeddings(request: Request) -> Response:
    """Return a vector that is not scaled to length 1; a text that is too long is refused."""
    found = read(OLLAMA_EMBEDDINGS_FIELDS, await json_object(request))
    prompt = found.options.get("prompt")
    if not prompt:
        return await _without_text(request, found, {"embedding": []})
    async with _ollamas(request, found) as model:
        try:
            vectors = await embedded(model, [prompt], field="prompt", normalize=False)
        except ApiError as error:
            if error.code != "context_length_exceeded":
                raise
            # No field of this route cuts it.
            message = error.message.partition(";")[0] + "; /api/embed cuts long texts"
            raise ApiError(400, message, param="prompt", code=error.code) from None
    answer = {"embedding": [float(each) for each in vectors.vectors[0]]}
    return JsonResponse(answer, headers=ignored_header(found.ignored))


@asynccontextmanager
async def _ollamas(request: Request, found: Read) -> AsyncIterator[Model]:
    """Hold the model that Ollama's request names."""
    models = state_of(request).models
    keep_seconds = found.options.get("keep_seconds")
    async with models.use(await _name(request, found), keep_seconds) as (_, model):
        yield model


async def _without_text(request: Request, found: Read, answer: dict[str, Any]) -> Response:
    """Load the model, or unload it where `keep_alive` is 0, as Ollama does without a text."""
    models, name = state_of(request).models, await _name(request, found)
    keep_seconds = found.options.get("keep_seconds")
    if keep_seconds == 0:
        await models.unload(name)
    else:
        await models.load(name, keep_seconds)
    return JsonResponse(answer, headers=ignored_header(found.ignored))


async def _name(request: Request, found: Read) -> str:
    if "model" not in found.options:
        raise invalid("model", "model is missing", "missing_required_parameter")
    models, name = state_of(request).models, found.options["model"]
    await models.seek(name)
    return models.exact_name(name)


def _read(body: dict[str, Any]) -> tuple[Read, list[str | list[int]]]:
    found = read(EMBEDDINGS_FIELDS, body)
    if "input" not in found.options:
        raise invalid("input", "input is missing", "missing_required_parameter")
    return found, texts_of(found.options["input"])
