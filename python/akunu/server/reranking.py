"""Requests for rankings: Jina's, Cohere's and TEI's fields and answers."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from akunu.embedding.reranking import Ranked, sigmoid
from akunu.model import Model
from akunu.server.fields.common import integer_in, model_name
from akunu.server.fields.table import (
    Field,
    checked,
    flag,
    honoured,
    refused,
    table_of,
    without_effect,
)
from akunu.server.http.errors import api_error, invalid

_MOST: Final = 2**31 - 1
_DOCUMENTS: Final = {
    "type": "array",
    "items": {
        "oneOf": [
            {"type": "string"},
            {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
        ]
    },
}


def _query(name: str, value: Any) -> Mapping[str, Any]:
    return {"query": checked(name, value, str)}


def _documents(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, list) or not value:
        raise invalid(name, f"{name} must be a list of texts, not empty")
    found = []
    for index, each in enumerate(value):
        text = each.get("text") if isinstance(each, dict) else each
        if not isinstance(text, str):
            raise invalid(name, f'{name}[{index}] must be a text, or an object with a "text"')
        found.append(text)
    return {"documents": found}


def _top(name: str, value: Any) -> Mapping[str, Any]:
    return {"top": integer_in(name, value, 1, _MOST)}


def _direction(name: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, str) or value.lower() != "right":
        raise invalid(name, f"{name} must be 'right': documents are cut at their end")
    return {}


_NO_EFFECT: Final = (
    without_effect("user", "string", "requests are not tied to users"),
    without_effect("priority", "integer", "requests are answered in order"),
)
_SHARED: Final = (
    honoured("model", "string", model_name),
    honoured("query", "string", _query, "the query"),
)
_PER_DOCUMENT: Final = "documents are used whole, or cut by truncate"
RERANK_FIELDS: Final[Mapping[str, Field]] = table_of(
    [
        *_SHARED,
        honoured("documents", _DOCUMENTS, _documents, "texts, or objects that have a `text`"),
        honoured(
            "texts",
            _DOCUMENTS,
            _documents,
            "the same for TEI's clients, and asks for a list as the answer",
        ),
        honoured("top_n", "integer", _top, "return only this many documents, the best"),
        honoured("top_k", "integer", _top, "the same"),
        honoured(
            "return_documents",
            "boolean",
            flag("returns"),
            "return the text of each document; default: true, but false for `/v2/rerank` and with "
            "`texts`",
        ),
        honoured("return_text", "boolean", flag("returns"), "the same"),
        honoured(
            "raw_scores",
            "boolean",
            flag("raw"),
            "the model's logits instead of numbers from 0 to 1",
        ),
        honoured(
            "truncate",
            "boolean",
            flag("truncate"),
            "cut long documents at the end; default: an error",
        ),
        honoured("truncation", "boolean", flag("truncate"), "the same"),
        honoured("truncation_direction", {"enum": ["right", "Right"]}, _direction, "the end"),
        refused("max_tokens_per_doc", _PER_DOCUMENT, schema="integer"),
        refused("max_chunks_per_doc", _PER_DOCUMENT, schema="integer"),
        refused("rank_fields", "a document is its text", schema="array"),
        *_NO_EFFECT,
    ]
)


@dataclass(frozen=True, slots=True)
class RerankRequest:
    """What a request for a ranking says."""

    query: str
    documents: Sequence[str]
    top: int | None
    returns: bool
    raw: bool
    truncate: bool


def rerank_request(options: Mapping[str, Any], *, returns: bool) -> RerankRequest:
    """Return what a request says; ApiError where it lacks something. `returns`: the default."""
    for name in ("query", "documents"):
        if name not in options:
            raise invalid(name, f"{name} is missing", "missing_required_parameter")
    return RerankRequest(
        query=options["query"],
        documents=options["documents"],
        top=options.get("top"),
        returns=options.get("returns", returns),
        raw=options.get("raw", False),
        truncate=options.get("truncate", False),
    )


@dataclass(frozen=True, slots=True)
class Ranking:
    """The documents of a request, best first; scores are logits."""

    ranked: Sequence[Ranked]
    n_tokens: int


async def ranking_of(model: Model, asked: RerankRequest) -> Ranking:
    """Return the ranking; ApiError for documents that do not fit and models that do not rank."""
    try:
        job = model._rank_job(
            asked.query,
            asked.documents,
            top_k=asked.top,
            normalize=False,
            instruction=None,
            truncate=asked.truncate,
            priority=0,
            progress=None,
        )
        loop = asyncio.get_running_loop()
        pairs = await loop.run_in_executor(None, lambda: list(job.prepared()))
        await job.work_async(model._done, pairs)
    except Exception as error:
        raise api_error(error, prompt="documents") from error
    return Ranking(job.result, job.n_tokens)


def _results(found: Ranking, asked: RerankRequest) -> list[dict[str, Any]]:
    results = []
    for each in found.ranked:
        score = each.score if asked.raw else sigmoid(each.score)
        result: dict[str, Any] = {"index": each.index, "relevance_score": score}
        if asked.returns:
            result["document"] = {"text": each.document}
        results.append(result)
    return results


def as_jina(found: Ranking, asked: RerankRequest, model: str) -> dict[str, Any]:
    """Return Jina's answer, which llama.cpp and vLLM have too."""
    usage = {"prompt_tokens": found.n_tokens, "total_tokens": found.n_tokens}
    return {"model": model, "object": "list", "usage": usage, "results": _results(found, asked)}


def as_cohere(found: Ranking, asked: RerankRequest) -> dict[str, Any]:
    """Return Cohere's answer."""
    return {
        "id": str(uuid.uuid4()),
        "results": _results(found, asked),
        "meta": {"api_version": {"version": "2"}, "billed_units": {"search_units": 0}},
    }


def as_tei(found: Ranking, asked: RerankRequest) -> list[dict[str, Any]]:
    """Return TEI's answer: a list."""
    answer = []
    for each in found.ranked:
        result: dict[str, Any] = {
            "index": each.index,
            "score": each.score if asked.raw else sigmoid(each.score),
        }
        if asked.returns:
            result["text"] = each.document
        answer.append(result)
    return answer
