"""Ollama's routes below /api: chats, texts, and what is known of the models."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from akunu import __version__
from akunu.server.answered import ToRequest, answer_to
from akunu.server.fields.table import checked
from akunu.server.http.json_body import JsonResponse, json_object, read_body
from akunu.server.ollama.answer import OllamaAnswer
from akunu.server.ollama.fields import (
    OLLAMA_CHAT_FIELDS,
    OLLAMA_GENERATE_FIELDS,
    chat_request,
    generate_request,
)
from akunu.server.ollama.models import described, listed, running
from akunu.server.routes.described import body_of, json_body
from akunu.server.state import state_of

API_VERSION: Final = "0.13.5"
"""The Ollama whose API this is, with /v1/responses next to it. Codex asks for 0.13.4 or newer."""

router = APIRouter(prefix="/api", tags=["ollama"])
_NAME: Final = {"type": ["string", "null"]}
_SHOWN: Final = {"type": "object", "properties": {"model": _NAME, "name": _NAME}}


@router.post(
    "/chat",
    summary="A reply to a conversation, in Ollama's form",
    response_model=None,
    openapi_extra=body_of(OLLAMA_CHAT_FIELDS),
)
async def chat(request: Request) -> Response:
    """Answer as a stream of lines, or whole."""
    return await _answered(request, chat_request, is_chat=True)


@router.post(
    "/generate",
    summary="A completion, in Ollama's form",
    response_model=None,
    openapi_extra=body_of(OLLAMA_GENERATE_FIELDS),
)
async def generate(request: Request) -> Response:
    """Answer as a stream of lines, or whole."""
    return await _answered(request, generate_request, is_chat=False)


async def _answered(request: Request, to_request: ToRequest, *, is_chat: bool) -> Response:
    state = state_of(request)
    wanted = await read_body(request, lambda body: to_request(body, state.settings))
    await state.models.seek(wanted.model)
    wanted.model = model = state.models.exact_name(wanted.model)
    if wanted.prompts is not None or wanted.arguments.get("messages"):
        return answer_to(request, wanted)
    if wanted.keep_seconds == 0:
        await state.models.unload(model)
        done = "unload"
    else:
        await state.models.load(model, wanted.keep_seconds)
        done = "load"
    nothing = OllamaAnswer(model, is_chat=is_chat).nothing(done)
    return JsonResponse(nothing, headers=wanted.headers)


@router.get("/tags", summary="The models that are served", response_model=None)
async def tags(request: Request) -> Response:
    """List all models, loaded or not."""
    there = await state_of(request).models.listed()
    return JsonResponse({"models": [await listed(each) for each in there]})


@router.get("/ps", summary="The models that are loaded", response_model=None)
async def ps(request: Request) -> Response:
    """List the models that are loaded."""
    served = state_of(request).models.all
    loaded = [await running(each, each.model) for each in served if each.model is not None]
    return JsonResponse({"models": loaded})


@router.post(
    "/show",
    summary="One model; it is loaded",
    response_model=None,
    openapi_extra=json_body(_SHOWN),
)
async def show(request: Request) -> Response:
    """Describe one model."""
    body = await json_object(request)
    name = body.get("model", body.get("name"))
    if name is not None:
        checked("model", name, str)
    models = state_of(request).models
    await models.seek(name)
    async with models.use(models.exact_name(name)) as (served, model):
        return JsonResponse(await described(served, model))


@router.get("/version", summary="The versions of the API and of akunu", response_model=None)
async def version() -> Response:
    """Tell which Ollama's API this is, for clients that want one no older, and akunu's version."""
    return JsonResponse({"version": API_VERSION, "akunu": __version__})
