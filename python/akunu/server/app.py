"""The application: routes, errors, and what every request goes through.

>>> from akunu.server import ServedModels, ServerSettings, create_app
>>> app = create_app(ServerSettings(), ServedModels(["ember"]))
>>> app.title
'akunu'
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match

from akunu import __version__
from akunu.errors import AkunuError
from akunu.grammar.separate_process import CompileBudget, Workers
from akunu.server import page_routes
from akunu.server.anthropic import routes as anthropic_routes
from akunu.server.http.access import Access
from akunu.server.http.access_log import AccessLog
from akunu.server.http.error_shapes import shaped
from akunu.server.http.errors import ApiError, api_error, internal_error, invalid
from akunu.server.http.json_body import JsonResponse
from akunu.server.http.keys import Keys
from akunu.server.http.origins import cors_options
from akunu.server.journal.journal import Journal
from akunu.server.llama_cpp import routes as llama_cpp_routes
from akunu.server.metrics import Metrics
from akunu.server.models import ServedModels
from akunu.server.ollama import routes as ollama_routes
from akunu.server.ollama import routes_create as ollama_create
from akunu.server.ollama import routes_files as ollama_files
from akunu.server.openai import routes_audio, routes_chat, routes_completions, routes_responses
from akunu.server.routes import routers
from akunu.server.routes.described import with_answers
from akunu.server.settings import ServerSettings
from akunu.server.state import ServerState, entry_of
from akunu.server.stored import routes_batches, routes_conversations, routes_files
from akunu.server.stored import routes_responses as stored_responses
from akunu.server.stored.background import Backgrounds
from akunu.server.stored.batches import Batches
from akunu.server.stored.store import FolderStore, store_of

_LOG = logging.getLogger("akunu.server")


class _Application(FastAPI):
    def openapi(self) -> dict[str, Any]:
        if not self.openapi_schema:
            self.openapi_schema = with_answers(super().openapi())
        return self.openapi_schema


def create_app(
    settings: ServerSettings | None = None,
    models_served: ServedModels | None = None,
    *,
    is_guarded: bool = True,
) -> FastAPI:
    """Return the application, for uvicorn or another ASGI server.

    `models_served`: which models it has; None: the one inside the package. They are loaded when
    they are requested and closed when the application ends. `is_guarded`: whether it asks for keys
    and looks at origins and limits; False, where the front has done that.
    """
    settings = settings or ServerSettings()
    served = models_served or ServedModels.of(settings)
    budget = CompileBudget(seconds=settings.grammar_seconds, n_bytes=settings.grammar_memory)
    journal = Journal.of(settings)
    state = ServerState(
        settings, served, Metrics(served), Workers(budget), journal, store_of(journal)
    )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        batches = None
        if isinstance(state.store, FolderStore):
            batches = Batches(app, state.store, max(1, settings.max_waiting * 3 // 4))
            app.state.akunu_batches = batches
            batches.resume()
            app.state.akunu_backgrounds = Backgrounds(state, state.store)
            await app.state.akunu_backgrounds.resume()
        state.is_ready = True
        try:
            yield
        finally:
            state.is_ready = False
            if batches is not None:
                await batches.close()
            state.workers.close()
            state.pulls.close()
            if state.journal is not None:
                await state.journal.close()
            state.store.close()
            await served.close()

    app = _Application(
        title="akunu",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,  # its page would load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.akunu = state
    for prefix, router in all_routers():
        app.include_router(router, prefix=prefix)
        if prefix:  # clients whose base has no /v1
            app.include_router(router, include_in_schema=False)
    keys = Keys.of(settings) if is_guarded else Keys()
    app.add_middleware(
        Access,
        settings=settings,
        keys=keys,
        log=AccessLog(settings.access_log),
        metrics=state.metrics,
        is_guarded=is_guarded,
        workers=state.workers,
    )
    if settings.cors_origins and is_guarded:
        # Around the door: what a browser asks beforehand has no key.
        app.add_middleware(CORSMiddleware, **cors_options(settings))
    app.add_exception_handler(AkunuError, _refused)
    app.add_exception_handler(ClientDisconnect, _gone)
    app.add_exception_handler(HTTPException, _no_route)
    app.add_exception_handler(RequestValidationError, _not_valid)
    app.add_exception_handler(Exception, _failed)
    return app


def all_routers() -> list[tuple[str, APIRouter]]:
    """Return the routers, each with its prefix."""
    below_v1 = (
        routes_chat.router,
        routes_completions.router,
        routes_responses.router,
        stored_responses.router,
        routes_conversations.router,
        routes_files.router,
        routes_batches.router,
        routes_audio.router,
        anthropic_routes.router,
        *routers("router"),
    )
    others = (
        llama_cpp_routes.router,
        ollama_routes.router,
        ollama_files.router,
        ollama_create.router,
        page_routes.router,
        *routers("root_router"),
    )
    return [*(("/v1", each) for each in below_v1), *(("", each) for each in others)]


def answer_of(request: Request, error: ApiError) -> Response:
    """Return the answer that an error is."""
    body = shaped(error, request.scope, entry_of(request).request_id)
    return JsonResponse(body, error.status, error.headers)


async def _refused(request: Request, error: Exception) -> Response:
    told = api_error(error)
    if told.status >= 500:
        entry_of(request).error = told.logged
    if told.logged != told.message:  # also where there is no line for each request
        _LOG.error("%s: %s", entry_of(request).request_id, told.logged)
    return answer_of(request, told)


async def _gone(request: Request, error: Exception) -> Response:
    return Response(status_code=499)  # for the log, as nginx has it: no one reads the answer


async def _no_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    where = f"{request.method} {request.url.path}"
    if error.status_code == 404:
        hint = ": write it without the slash at its end" if _has_a_slash_too_many(request) else ""
        told = ApiError(404, f"there is no {where}{hint}", code="unknown_url")
    elif error.status_code == 405:
        told = ApiError(405, f"{where} is not possible", code="method_not_allowed")
    else:
        told = ApiError(error.status_code, str(error.detail))
    told.headers.update(error.headers or {})
    return answer_of(request, told)


def _has_a_slash_too_many(request: Request) -> bool:
    path = request.url.path.rstrip("/")
    scope = {**request.scope, "path": path}
    is_known = any(route.matches(scope)[0] is not Match.NONE for route in request.app.routes)
    return path != request.url.path and is_known


async def _not_valid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"][1:]))
    return answer_of(request, invalid(place or None, f"{place}: {first['msg']}"))


async def _failed(request: Request, error: Exception) -> Response:
    return answer_of(request, internal_error())  # uvicorn writes the error to the log
