"""POST /v1/chat/completions, and /v1/chat/completions/input_tokens."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from akunu.server.answered import answered, counted
from akunu.server.http.json_body import JsonResponse
from akunu.server.openai.chat_fields import CHAT_FIELDS, chat_request
from akunu.server.routes.described import body_of

router = APIRouter(tags=["chat"])
_BODY = body_of(CHAT_FIELDS, required=["messages"])


@router.post(
    "/chat/completions",
    summary="A model's reply to a conversation",
    response_model=None,
    openapi_extra=_BODY,
)
async def chat_completions(request: Request) -> Response:
    """Answer whole, or as a stream of events."""
    return await answered(request, chat_request, can_go_on=True)


@router.post(
    "/chat/completions/input_tokens",
    summary="Count the tokens of a conversation's prompt, in llama.cpp's form",
    response_model=None,
    openapi_extra=_BODY,
)
async def input_tokens(request: Request) -> Response:
    """Count without writing anything; the prompt may be longer than the context."""
    n_tokens, headers = await counted(request, chat_request)
    return JsonResponse({"input_tokens": n_tokens}, headers=headers)
