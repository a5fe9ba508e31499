"""/v1/rerank, /rerank and /v2/rerank, of a small random cross-encoder."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from gguf import PoolingType
from running_server import running

from lines import each_line

sys.path.append(str(Path(__file__).parents[1] / "models"))

import encoder_models as em

import akunu
from akunu.server import ServedModels

SPEC = em.EncoderSpec(positions=64)
QUERY = "a cat"
DOCUMENTS = ["dogs", "cat a b", "b c d"]


@pytest.fixture(scope="module")
def ranker_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(1)
    more = {"cls.output.weight": rng.standard_normal((1, SPEC.dim)).astype(np.float32)}
    path = tmp_path_factory.mktemp("ranker") / "ranker.gguf"
    tensors = em.random_tensors(SPEC)
    return em.write_gguf(path, SPEC, tensors, pooling=PoolingType.RANK, more=more)


@pytest.fixture(scope="module")
def client(ranker_file: Path) -> Iterator[httpx.Client]:
    with running(ServedModels({"ranker": str(ranker_file), "ember": "ember"})) as client:
        yield client


@pytest.fixture(scope="module")
def expected(ranker_file: Path) -> list[akunu.Ranked]:
    with akunu.load(ranker_file) as model:
        return model.rank(QUERY, DOCUMENTS)


def ask(client: httpx.Client, path: str, **body: Any) -> Any:
    answer = client.post(path, json={"model": "ranker", "query": QUERY, **body})
    assert answer.status_code == 200, answer.text
    assert "x-akunu-ignored" not in answer.headers
    return answer.json()


@pytest.mark.parametrize("path", ["/v1/rerank", "/rerank"])
def test_jinas_shape_has_results_with_their_documents(client, expected, path) -> None:
    answer = ask(client, path, documents=DOCUMENTS)
    assert answer["model"] == "ranker"
    assert answer["object"] == "list"
    assert answer["results"] == [
        {"index": each.index, "relevance_score": each.score, "document": {"text": each.document}}
        for each in expected
    ]
    # [CLS] a cat [SEP] ... [SEP], and 2 + 3 + 3 tokens of documents
    assert answer["usage"] == {"prompt_tokens": 3 * 5 + 8, "total_tokens": 3 * 5 + 8}


def test_only_the_best_come_and_without_documents_where_that_is_asked(client, expected) -> None:
    objects = [{"text": text} for text in DOCUMENTS]
    answer = ask(client, "/v1/rerank", documents=objects, top_n=2, return_documents=False)
    assert answer["results"] == [
        {"index": each.index, "relevance_score": each.score} for each in expected[:2]
    ]


def test_coheres_shape(client, expected) -> None:
    answer = ask(client, "/v2/rerank", documents=DOCUMENTS, top_n=1)
    assert answer["results"] == [{"index": expected[0].index, "relevance_score": expected[0].score}]
    assert isinstance(answer["id"], str)
    assert answer["meta"]["api_version"] == {"version": "2"}


def test_teis_shape_is_a_list_whose_scores_may_be_raw(client, expected, ranker_file) -> None:
    answer = ask(client, "/rerank", texts=DOCUMENTS, return_text=True)
    assert answer == [
        {"index": each.index, "score": each.score, "text": each.document} for each in expected
    ]
    raw = ask(client, "/rerank", texts=DOCUMENTS, raw_scores=True)
    with akunu.load(ranker_file) as model:
        logits = model.rank(QUERY, DOCUMENTS, normalize=False)
    assert raw == [{"index": each.index, "score": each.score} for each in logits]


def test_a_long_document_is_cut_where_that_is_asked(client) -> None:
    long = "a " * 70
    cut = ask(client, "/v1/rerank", documents=[long], truncate=True)
    fits = ask(client, "/v1/rerank", documents=["a " * 59])
    assert cut["results"][0]["relevance_score"] == fits["results"][0]["relevance_score"]


@each_line(
    ("body", "param", "message"),
    [
        ({"documents": ["a"]}, "query", "query is missing"),
        ({"query": "a"}, "documents", "documents is missing"),
        ({"query": "a", "documents": []}, "documents", "not empty"),
        ({"query": "a", "documents": ["b", 5]}, "documents", r"documents\[1\] must be a text"),
        ({"query": 5, "documents": ["b"]}, "query", "query"),
        ({"query": "a", "documents": ["b"], "top_n": 0}, "top_n", "top_n"),
        ({"query": "a", "documents": ["b"], "texts": ["c"]}, "texts", "mean the same"),
        ({"query": "a", "documents": ["b"], "rank_fields": ["x"]}, "rank_fields", "is its text"),
        ({"query": "a", "documents": ["b", "a " * 70]}, "documents", r"documents\[1\].*takes 64"),
        ({"query": "a", "documents": ["b"], "model": "bert"}, "model", "bert"),
        (
            {"query": "a", "documents": ["b"], "truncation_direction": "left"},
            "truncation_direction",
            "end",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_name(client, body, param, message) -> None:
    answer = client.post("/v1/rerank", json={"model": "ranker", **body})
    assert answer.status_code in (400, 404)
    error = answer.json()["error"]
    assert error["param"] == param
    assert re.search(message, error["message"]), error["message"]
