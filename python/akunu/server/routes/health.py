"""GET /health and /ready: for monitoring. They need no key."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from akunu.server.http.errors import ApiError
from akunu.server.http.json_body import JsonResponse
from akunu.server.state import state_of

root_router = APIRouter(tags=["health"])


@root_router.get("/health", summary="Whether the server runs", response_model=None)
async def health(request: Request) -> Response:
    """Say that it lives."""
    return JsonResponse({"status": "ok"})


@root_router.get("/ready", summary="Whether the server accepts requests", response_model=None)
async def ready(request: Request) -> Response:
    """Say that it takes requests, or 503 while it starts or stops."""
    state = state_of(request)
    if not state.is_ready:
        raise ApiError(503, "the server is starting or stopping", code="not_ready")
    return JsonResponse({"status": "ok"})
