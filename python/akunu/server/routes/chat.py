"""POST /v1/chat/completions."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from akunu.async_text_stream import AsyncTextStream
from akunu.model import Model
from akunu.server.fields import ignored_header, request_schema
from akunu.server.generation import Generation
from akunu.server.json_body import json_object
from akunu.server.models import ServedModel
from akunu.server.openai_chat import CHAT_FIELDS, chat_request
from akunu.server.openai_chat_answer import ChatAnswer
from akunu.server.routes.described import body_of
from akunu.server.state import generation_arguments, state_of

router = APIRouter(tags=["chat"])


@router.post(
    "/chat/completions",
    summary="A model's reply to a conversation",
    response_model=None,
    openapi_extra=body_of(request_schema(CHAT_FIELDS, required=["messages"])),
)
async def chat_completions(request: Request) -> Response:
    """Answer whole, or as a stream of events."""
    state = state_of(request)
    asked = chat_request(await json_object(request), state.settings)

    def begin(served: ServedModel, model: Model) -> list[AsyncTextStream]:
        return asked.begin(model, state.settings)

    def dialect(served: ServedModel) -> ChatAnswer:
        return ChatAnswer(
            served.name,
            includes_usage=asked.includes_usage,
            has_logprobs=asked.has_logprobs,
            is_legacy=asked.is_legacy,
            reasoning_field=state.settings.reasoning_field,
        )

    return Generation(
        state.models,
        asked.model,
        begin,
        dialect,
        is_stream=asked.is_stream,
        names=asked.names,
        headers=ignored_header(asked.ignored),
        **generation_arguments(request),
    )
