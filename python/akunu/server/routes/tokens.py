"""POST /v1/tokenize, /v1/detokenize and /v1/apply-template: what a model sees of a text."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from akunu.model import Model
from akunu.server.fields.common import model_name
from akunu.server.fields.table import (
    Field,
    checked,
    flag,
    honoured,
    ignored_header,
    read,
    table_of,
    to,
)
from akunu.server.http.errors import api_error, invalid
from akunu.server.http.json_body import JsonResponse, json_object, read_body
from akunu.server.openai.chat_fields import CHAT_FIELDS, chat_request
from akunu.server.prompts import prompt_of
from akunu.server.routes.described import body_of
from akunu.server.state import state_of

router = APIRouter(tags=["tokens"])


def _text(name: str, value: Any) -> Mapping[str, Any]:
    return {"text": checked(name, value, str)}


_MOST_TOKENS: Final = 1 << 18  # the text of more takes seconds
_ADDS: Final = "add control tokens such as BOS to every text; default: to prompt only"
_MODEL: Final = honoured("model", "string", model_name)
TOKENIZE_FIELDS: Final[Mapping[str, Field]] = table_of(
    [
        _MODEL,
        honoured("content", "string", _text, "the text, in llama.cpp's form"),
        honoured("prompt", "string", _text, "the text, in vLLM's form"),
        honoured("text", "string", _text, "the text"),
        honoured("add_special", "boolean", flag("add_special"), _ADDS),
        honoured("add_special_tokens", "boolean", flag("add_special"), "the same, in vLLM's form"),
        honoured(
            "parse_special",
            "boolean",
            flag("parse_special"),
            "read names of control tokens as these tokens",
        ),
        honoured("with_pieces", "boolean", flag("with_pieces"), "return each token with its text"),
        honoured(
            "return_token_strs",
            "boolean",
            flag("with_strings"),
            "return the vocabulary's entries in token_strs",
        ),
    ]
)
DETOKENIZE_FIELDS: Final[Mapping[str, Field]] = table_of(
    [
        _MODEL,
        honoured(
            "tokens",
            {"type": "array", "items": {"type": "integer"}},
            to("tokens"),
            "the ids to convert",
        ),
    ]
)


@router.post(
    "/tokenize",
    summary="The tokens of a text",
    response_model=None,
    openapi_extra=body_of(TOKENIZE_FIELDS),
)
async def tokenize(request: Request) -> Response:
    """Return ids; BOS and its like are added to a `prompt`, and elsewhere on request."""
    body = await json_object(request)
    found = read(TOKENIZE_FIELDS, body)
    options = found.options
    if "text" not in options:
        raise invalid("content", "content is missing", "missing_required_parameter")
    name = found.names["text"]
    add_special = options.get("add_special", name == "prompt")
    parse_special = options.get("parse_special", False)
    with_pieces, with_strings = options.get("with_pieces"), options.get("with_strings")

    def work(model: Model) -> dict[str, Any]:
        tokenizer = model.tokenizer
        ids = tokenizer.encode(
            options["text"], add_special=add_special, parse_special=parse_special
        )
        if len(ids) > _MOST_TOKENS and (with_pieces or with_strings):
            raise invalid(
                name,
                f"{name} has {len(ids)} tokens; at most {_MOST_TOKENS} are converted",
            )
        answer = {"tokens": ids, "count": len(ids), "max_model_len": model.context}
        if with_strings:
            answer["token_strs"] = [tokenizer.token_text(each) for each in ids]
        if with_pieces:
            pieces = [tokenizer.token_bytes(each) for each in ids]
            answer["tokens"] = [
                {"id": each, "piece": _piece(spelled)}
                for each, spelled in zip(ids, pieces, strict=True)
            ]
        return answer

    headers = ignored_header(found.ignored)
    return await _answer(request, options.get("model"), work, headers, name)


@router.post(
    "/detokenize",
    summary="The text of tokens",
    response_model=None,
    openapi_extra=body_of(DETOKENIZE_FIELDS, required=["tokens"]),
)
async def detokenize(request: Request) -> Response:
    """Return the text, by the names that llama.cpp and vLLM have for it."""
    found = read(DETOKENIZE_FIELDS, await json_object(request))
    if "tokens" not in found.options:
        raise invalid("tokens", "tokens is missing", "missing_required_parameter")
    tokens = checked("tokens", found.options["tokens"], list)
    if len(tokens) > _MOST_TOKENS:
        raise invalid("tokens", f"tokens has {len(tokens)} ids; at most {_MOST_TOKENS} are read")

    def work(model: Model) -> dict[str, Any]:
        text = model.tokenizer.decode(tokens)
        return {"content": text, "prompt": text}

    headers = ignored_header(found.ignored)
    return await _answer(request, found.options.get("model"), work, headers, "tokens")


@router.post(
    "/apply-template",
    summary="The prompt of a conversation",
    response_model=None,
    openapi_extra=body_of(CHAT_FIELDS, required=["messages"]),
)
async def apply_template(request: Request) -> Response:
    """Return what a model would be passed, for the same request as /v1/chat/completions."""
    settings = state_of(request).settings
    asked = await read_body(request, lambda body: chat_request(body, settings))
    async with state_of(request).models.use(asked.model) as (served, model):
        try:
            ids = await prompt_of(model, asked.fitted(served, model))
        except Exception as error:
            raise asked.failure(error) from error

        def work(model: Model) -> dict[str, Any]:
            return {"prompt": model.tokenizer.decode(ids), "tokens": ids, "count": len(ids)}

        return await _answer(request, asked.model, work, asked.headers, "messages")


async def _answer(
    request: Request,
    name: str | None,
    work: Callable[[Model], dict[str, Any]],
    headers: Mapping[str, str],
    prompt: str,
) -> Response:
    """Do the work in a thread, as long texts take a while, and answer with what it gives."""
    async with state_of(request).models.use(name) as (_, model):
        loop = asyncio.get_running_loop()
        try:
            # The answer is written there, too: it may have millions of tokens.
            return await loop.run_in_executor(
                None, lambda: JsonResponse(work(model), headers=headers)
            )
        except Exception as error:
            raise api_error(error, prompt=prompt) from error


def _piece(spelled: bytes) -> str | list[int]:
    """Return a token's text, or its bytes where they are not UTF-8, as llama.cpp's server does."""
    try:
        return spelled.decode()
    except UnicodeDecodeError:
        return list(spelled)
