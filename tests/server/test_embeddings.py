"""/v1/embeddings and Ollama's /api/embed, of a small random BERT."""

from __future__ import annotations

import base64
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from running_server import running

from lines import each_line

sys.path.append(str(Path(__file__).parents[1] / "models"))

import encoder_models as em

import akunu
from akunu.server import ServedModels

SPEC = em.EncoderSpec(positions=64)
TEXTS = ["a cat", "", "dogs b c"]


@pytest.fixture(scope="module")
def bert_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bert") / "bert.gguf"
    return em.write_gguf(path, SPEC, em.random_tensors(SPEC))


@pytest.fixture(scope="module")
def bert(bert_file: Path) -> Iterator[httpx.Client]:
    with running(ServedModels({"bert": str(bert_file), "ember": "ember"})) as client:
        yield client


@pytest.fixture(scope="module")
def model(bert_file: Path) -> Iterator[akunu.Model]:
    with akunu.load(bert_file) as model:
        yield model


def ask(client: httpx.Client, path: str = "/v1/embeddings", **body: Any) -> dict[str, Any]:
    answer = client.post(path, json={"model": "bert", **body})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_vectors_are_those_of_the_model_and_tokens_are_counted(bert, model) -> None:
    answer = ask(bert, input=TEXTS)
    assert answer["object"] == "list"
    assert answer["model"] == "bert"
    assert [(each["object"], each["index"]) for each in answer["data"]] == [
        ("embedding", 0),
        ("embedding", 1),
        ("embedding", 2),
    ]
    found = np.array([each["embedding"] for each in answer["data"]], np.float32)
    assert (found == model.embed(TEXTS)).all()
    n = sum(len(model.tokenizer.encode(text)) for text in TEXTS)
    assert answer["usage"] == {"prompt_tokens": n, "total_tokens": n}


def test_base64_is_float32_in_little_endian_order(bert, model) -> None:
    (each,) = ask(bert, input="a cat", encoding_format="base64")["data"]
    decoded = np.frombuffer(base64.b64decode(each["embedding"]), "<f4")
    assert (decoded == model.embed("a cat")).all()


def test_token_ids_are_taken_as_they_are(bert, model) -> None:
    ids = [model.tokenizer.encode(text) for text in TEXTS]
    several = ask(bert, input=ids)["data"]
    assert [each["embedding"] for each in several] == model.embed(TEXTS).tolist()
    (one,) = ask(bert, input=ids[0])["data"]
    assert one["embedding"] == several[0]["embedding"]


def test_dimensions(bert, model) -> None:
    (each,) = ask(bert, input="a", dimensions=8)["data"]
    assert each["embedding"] == model.embed("a", dimensions=8).tolist()


@each_line(
    ("body", "param", "message"),
    [
        ({}, "input", "input is missing"),
        ({"input": []}, "input", "not empty"),
        ({"input": ["a", 5]}, "input", r"input\[1\] must be a text, or a list of token ids"),
        ({"input": [[]]}, "input", r"input\[0\] must be a text, or a list of token ids"),
        ({"input": [100000]}, "input", "check_embedding_ctx_length=False"),
        ({"input": "a", "encoding_format": "hex"}, "encoding_format", "'float' or 'base64'"),
        ({"input": "a", "dimensions": 65}, "dimensions", "65"),
        ({"input": ["b", "a " * 70]}, "input", r"input\[1\].*72 tokens.* 64; \"truncate\": true"),
        ({"input": "a", "model": "ember"}, "model", "load an encoder"),
    ],
)
def test_what_makes_no_sense_is_a_400_that_says_so(bert, body, param, message) -> None:
    answer = bert.post("/v1/embeddings", json={"model": "bert", **body})
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["param"] == param
    assert pytest.importorskip("re").search(message, error["message"]), error["message"]


def test_a_long_text_is_cut_where_that_is_asked(bert, model) -> None:
    text = "a " * 70
    (each,) = ask(bert, input=text, truncate=True)["data"]
    assert each["embedding"] == model.embed(text, truncate=True).tolist()


def test_ollama_has_its_own_shape_and_cuts_long_texts(bert, model) -> None:
    answer = ask(bert, "/api/embed", input=["a cat", "a " * 70])
    assert answer["model"] == "bert"
    assert np.array(answer["embeddings"]).tolist() == (
        model.embed(["a cat", "a " * 70], truncate=True).tolist()
    )
    assert answer["prompt_eval_count"] == 4 + 64
    refused = bert.post("/api/embed", json={"model": "bert", "input": "a " * 70, "truncate": False})
    assert refused.status_code == 400


def test_ollamas_older_route_has_one_text_and_does_not_scale_its_vector(bert, model) -> None:
    answer = ask(bert, "/api/embeddings", prompt="a cat", options={"num_ctx": 9})
    assert answer == {"embedding": model.embed("a cat", normalize=False).tolist()}
    refused = bert.post("/api/embeddings", json={"model": "bert", "prompt": "a " * 70})
    assert refused.status_code == 400
    assert refused.json()["error"] == (
        "prompt: the text has 72 tokens, the model takes 64; /api/embed cuts long texts"
    )
    wrong = bert.post("/api/embeddings", json={"model": "bert", "prompt": ["a"]})
    assert wrong.status_code == 400
    assert "prompt" in wrong.json()["error"]
    assert bert.post("/api/embeddings", json={"prompt": "a"}).status_code == 400


def test_without_a_text_ollamas_routes_load_a_model_or_unload_it(bert_file) -> None:
    def loaded() -> list[str]:
        return [each["name"] for each in client.get("/api/ps").json()["models"]]

    with running(ServedModels({"bert": str(bert_file), "ember": "ember"})) as client:
        assert client.post("/api/embed", json={"input": "a"}).status_code == 400  # no model
        for empty in ({}, {"input": ""}, {"input": []}, {"input": None}):
            answer = ask(client, "/api/embed", **empty)
            assert answer == {"model": "bert", "embeddings": []}
            assert loaded() == ["bert"]
            assert ask(client, "/api/embed", keep_alive=0, **empty)["embeddings"] == []
            assert loaded() == []
        assert ask(client, "/api/embeddings", model="bert:latest") == {"embedding": []}
        assert loaded() == ["bert"]
        assert ask(client, "/api/embeddings", keep_alive="0s", prompt="") == {"embedding": []}
        assert loaded() == []
        body = {"model": "bert", "input": ["a"], "keep_alive": "5m"}
        answer = client.post("/api/embed", json=body)
        assert "x-akunu-ignored" not in answer.headers
        assert len(answer.json()["embeddings"]) == 1
        shown = client.post("/api/show", json={"model": "bert"}).json()
        assert shown["capabilities"] == ["embedding"]


def test_a_chat_with_an_encoder_is_refused(bert) -> None:
    messages = [{"role": "user", "content": "a"}]
    answer = bert.post("/v1/completions", json={"model": "bert", "prompt": "a"})
    assert answer.status_code == 400
    assert "is an encoder" in answer.json()["error"]["message"]
    assert bert.post("/v1/chat/completions", json={"model": "bert", "messages": messages}).is_error
