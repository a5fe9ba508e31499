"""POST /v1/responses and /v1/responses/input_tokens: OpenAI's newer form of a conversation."""

from __future__ import annotations

from functools import partial

from fastapi import APIRouter, Request
from starlette.responses import Response

from akunu.server.answered import ToRequest, answer_to, counted
from akunu.server.http.json_body import JsonResponse, read_body
from akunu.server.openai.responses_fields import RESPONSES_FIELDS, response_request
from akunu.server.routes.described import body_of
from akunu.server.state import state_of
from akunu.server.stored.background import backgrounds_of
from akunu.server.stored.responses import StoredResponses

router = APIRouter(tags=["responses"])
_BODY = body_of(RESPONSES_FIELDS, required=["input"])


@router.post(
    "/responses",
    summary="A model's response to a conversation",
    response_model=None,
    openapi_extra=_BODY,
)
async def responses(request: Request) -> Response:
    """Answer whole, or as a stream of events; the response is stored unless `store` is false."""
    read = _reader(request)
    settings = state_of(request).settings
    body, wanted = await read_body(request, lambda body: (body, read(body, settings)))
    if body.get("background"):
        return await backgrounds_of(request).begin(request, body, wanted)
    return answer_to(request, wanted, can_go_on=True)


@router.post(
    "/responses/input_tokens",
    summary="Count the tokens of a conversation's prompt",
    response_model=None,
    openapi_extra=_BODY,
)
async def input_tokens(request: Request) -> Response:
    """Count without writing anything; the prompt may be longer than the context."""
    n_tokens, headers = await counted(request, _reader(request))
    told = {"object": "response.input_tokens", "input_tokens": n_tokens}
    return JsonResponse(told, headers=headers)


def _reader(request: Request) -> ToRequest:
    return partial(response_request, stored=StoredResponses.of(request))
