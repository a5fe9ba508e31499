"""POST /v1/completions and /v1/fim/completions."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from akunu.server.answered import answered
from akunu.server.openai.completions_fields import COMPLETION_FIELDS, completion_request
from akunu.server.openai.fim_fields import FIM_FIELDS, fim_request
from akunu.server.routes.described import body_of

router = APIRouter(tags=["completions"])


@router.post(
    "/completions",
    summary="Completions of prompts",
    response_model=None,
    openapi_extra=body_of(COMPLETION_FIELDS, required=["prompt"]),
)
async def completions(request: Request) -> Response:
    """Answer whole, or as a stream of events."""
    return await answered(request, completion_request, can_go_on=True)


@router.post(
    "/fim/completions",
    summary="Fill in the middle, in Mistral's form",
    response_model=None,
    openapi_extra=body_of(FIM_FIELDS, required=["prompt"]),
)
async def fim_completions(request: Request) -> Response:
    """Answer in the form of a chat, whole or as a stream; refused where no model fills in."""
    return await answered(request, fim_request, can_go_on=True)
