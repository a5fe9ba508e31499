"""POST /v1/rerank and /rerank in Jina's and TEI's shapes, /v2/rerank in Cohere's."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from akunu.server.fields.table import ignored_header, read
from akunu.server.http.errors import invalid
from akunu.server.http.json_body import JsonResponse, json_object
from akunu.server.reranking import (
    RERANK_FIELDS,
    as_cohere,
    as_jina,
    as_tei,
    ranking_of,
    rerank_request,
)
from akunu.server.routes.described import body_of
from akunu.server.state import state_of

router = APIRouter(tags=["reranking"])
root_router = APIRouter(prefix="/v2", tags=["reranking"])


@router.post(
    "/rerank",
    summary="Documents ranked by a query",
    response_model=None,
    openapi_extra=body_of(RERANK_FIELDS, required=["query"]),
)
async def rerank(request: Request) -> Response:
    """Return the documents, best first; the answer to `texts` is a list, as TEI has it."""
    body = await json_object(request)
    is_tei = body.get("texts") is not None
    if is_tei and body.get("documents") is not None:
        raise invalid("texts", "documents and texts mean the same: send one of them")
    return await _answer(request, body, "tei" if is_tei else "jina")


@root_router.post(
    "/rerank",
    summary="Documents ranked by a query, in Cohere's form",
    response_model=None,
    openapi_extra=body_of(RERANK_FIELDS, required=["query", "documents"]),
)
async def rerank_of_cohere(request: Request) -> Response:
    """Return the documents, best first."""
    return await _answer(request, await json_object(request), "cohere")


async def _answer(request: Request, body: dict[str, Any], shape: str) -> Response:
    found = read(RERANK_FIELDS, body)
    asked = rerank_request(found.options, returns=shape == "jina")
    async with state_of(request).models.use(found.options.get("model")) as (served, model):
        ranking = await ranking_of(model, asked)
    if shape == "tei":
        answer: Any = as_tei(ranking, asked)
    elif shape == "cohere":
        answer = as_cohere(ranking, asked)
    else:
        answer = as_jina(ranking, asked, served.name)
    return JsonResponse(answer, headers=ignored_header(found.ignored))
