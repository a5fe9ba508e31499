"""POST /v1/chat/completions, and /v1/chat/completions/input_tokens."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from akunu.model import Model
from akunu.server.fields.table import request_schema
from akunu.server.http.json_body import JsonResponse, read_body
from akunu.server.openai.chat_answer import ChatAnswer
from akunu.server.openai.chat_fields import CHAT_FIELDS, chat_request
from akunu.server.routes.described import body_of
from akunu.server.served_model import ServedModel
from akunu.server.state import state_of
from akunu.server.text_request import generation_of, n_prompt_tokens
from akunu.text.async_text_stream import AsyncTextStream

router = APIRouter(tags=["chat"])
_BODY = body_of(request_schema(CHAT_FIELDS, required=["messages"]))


@router.post(
    "/chat/completions",
    summary="A model's reply to a conversation",
    response_model=None,
    openapi_extra=_BODY,
)
async def chat_completions(request: Request) -> Response:
    """Answer whole, or as a stream of events."""
    settings = state_of(request).settings
    wanted = await read_body(request, lambda body: chat_request(body, settings))

    def begin(model: Model) -> list[AsyncTextStream]:
        return wanted.begin(model, settings)

    def dialect(served: ServedModel) -> ChatAnswer:
        return ChatAnswer(
            served.name,
            includes_usage=wanted.includes_usage,
            has_logprobs=wanted.has_logprobs,
            has_timings=wanted.has_timings,
            is_legacy=wanted.is_legacy,
            reasoning_field=settings.reasoning_field,
        )

    return generation_of(request, wanted.asked, begin, dialect, can_go_on=True)


@router.post(
    "/chat/completions/input_tokens",
    summary="How many tokens a conversation's prompt has, as llama.cpp has it",
    response_model=None,
    openapi_extra=_BODY,
)
async def input_tokens(request: Request) -> Response:
    """Count without writing anything; the prompt may be longer than the context."""
    settings = state_of(request).settings
    asked = (await read_body(request, lambda body: chat_request(body, settings))).asked
    n_tokens = await n_prompt_tokens(request, asked)
    return JsonResponse({"input_tokens": n_tokens}, headers=asked.headers)
