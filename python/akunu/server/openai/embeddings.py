"""Requests for vectors: their fields, OpenAI's and Ollama's, and their answers."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from akunu.embedding.embed import EmbeddingJob
from akunu.model import Model
from akunu.server.fields.common import integer_in, model_name
from akunu.server.fields.keep_alive import KEEP_ALIVE
from akunu.server.fields.table import Field, checked, flag, honoured, table_of, to, without_effect
from akunu.server.http.errors import api_error, invalid

_IDS: Final = {"type": "array", "items": {"type": "integer"}}
_INPUT: Final = {
    "oneOf": [
        {"type": "string"},
        {"type": "array", "items": {"oneOf": [{"type": "string"}, {"type": "integer"}, _IDS]}},
    ]
}
_MOST_DIMENSIONS: Final = 2**20  # what the model has is looked at later


def _encoding(name: str, value: Any) -> Mapping[str, Any]:
    if value not in ("float", "base64"):
        raise invalid(name, f"{name} must be 'float' or 'base64'")
    return {"encoding": value}


def _dimensions(name: str, value: Any) -> Mapping[str, Any]:
    return {"dimensions": integer_in(name, value, 1, _MOST_DIMENSIONS)}


EMBEDDINGS_FIELDS: Final[Mapping[str, Field]] = table_of(
    [
        honoured("model", "string", model_name),
        honoured("input", _INPUT, to("input"), "a text or its token ids, or a list of them"),
        honoured(
            "encoding_format",
            {"enum": ["float", "base64"]},
            _encoding,
            "numbers, or base64 of float32 in little-endian order",
        ),
        honoured("dimensions", "integer", _dimensions, "the number of dimensions of each vector"),
        honoured("truncate", "boolean", flag("truncate"), "cut long texts at the end"),
        without_effect("user", "string", "requests are not tied to users"),
    ]
)
_OLLAMA_FIELDS: Final = (
    honoured("model", "string", lambda name, value: {"model": checked(name, value, str)}),
    without_effect("options", "object", "the server's settings apply"),
    KEEP_ALIVE,
)
OLLAMA_EMBED_FIELDS: Final[Mapping[str, Field]] = table_of(
    [
        *_OLLAMA_FIELDS,
        honoured("input", _INPUT, to("input"), "a text, or a list of texts; none loads the model"),
        honoured("dimensions", "integer", _dimensions, "the number of dimensions of each vector"),
        honoured("truncate", "boolean", flag("truncate"), "cut long texts; default: true"),
    ]
)
OLLAMA_EMBEDDINGS_FIELDS: Final[Mapping[str, Field]] = table_of(
    [
        *_OLLAMA_FIELDS,
        honoured(
            "prompt",
            "string",
            lambda name, value: {"prompt": checked(name, value, str)},
            "the text; none loads the model",
        ),
    ]
)


@dataclass(frozen=True, slots=True)
class Embedded:
    """The vectors of a request's texts."""

    vectors: NDArray[np.float32]
    n_tokens: int


def texts_of(value: Any) -> list[str | list[int]]:
    """Return the texts of `input`, each a text or token ids; ApiError for anything else."""
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list) or not value:
        raise invalid("input", "input must be a text, token ids, or a list of them, not empty")
    if all(_is_id(each) for each in value):
        return [value]
    for index, each in enumerate(value):
        is_ids = isinstance(each, list) and each and all(_is_id(item) for item in each)
        if not isinstance(each, str) and not is_ids:
            raise invalid("input", f"input[{index}] must be a text, or a list of token ids")
    return value


async def embedded(
    model: Model,
    texts: Sequence[str | list[int]],
    *,
    dimensions: int | None = None,
    truncate: bool = False,
    normalize: bool | None = None,
    field: str = "input",
) -> Embedded:
    """Return the vectors; ApiError for texts that do not fit and ids that are not tokens.

    `field`: the request's, in which the texts are.
    """
    try:
        job = model._embedding_job(
            texts,
            (None, None),
            None,
            (lambda index: f"input[{index}]") if field == "input" else (lambda _: field),
            pooling=None,
            normalize=normalize,
            dimensions=dimensions,
            truncate=truncate,
            precision="float32",
            batch_rows=None,
            priority=0,
        )
        loop = asyncio.get_running_loop()
        ids = await loop.run_in_executor(None, partial(_prepared, model, job, texts, field))
        await job.work_async(model._done, ids)
    except Exception as error:
        raise api_error(error, names={"dimensions": "dimensions"}, prompt=field) from error
    return Embedded(cast("NDArray[np.float32]", job.result), job.n_tokens)


def _prepared(
    model: Model, job: EmbeddingJob, texts: Sequence[str | list[int]], field: str
) -> list[NDArray[np.uint32]]:
    vocab_size = model.config.vocab_size
    for index, text in enumerate(texts):
        ids = [] if isinstance(text, str) else text
        if bad := next((each for each in ids if not 0 <= each < vocab_size), None):
            raise invalid(
                field,
                f"{field}[{index}] has the token id {bad}, and this model has {vocab_size} tokens. "
                "Ids of another model's tokenizer do not fit: send texts (LangChain's "
                "OpenAIEmbeddings does with check_embedding_ctx_length=False)",
            )
    return list(job.prepared())


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def as_openai(found: Embedded, model: str, encoding: str) -> dict[str, Any]:
    """Return OpenAI's list of vectors."""
    data = [
        {"object": "embedding", "index": index, "embedding": _encoded(vector, encoding)}
        for index, vector in enumerate(found.vectors)
    ]
    usage = {"prompt_tokens": found.n_tokens, "total_tokens": found.n_tokens}
    return {"object": "list", "data": data, "model": model, "usage": usage}


def _encoded(vector: NDArray[np.float32], encoding: str) -> str | list[float]:
    if encoding == "base64":
        return base64.b64encode(vector.astype("<f4").tobytes()).decode()
    return [float(each) for each in vector]
