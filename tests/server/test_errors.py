"""Errors have OpenAI's shape, everywhere, and a status that says whether to try again."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from running_server import running

from akunu.server import ServedModels, ServerSettings
from akunu.server.openai.chat_fields import CHAT_FIELDS
from akunu.templates.chat_template import ChatTemplate
from akunu.tokenizers.tokenizer import Tokenizer
from lines import each_line

HELLO = [{"role": "user", "content": "Hello"}]
HTTPS = {"url": "https://example.org/cat.png"}


def error_of(answer: httpx.Response) -> dict[str, Any]:
    body = answer.json()
    assert set(body) == {"error"}
    error = body["error"]
    assert {"message", "type", "param", "code"} <= set(error)
    assert error["code"] is None or isinstance(error["code"], str)
    assert isinstance(error["message"], str)
    return error


def refused(client: httpx.Client, **body: Any) -> dict[str, Any]:
    answer = client.post("/v1/chat/completions", json={"messages": HELLO, **body})
    assert answer.status_code == 400, answer.text
    return error_of(answer)


@each_line(
    ("field", "value"),
    [
        ("temperature", "hot"),
        ("temperature", -1),
        ("top_p", 2),
        ("max_tokens", "many"),
        ("max_completion_tokens", 1.5),
        ("max_tokens", 0),
        ("max_tokens", -2),
        ("max_tokens", 10**30),
        ("n", 0),
        ("n", 10**9),
        ("n", True),
        ("stop", 5),
        ("stop", [""]),
        ("seed", "x"),
        ("samplers", [[]]),
        ("samplers", [{}, "top_k"]),
        ("stream", "yes"),
        ("logit_bias", {"x": 1}),
        ("logit_bias", 3),
        ("top_logprobs", 21),
        ("top_logprobs", 2),  # without logprobs
        ("messages", []),
        ("messages", "Hello"),
        ("messages", [{"role": "user"}]),
        ("messages", [{"role": 5, "content": ""}]),
        ("messages", [{"role": "robot", "content": ""}]),
        ("messages", [{"role": "tool", "content": ""}]),
        ("tools", "add"),
        ("tools", [{"type": "function"}]),
        ("tool_choice", "add"),
        ("response_format", {"type": "xml"}),
        ("response_format", {"type": "json_schema"}),
        ("stream_options", {"include_usage": True}),  # without stream
        ("chat_template_kwargs", {"nothing_like_it": 1}),
        ("repeat_penalty", "x"),
        ("guided_regex", "("),
        ("priority", 10**30),
        ("model", 5),
    ],
)
def test_a_bad_field_is_named(client: httpx.Client, field: str, value: object) -> None:
    error = refused(client, **{field: value})
    assert error["type"] == "invalid_request_error"
    assert error["param"] == field
    assert field.split("_")[0] in error["message"]


@each_line(
    ("field", "value"),
    [
        ("modalities", ["text", "audio"]),
        ("audio", {"voice": "x"}),
        ("web_search_options", {}),
        ("messages", [{"role": "user", "content": [{"type": "image_url", "image_url": HTTPS}]}]),
        ("messages", [{"role": "user", "content": [{"type": "input_audio"}]}]),
        ("mirostat", 2),
        ("best_of", 3),
    ],
)
def test_what_is_not_done_here_is_refused_by_name(
    client: httpx.Client, field: str, value: object
) -> None:
    error = refused(client, **{field: value})
    assert error["param"] == field
    assert error["code"] == "unsupported_parameter"


def test_values_that_ask_for_nothing_are_not_refused(client: httpx.Client) -> None:
    body = {"mirostat": 0, "best_of": 1, "modalities": ["text"], "lora": [], "n_probs": 0}
    answer = client.post("/v1/chat/completions", json={"messages": HELLO, "max_tokens": 1, **body})
    assert answer.status_code == 200
    assert "x-akunu-ignored" not in answer.headers


# What a client may send where a field wants something else.
STRANGE = (None, True, 1.5, -(10**30), "None", [], [None], {}, {"a": None}, [{"type": None}])
PYTHON = re.compile(r"\b(None|True|False|NoneType|dict|dicts|str|int|float|bool|tuple)\b")


@each_line("field", sorted(CHAT_FIELDS))
def test_errors_have_the_words_of_json(client: httpx.Client, field: str) -> None:
    for value in STRANGE:
        body = {"messages": HELLO, "max_tokens": 1, field: value}
        answer = client.post("/v1/chat/completions", json=body)
        if answer.status_code == 200:
            continue
        assert answer.status_code in (400, 404), value
        message = re.sub("[\"']None[\"']", "", error_of(answer)["message"])
        assert not PYTHON.search(message), message


@each_line(
    ("message", "told"),
    [
        (None, "messages[0] must be an object, got null"),
        ({"role": "user", "content": 3}, "messages[0].content must be a text or a list of text"),
        (
            {"role": "user", "content": [3]},
            "messages[0].content[0] must be an object, got a number",
        ),
        ({"role": "user"}, "messages[0].content is missing"),
        ({"role": True, "content": ""}, "messages[0].role is true; it must be one of system,"),
    ],
)
def test_a_bad_message_is_told_by_its_place(
    client: httpx.Client, message: object, told: str
) -> None:
    assert refused(client, messages=[message])["message"].startswith(told)


def test_more_tokens_than_the_context_holds_end_where_it_does(client: httpx.Client) -> None:
    body = {"messages": [{"role": "user", "content": "hello " * 480}], "max_tokens": 100_000}
    reply = client.post("/v1/chat/completions", json={**body, "ignore_eos": True}).json()
    assert reply["usage"]["total_tokens"] == 1024 + 1  # the last one is not read any more
    assert reply["choices"][0]["finish_reason"] == "length"


def test_two_names_of_one_option_must_agree(client: httpx.Client) -> None:
    error = refused(client, max_tokens=3, max_completion_tokens=4)
    assert error["param"] == "max_completion_tokens"
    assert "max_tokens" in error["message"]


def test_a_prompt_that_is_too_long_can_be_told_from_other_errors(client: httpx.Client) -> None:
    error = refused(client, messages=[{"role": "user", "content": "hello " * 2000}])
    assert error["code"] == "context_length_exceeded"
    assert error["param"] == "messages"
    assert error["n_prompt_tokens"] > error["n_ctx"] == 1024
    assert "maximum context length is 1024 tokens" in error["message"]
    assert "exceeds the available context size" in error["message"]


@pytest.mark.parametrize(
    ("route", "prompt"),
    [("chat/completions", "messages"), ("completions", "prompt"), ("messages", "messages")],
)
def test_a_prompt_of_megabytes_is_refused_before_its_tokens_are_known(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch, route: str, prompt: str
) -> None:
    ask: dict[str, Any] = {"model": "ember", "max_tokens": 1}
    long = "hello " * 400_000
    body = {prompt: long} if prompt == "prompt" else {prompt: [{"role": "user", "content": long}]}
    monkeypatch.setattr(Tokenizer, "encode_pieces", None)  # in this process, as the server is
    answer = client.post(f"/v1/{route}", json={**ask, **body})
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["param"], error["code"]) == (prompt, "context_length_exceeded")
    if route == "messages":
        assert error["message"].startswith("prompt is too long: at least ")
    else:
        assert "resulted in at least " in error["message"]
        assert 400_000 >= error["n_prompt_tokens"] > error["n_ctx"] == 1024


@pytest.mark.parametrize(
    ("route", "more"),
    [
        ("/api/generate", {"raw": True, "stream": False}),
        ("/completion", {}),
        ("/completion", {"prompt": [7, "hello " * 400_000]}),
    ],
)
def test_prompts_that_a_client_made_are_refused_as_early(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch, route: str, more: dict[str, Any]
) -> None:
    """They are encoded where the server answers everybody."""
    monkeypatch.setattr(Tokenizer, "encode", None)
    body = {"model": "ember", "prompt": "hello " * 400_000, **more}
    answer = client.post(route, json=body)
    assert answer.status_code == 400
    assert "resulted in at least " in answer.text


def test_an_unknown_model_is_not_found(client: httpx.Client) -> None:
    body = {"model": "gpt-5", "messages": HELLO}
    for answer in (client.post("/v1/chat/completions", json=body), client.get("/v1/models/gpt-5")):
        assert answer.status_code == 404
        error = error_of(answer)
        assert error["code"] == "model_not_found"
        assert error["param"] == "model"
        assert "ember" in error["message"]


def test_a_model_that_cannot_be_loaded_is_not_asked_for_again(tmp_path: Path) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(b"GGUF, but for all that follows")
    with running(ServedModels({"broken": str(path)})) as client:
        answer = client.post("/v1/chat/completions", json={"messages": HELLO})
    assert answer.status_code == 500
    assert error_of(answer)["code"] == "model_not_loaded"
    assert answer.headers["x-should-retry"] == "false"


def test_a_stream_is_never_silent_for_longer_than_clients_wait() -> None:
    assert 0 < ServerSettings().ping_seconds <= 30


def test_a_schema_that_no_grammar_holds_is_refused_with_its_place(client: httpx.Client) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "strin"}}}
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    error = refused(client, response_format=wanted)
    assert error["code"] == "invalid_json_schema"
    assert error["message"].startswith("Invalid schema for response_format")
    assert "/properties/a/type" in error["message"]


@each_line(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"3",
        b"\xff",
        b'{"a": 1}}',
        b"[" * 100_000,
        b'{"a": NaN}',
        b'{"a": ' + b"1" * 5000 + b"}",
    ],
    ids=lambda body: str(body[:10]),
)
def test_a_body_that_is_no_json_object_is_refused(client: httpx.Client, body: bytes) -> None:
    answer = client.post("/v1/chat/completions", content=body)
    assert answer.status_code == 400
    error = error_of(answer)
    assert error["code"] == "invalid_json"
    assert "sys." not in error["message"]


@each_line(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("POST", "/v1/nothing", 404),
        ("GET", "/v1/chat/completions", 405),
        ("DELETE", "/v1/models", 405),
        ("GET", "/v1/models/../../etc/passwd", 404),
        ("GET", "/v1/models/%2e%2e/%2e%2e/etc/passwd", 404),
    ],
)
def test_paths_and_methods_that_are_not_there(
    client: httpx.Client, method: str, path: str, status: int
) -> None:
    answer = client.request(method, path)
    assert answer.status_code == status
    error_of(answer)


def test_a_lone_surrogate_is_refused_and_the_server_goes_on(client: httpx.Client) -> None:
    body = b'{"messages": [{"role": "user", "content": "\\ud800"}], "model": "ember"}'
    answer = client.post("/v1/chat/completions", content=body)
    assert answer.status_code == 400
    assert error_of(answer)["param"] == "messages"
    answer = client.post("/v1/chat/completions", content=b'{"messages": [], "\\ud800": 1}')
    assert answer.status_code == 400
    body = b'{"messages": [{"role": "user", "content": ""}], "max_tokens": 1, "\\ud800": 1}'
    assert client.post("/v1/chat/completions", content=body).status_code == 200


@each_line("names", [["", "a"], ["a", ""], [""], ["x" * 30 + str(i) for i in range(99)]])
def test_names_of_unknown_fields_never_break_the_answer(
    client: httpx.Client, names: list[str]
) -> None:
    for shift in range(3):  # where the list is cut, it must not end with a space
        body = {"x" * shift + name: 1 for name in names} | {"tokens": [100]}
        answer = client.post("/v1/detokenize", json=body)
        assert answer.status_code == 200
        assert answer.headers["x-akunu-ignored"].startswith(("x", "a", '""'))


def test_what_get_answers_head_asks_about(client: httpx.Client) -> None:
    for path in ("/health", "/ready", "/v1/models", "/v1/models/ember", "/api/version", "/"):
        asked, told = client.get(path), client.head(path)
        assert (told.status_code, told.content) == (200, b"")
        assert told.headers["content-length"] == str(len(asked.content))
    assert client.head("/v1/chat/completions").status_code == 405


def test_a_slash_too_many_is_told(client: httpx.Client) -> None:
    for method, path in (("POST", "/v1/chat/completions/"), ("GET", "/v1/models/")):
        answer = client.request(method, path, json={})
        assert answer.status_code == 404
        assert answer.json()["error"]["message"].endswith("write it without the slash at its end")
    assert "slash" not in client.get("/v1/nothing/").json()["error"]["message"]


def test_more_messages_than_tokens_fit_are_refused_before_they_are_rendered(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ChatTemplate, "render", None)  # in this process, as the server is
    messages = [{"role": "user", "content": "Hi"}] * 1025
    answer = client.post("/v1/chat/completions", json={"messages": messages})
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["param"], error["code"]) == ("messages", "context_length_exceeded")
    assert "1025 messages" in error["message"]
    assert "1024 tokens" in error["message"]


@each_line("stream", [False, True])
def test_what_nobody_expected_is_in_the_log_with_its_place(
    stream: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("a fault of the server")

    caplog.clear()
    caplog.set_level(logging.ERROR, "akunu.server")
    with running() as client:
        monkeypatch.setattr("akunu.grammar.schema.compile.compile_schema", broken)
        monkeypatch.setattr("akunu.grammar.separate_process.Workers.compile", broken)
        body = {"messages": HELLO, "json_schema": {"enum": ["a"]}, "stream": stream}
        answer = client.post("/v1/chat/completions", json=body)
    assert "the server failed; see its log" in answer.text
    (found,) = [record for record in caplog.records if record.exc_info]
    assert found.exc_info is not None
    assert isinstance(found.exc_info[1], ZeroDivisionError)
