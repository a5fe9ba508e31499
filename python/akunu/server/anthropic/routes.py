"""POST /v1/messages and /v1/messages/count_tokens: Anthropic's."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from akunu.server.answered import answered, counted
from akunu.server.anthropic.fields import MESSAGES_FIELDS, messages_request
from akunu.server.http.json_body import JsonResponse
from akunu.server.routes.described import body_of

router = APIRouter(tags=["messages"])
_BODY = body_of(MESSAGES_FIELDS, required=["messages"])


@router.post(
    "/messages",
    summary="A reply to a conversation, in Anthropic's form",
    response_model=None,
    openapi_extra=_BODY,
)
async def messages(request: Request) -> Response:
    """Answer whole, or as a stream of events."""
    return await answered(request, messages_request)


@router.post(
    "/messages/count_tokens",
    summary="Count the tokens of a conversation's prompt",
    response_model=None,
    openapi_extra=_BODY,
)
async def count_tokens(request: Request) -> Response:
    """Count without writing anything; the prompt may be longer than the context."""
    n_tokens, headers = await counted(request, messages_request)
    return JsonResponse({"input_tokens": n_tokens}, headers=headers)
