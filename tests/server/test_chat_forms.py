"""Structured output, tools and thoughts over /v1/chat/completions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from add_tool import FUNCTION
from edited_model import edited
from running_server import EMBER, THINKING, running
from test_chat import ask, chunks

from akunu.server import ServedModels
from lines import each_line

SUM = [{"role": "user", "content": "What is 12 + 7?"}]
SCHEMA = {
    "type": "object",
    "properties": {"sum": {"type": "integer"}},
    "required": ["sum"],
    "additionalProperties": False,
}
ADD = {"type": "function", "function": {**FUNCTION, "strict": True}}
SPELL = {"type": "function", "function": {"name": "spell", "parameters": {}}}


def content(client: httpx.Client, **body: Any) -> str:
    return ask(client, **body)["choices"][0]["message"]["content"]


@pytest.mark.parametrize("is_strict", [True, False, None])
def test_a_reply_fits_the_schema_and_has_no_fence(
    client: httpx.Client, is_strict: bool | None
) -> None:
    described = {"name": "sum", "schema": SCHEMA, "strict": is_strict}
    wanted = {"type": "json_schema", "json_schema": described}
    assert set(json.loads(content(client, response_format=wanted))) == {"sum"}


@each_line(
    "form",
    [
        {"response_format": {"type": "json_object"}},
        {"response_format": {"type": "json_object", "schema": SCHEMA}},
        {"json_schema": SCHEMA},
        {"guided_json": SCHEMA},
        {"structured_outputs": {"json": SCHEMA}},
    ],
)
def test_other_ways_to_ask_for_json(client: httpx.Client, form: dict[str, Any]) -> None:
    text = content(client, **form, max_tokens=60, stop="7")
    assert text.startswith("{")


@each_line(
    "form",
    [
        {"structured_outputs": {"choice": ["yes", "yo"]}},
        {"structured_outputs": {"regex": "y(es|o)"}},
        {"guided_choice": ["yes", "yo"]},
        {"guided_regex": "y(es|o)"},
        {"grammar": 'root ::= "yes" | "yo"'},
    ],
)
def test_choices_expressions_and_grammars(client: httpx.Client, form: dict[str, Any]) -> None:
    assert content(client, **form) in ("yes", "yo")


def test_two_forms_at_once_are_refused(client: httpx.Client) -> None:
    body = {"messages": SUM, "guided_regex": "a", "grammar": 'root ::= "a"'}
    answer = client.post("/v1/chat/completions", json=body)
    assert answer.status_code == 400
    assert "use only one of them" in answer.json()["error"]["message"]


def test_what_no_grammar_holds_is_weakened_where_strict_is_false(client: httpx.Client) -> None:
    schema = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
    described: dict[str, Any] = {"name": "x", "schema": schema}
    wanted = {"type": "json_schema", "json_schema": described}
    body = {"messages": SUM, "response_format": wanted, "max_tokens": 30}
    answer = client.post("/v1/chat/completions", json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "invalid_json_schema"
    described["strict"] = False
    reply = client.post("/v1/chat/completions", json=body).json()
    assert [each["pointer"] for each in reply["weakened"]] == ["/uniqueItems"]


def test_a_call_that_must_come_is_told_as_openai_tells_it(client: httpx.Client) -> None:
    choice = ask(client, tools=[ADD, SPELL], tool_choice="required")["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    message = choice["message"]
    assert message["content"] is None
    (call,) = message["tool_calls"]
    assert call["type"] == "function"
    assert call["id"]
    assert call["function"]["name"] == "add"
    assert json.loads(call["function"]["arguments"]) == {"a": 12, "b": 7}


def test_a_streamed_call_has_its_name_once_and_its_arguments_in_pieces(
    client: httpx.Client,
) -> None:
    streamed = chunks(client, tools=[ADD], tool_choice="required")
    deltas = [chunk["choices"][0]["delta"] for chunk in streamed]
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    first, rest = calls[0], calls[1:]
    assert first["index"] == 0
    assert first["type"] == "function"
    assert first["id"]
    assert first["function"] == {"name": "add", "arguments": ""}
    assert rest
    assert all(set(call) == {"index", "function"} for call in rest)
    assert all(set(call["function"]) == {"arguments"} for call in rest)
    arguments = "".join(call["function"]["arguments"] for call in rest)
    assert json.loads(arguments) == {"a": 12, "b": 7}
    assert streamed[-1]["choices"][0]["finish_reason"] == "tool_calls"
    assert not any(delta.get("content") for delta in deltas)


def call_pieces(streamed: list[dict[str, Any]]) -> list[str]:
    deltas = [chunk["choices"][0]["delta"] for chunk in streamed]
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    return [call["function"]["arguments"] for call in calls]


@pytest.mark.parametrize("tool_choice", ["required", "auto"])
def test_arguments_are_told_as_they_are_written(client: httpx.Client, tool_choice: str) -> None:
    pieces = call_pieces(chunks(client, tools=[ADD], tool_choice=tool_choice))
    assert json.loads("".join(pieces)) == {"a": 12, "b": 7}
    assert len(pieces) > 3


def test_where_a_stop_string_may_cut_a_call_it_is_told_when_it_is_complete(
    client: httpx.Client,
) -> None:
    body = {"tools": [ADD], "tool_choice": "required"}
    pieces = call_pieces(chunks(client, stop="never", **body))
    assert pieces == ["", '{"a": 12, "b": 7}']
    assert call_pieces(chunks(client, stop='"b', **body)) == []


def test_a_call_that_is_cut_is_told_as_far_as_it_came(client: httpx.Client) -> None:
    body = {"tools": [ADD], "tool_choice": "required"}
    n_tokens = ask(client, **body)["usage"]["completion_tokens"]
    streamed = chunks(client, **body, max_tokens=n_tokens - 5)
    arguments = "".join(call_pieces(streamed))
    assert arguments
    assert '{"a": 12, "b": 7}'.startswith(arguments)
    assert streamed[-1]["choices"][0]["finish_reason"] == "length"
    assert not any(chunk["choices"][0]["delta"].get("content") for chunk in streamed)


@pytest.mark.parametrize(
    "choice",
    [
        {"type": "function", "function": {"name": "spell"}},
        {"type": "function", "name": "spell"},
        {
            "type": "allowed_tools",
            "allowed_tools": {
                "mode": "required",
                "tools": [{"type": "function", "function": {"name": "spell"}}],
            },
        },
    ],
)
def test_a_tool_can_be_named(client: httpx.Client, choice: dict[str, Any]) -> None:
    reply = ask(client, tools=[ADD, SPELL], tool_choice=choice)
    assert reply["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "spell"


def test_null_in_the_schema_of_a_tool_is_absent(client: httpx.Client) -> None:
    """Clients in Go write one for every list and map that is empty."""
    schema = {"type": "object", "properties": {"a": {"type": "integer", "enum": None}}}
    add = {"name": "add", "parameters": {**schema, "required": None, "$defs": None}}
    now = {"name": "now", "parameters": {"type": "object", "properties": None, "required": None}}
    tools = [{"type": "function", "function": each} for each in (add, now)]
    reply = ask(client, tools=tools, tool_choice={"type": "function", "function": {"name": "now"}})
    call = reply["choices"][0]["message"]["tool_calls"][0]["function"]
    assert (call["name"], json.loads(call["arguments"])) == ("now", {})
    body = {"model": "ember", "messages": SUM, "tools": tools, "stream": False}
    assert client.post("/api/chat", json=body).status_code == 200
    tools = [{"name": each["name"], "input_schema": each["parameters"]} for each in (add, now)]
    body = {"model": "ember", "messages": SUM, "tools": tools, "max_tokens": 3}
    assert client.post("/v1/messages", json=body).status_code == 200


def test_without_a_need_there_is_no_call(client: httpx.Client) -> None:
    choice = ask(client, tools=[ADD], tool_choice="none")["choices"][0]
    assert choice["finish_reason"] == "stop"
    assert "tool_calls" not in choice["message"]


def test_the_older_form_of_tools_is_answered_in_the_older_form(client: httpx.Client) -> None:
    body = {"functions": [ADD["function"]], "function_call": {"name": "add"}}
    choice = ask(client, **body)["choices"][0]
    assert choice["finish_reason"] == "function_call"
    call = choice["message"]["function_call"]
    assert call["name"] == "add"
    assert json.loads(call["arguments"]) == {"a": 12, "b": 7}
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks(client, **body)]
    calls = [delta["function_call"] for delta in deltas if "function_call" in delta]
    assert calls[0] == {"name": "add", "arguments": ""}
    assert json.loads("".join(call["arguments"] for call in calls)) == {"a": 12, "b": 7}


def test_a_conversation_goes_on_behind_a_call(client: httpx.Client) -> None:
    message = ask(client, tools=[ADD], tool_choice="required")["choices"][0]["message"]
    call_id = message["tool_calls"][0]["id"]
    messages = [*SUM, message, {"role": "tool", "tool_call_id": call_id, "content": "19"}]
    reply = ask(client, messages=messages, tools=[ADD], max_tokens=3)
    assert reply["usage"]["completion_tokens"] > 0


@pytest.fixture(scope="module")
def thinker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("thinker") / "m.gguf"
    return edited(EMBER, path, {"tokenizer.chat_template": THINKING})


@pytest.fixture(scope="module")
def thinking(thinker: Path) -> Iterator[httpx.Client]:

    with running(ServedModels({"thinker": str(thinker)})) as client:
        yield client


def test_thoughts_are_beside_the_content(thinking: httpx.Client) -> None:
    body = {"thinking_budget_tokens": 3, "max_tokens": 30}
    reply = ask(thinking, **body)
    message = reply["choices"][0]["message"]
    assert message["reasoning_content"]
    assert "reasoning" not in message
    assert "think" not in message["content"]
    details = reply["usage"]["completion_tokens_details"]
    assert 0 < details["reasoning_tokens"] <= reply["usage"]["completion_tokens"]
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks(thinking, **body)]
    for field in ("reasoning_content", "content"):
        assert "".join(delta.get(field, "") for delta in deltas) == message[field]


def test_logprobs_are_those_of_the_content_without_the_thoughts(thinking: httpx.Client) -> None:
    body = {"thinking_budget_tokens": 3, "max_tokens": 30, "ignore_eos": True, "logprobs": True}
    choice = ask(thinking, **body)["choices"][0]
    assert choice["message"]["reasoning_content"]
    assert choice["message"]["content"]
    told = [each["token"] for each in choice["logprobs"]["content"]]
    assert "".join(told) == choice["message"]["content"]
    parts = [chunk["choices"][0]["logprobs"] for chunk in chunks(thinking, **body)]
    assert [each["token"] for part in parts if part for each in part["content"]] == told


@each_line(
    "switch",
    [
        {"chat_template_kwargs": {"enable_thinking": False}},
        {"enable_thinking": False},
        {"reasoning_effort": "none"},
        {"reasoning": {"effort": "none", "summary": "auto"}},
        {"reasoning": {"enabled": False}},
        {"thinking": False},
    ],
)
def test_thinking_is_switched_off_by_many_names(
    thinking: httpx.Client, switch: dict[str, Any]
) -> None:
    reply = ask(thinking, **switch, max_tokens=5)
    assert reply["usage"]["completion_tokens_details"] == {"reasoning_tokens": 0}
    assert "reasoning_content" not in reply["choices"][0]["message"]


@pytest.mark.parametrize(
    ("name", "fields"),
    [("reasoning", ["reasoning"]), ("both", ["reasoning", "reasoning_content"])],
)
def test_the_field_of_thoughts_is_a_setting(thinker: Path, name: str, fields: list[str]) -> None:

    with running(ServedModels([str(thinker)]), reasoning_field=name) as client:
        message = ask(client, thinking_budget=2, max_tokens=10)["choices"][0]["message"]
    assert sorted(key for key in message if key.startswith("reasoning")) == fields
