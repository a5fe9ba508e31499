"""GET /metrics for Prometheus, and /v1/metrics for everybody else."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import PlainTextResponse, Response

from akunu.server.http.json_body import JsonResponse
from akunu.server.metrics import CONTENT_TYPE
from akunu.server.state import state_of

root_router = APIRouter(tags=["metrics"])


@root_router.get(
    "/metrics",
    summary="Counters, as Prometheus reads them",
    response_class=PlainTextResponse,
)
async def metrics(request: Request) -> Response:
    """Return all counters and histograms."""
    return Response(state_of(request).metrics.text(), media_type=CONTENT_TYPE)


@root_router.get("/v1/metrics", summary="Counters, as JSON", response_model=None)
async def summary(request: Request) -> Response:
    """Return totals, and those of each model."""
    return JsonResponse(state_of(request).metrics.summary())
