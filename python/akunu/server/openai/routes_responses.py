"""POST /v1/responses and /v1/responses/input_tokens: OpenAI's newer form of a conversation."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from akunu.model import Model
from akunu.server.fields.table import request_schema
from akunu.server.http.json_body import JsonResponse, read_body
from akunu.server.openai.responses_answer import ResponseAnswer
from akunu.server.openai.responses_fields import RESPONSES_FIELDS, response_request
from akunu.server.routes.described import body_of
from akunu.server.served_model import ServedModel
from akunu.server.state import state_of
from akunu.server.text_request import generation_of, n_prompt_tokens
from akunu.text.async_text_stream import AsyncTextStream

router = APIRouter(tags=["responses"])
_BODY = body_of(request_schema(RESPONSES_FIELDS, required=["input"]))


@router.post(
    "/responses",
    summary="A model's response to a conversation",
    response_model=None,
    openapi_extra=_BODY,
)
async def responses(request: Request) -> Response:
    """Answer whole, or as a stream of events. Nothing is stored."""
    wanted = await read_body(request, response_request)

    def begin(model: Model) -> AsyncTextStream:
        return wanted.asked.chat(model, state_of(request).settings)

    def dialect(served: ServedModel) -> ResponseAnswer:
        answer = ResponseAnswer(
            wanted.echoed, has_logprobs=wanted.has_logprobs, namespaces=wanted.namespaces
        )
        answer.model = served.name
        return answer

    return generation_of(request, wanted.asked, begin, dialect, prompt="input", can_go_on=True)


@router.post(
    "/responses/input_tokens",
    summary="How many tokens a conversation's prompt has",
    response_model=None,
    openapi_extra=_BODY,
)
async def input_tokens(request: Request) -> Response:
    """Count without writing anything; the prompt may be longer than the context."""
    asked = (await read_body(request, response_request)).asked
    n_tokens = await n_prompt_tokens(request, asked, prompt="input")
    counted = {"object": "response.input_tokens", "input_tokens": n_tokens}
    return JsonResponse(counted, headers=asked.headers)
