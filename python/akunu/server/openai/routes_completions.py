"""POST /v1/completions and /v1/fim/completions."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from akunu.model import Model
from akunu.server.fields.table import request_schema
from akunu.server.http.json_body import read_body
from akunu.server.openai.chat_answer import ChatAnswer
from akunu.server.openai.completions_answer import CompletionAnswer
from akunu.server.openai.completions_fields import COMPLETION_FIELDS, completion_request
from akunu.server.openai.fim_fields import FIM_FIELDS, fim_request
from akunu.server.routes.described import body_of
from akunu.server.served_model import ServedModel
from akunu.server.state import state_of
from akunu.server.text_request import generation_of
from akunu.text.async_text_stream import AsyncTextStream

router = APIRouter(tags=["completions"])


@router.post(
    "/completions",
    summary="Texts that go on from prompts",
    response_model=None,
    openapi_extra=body_of(request_schema(COMPLETION_FIELDS, required=["prompt"])),
)
async def completions(request: Request) -> Response:
    """Answer whole, or as a stream of events."""
    settings = state_of(request).settings
    wanted = await read_body(request, lambda body: completion_request(body, settings))

    def begin(model: Model) -> list[AsyncTextStream]:
        return wanted.begin(model, settings)

    def dialect(served: ServedModel) -> CompletionAnswer:
        assert served.text_model is not None, "it is in use"
        return CompletionAnswer(served.name, wanted, served.text_model.tokenizer)

    return generation_of(
        request, wanted.asked, begin, dialect, prompt=wanted.prompt_name, can_go_on=True
    )


@router.post(
    "/fim/completions",
    summary="Code between two others, as Mistral has it",
    response_model=None,
    openapi_extra=body_of(request_schema(FIM_FIELDS, required=["prompt"])),
)
async def fim_completions(request: Request) -> Response:
    """Answer in the form of a chat, whole or as a stream; refused where no model fills in."""
    settings = state_of(request).settings
    asked, suffix, usage_follows = await read_body(request, fim_request)

    def begin(model: Model) -> AsyncTextStream:
        asked.fill_in(model, settings, suffix)
        return asked.generate(model, settings)

    def dialect(served: ServedModel) -> ChatAnswer:
        return ChatAnswer(served.name, includes_usage=usage_follows)

    return generation_of(request, asked, begin, dialect, prompt="prompt", can_go_on=True)
