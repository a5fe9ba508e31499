"""A stream that has begun and cannot go on ends with an error, as each API has it."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

import akunu

HELLO = [{"role": "user", "content": "Hello"}]
CONSTANT = {"const": "ab"}
SCHEMA = {"type": "json_schema", "name": "x", "schema": CONSTANT}


@pytest.fixture(scope="module")
def banned() -> dict[str, bool]:
    """The tokens without which nobody can write a b behind an a."""
    with akunu.load() as model:
        spelled = enumerate(map(model.tokenizer.token_bytes, range(model.tokenizer.vocab_size)))
        return {str(token): False for token, text in spelled if text == b"ab" or text[:1] == b"b"}


def told(client: httpx.Client, path: str, **body: Any) -> list[dict[str, Any]]:
    answer = client.post(path, json={"model": "ember", "stream": True, **body})
    assert answer.status_code == 200, answer.text
    lines = [line.removeprefix("data: ") for line in answer.text.split("\n")]
    return [json.loads(line) for line in lines if line.startswith("{")]


def test_openais_chats_and_llama_cpps_texts_end_with_an_error(
    client: httpx.Client, banned: dict[str, bool]
) -> None:
    grammar = {"grammar": 'root ::= "ab"', "logit_bias": banned}
    for path, prompt in (
        ("/v1/chat/completions", {"messages": HELLO}),
        ("/completion", {"prompt": "Hello"}),
    ):
        last = told(client, path, **prompt, **grammar)[-1]
        assert last["error"]["code"] == "grammar_dead_end"


def test_anthropics_messages_end_with_an_event(
    client: httpx.Client, banned: dict[str, bool]
) -> None:
    body = {"messages": HELLO, "max_tokens": 9, "output_format": SCHEMA, "logit_bias": banned}
    events = told(client, "/v1/messages", **body)
    assert events[0]["type"] == "message_start"
    last = events[-1]
    assert last["type"] == "error"
    assert last["error"]["type"] == "invalid_request_error"
    assert last["error"]["code"] == "grammar_dead_end"


def test_a_response_fails(client: httpx.Client, banned: dict[str, bool]) -> None:
    body = {"input": HELLO, "text": {"format": SCHEMA}, "logit_bias": banned}
    *_, failed, error = told(client, "/v1/responses", **body)
    assert failed["type"] == "response.failed"
    assert failed["response"]["status"] == "failed"
    assert failed["response"]["error"]["code"] == "grammar_dead_end"
    assert error["type"] == "error"
    assert error["sequence_number"] == failed["sequence_number"] + 1
    assert error["error"]["code"] == error["code"] == "grammar_dead_end"


def test_ollamas_lines_end_with_an_error(client: httpx.Client, banned: dict[str, bool]) -> None:
    body = {"messages": HELLO, "format": CONSTANT, "options": {"logit_bias": banned}}
    last = told(client, "/api/chat", **body)[-1]
    assert set(last) == {"error"}
    assert "logit" in last["error"]
