"""/v1/models for Anthropic's clients, which their header tells from OpenAI's."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import httpx
import pytest
from running_server import running

from akunu.server import ServedModels
from lines import each_line

ANTHROPIC = {"anthropic-version": "2023-06-01"}


@pytest.fixture(scope="module")
def four() -> Iterator[httpx.Client]:
    with running(ServedModels(dict.fromkeys("abcd", "ember"))) as client:
        client.headers.update(ANTHROPIC)
        yield client


def test_a_model_is_described_as_anthropic_has_it(client: httpx.Client) -> None:
    body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
    assert client.post("/v1/messages", json=body).status_code == 200  # it is loaded
    found = client.get("/v1/models/ember", headers=ANTHROPIC).json()
    assert found["type"] == "model"
    assert found["id"] == found["display_name"] == "ember"
    assert found["lifecycle"] == "active"
    assert found["max_input_tokens"] == 1024
    assert found["capabilities"]["structured_outputs"] == {"supported": True}
    assert found["capabilities"]["thinking"]["supported"] is False
    assert datetime.fromisoformat(found["created_at"]).tzinfo is not None
    assert client.get("/v1/models/ember").json()["object"] == "model"


def test_models_come_in_pages(four: httpx.Client) -> None:
    def page(query: str) -> tuple[str, bool]:
        told = four.get(f"/v1/models{query}").json()
        names = "".join(each["id"] for each in told["data"])
        assert told["first_id"] == (names[:1] or None)
        assert told["last_id"] == (names[-1:] or None)
        return names, told["has_more"]

    assert page("") == ("abcd", False)
    assert page("?limit=2") == ("ab", True)
    assert page("?limit=2&after_id=b") == ("cd", False)
    assert page("?after_id=d") == ("", False)
    assert page("?limit=2&before_id=d") == ("bc", True)
    assert page("?limit=2&before_id=c") == ("ab", False)


@each_line(
    ("query", "param"),
    [
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=x", "limit"),
        ("after_id=z", "after_id"),
        ("before_id=z", "before_id"),
        ("after_id=a&before_id=b", "before_id"),
    ],
)
def test_a_page_that_there_is_not_is_refused(four: httpx.Client, query: str, param: str) -> None:
    answer = four.get(f"/v1/models?{query}")
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == param


def test_errors_have_anthropics_shape(four: httpx.Client) -> None:
    answer = four.get("/v1/models/none")
    assert answer.status_code == 404
    told = answer.json()
    assert told["type"] == "error"
    assert told["error"]["type"] == "not_found_error"
    assert told["request_id"] == answer.headers["request-id"]
