"""POST /v1/chat/completions."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from akunu.async_text_stream import AsyncTextStream
from akunu.model import Model
from akunu.server.asked import generation_of
from akunu.server.fields import request_schema
from akunu.server.json_body import json_object
from akunu.server.models import ServedModel
from akunu.server.openai_chat import CHAT_FIELDS, chat_request
from akunu.server.openai_chat_answer import ChatAnswer
from akunu.server.routes.described import body_of
from akunu.server.state import state_of

router = APIRouter(tags=["chat"])


@router.post(
    "/chat/completions",
    summary="A model's reply to a conversation",
    response_model=None,
    openapi_extra=body_of(request_schema(CHAT_FIELDS, required=["messages"])),
)
async def chat_completions(request: Request) -> Response:
    """Answer whole, or as a stream of events."""
    settings = state_of(request).settings
    wanted = chat_request(await json_object(request), settings)

    def begin(model: Model) -> list[AsyncTextStream]:
        return wanted.begin(model, settings)

    def dialect(served: ServedModel) -> ChatAnswer:
        return ChatAnswer(
            served.name,
            includes_usage=wanted.includes_usage,
            has_logprobs=wanted.has_logprobs,
            is_legacy=wanted.is_legacy,
            reasoning_field=settings.reasoning_field,
        )

    return generation_of(request, wanted.asked, begin, dialect)
