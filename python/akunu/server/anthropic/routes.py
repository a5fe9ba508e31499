"""POST /v1/messages and /v1/messages/count_tokens: Anthropic's."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from akunu.model import Model
from akunu.server.anthropic.answer import MessageAnswer
from akunu.server.anthropic.fields import MESSAGES_FIELDS, messages_request
from akunu.server.fields.table import request_schema
from akunu.server.http.json_body import JsonResponse, read_body
from akunu.server.routes.described import body_of
from akunu.server.served_model import ServedModel
from akunu.server.state import entry_of, state_of
from akunu.server.text_request import generation_of, n_prompt_tokens
from akunu.text.async_text_stream import AsyncTextStream

router = APIRouter(tags=["messages"])
_BODY = body_of(request_schema(MESSAGES_FIELDS, required=["messages"]))


@router.post(
    "/messages",
    summary="A model's reply to a conversation, as Anthropic has it",
    response_model=None,
    openapi_extra=_BODY,
)
async def messages(request: Request) -> Response:
    """Answer whole, or as a stream of events."""
    asked = await read_body(request, messages_request)
    answer = MessageAnswer(entry_of(request).request_id)

    def begin(model: Model) -> AsyncTextStream:
        answer.stream = asked.chat(model, state_of(request).settings)
        return answer.stream

    def dialect(served: ServedModel) -> MessageAnswer:
        answer.model = served.name
        return answer

    return generation_of(request, asked, begin, dialect)


@router.post(
    "/messages/count_tokens",
    summary="How many tokens a conversation's prompt has",
    response_model=None,
    openapi_extra=_BODY,
)
async def count_tokens(request: Request) -> Response:
    """Count without writing anything; the prompt may be longer than the context."""
    asked = await read_body(request, messages_request)
    counted = {"input_tokens": await n_prompt_tokens(request, asked)}
    return JsonResponse(counted, headers=asked.headers)
