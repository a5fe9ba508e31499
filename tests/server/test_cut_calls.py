"""A call that `max_tokens` cuts: the same in every dialect, and streamed as whole.

As OpenAI has it: the name and the arguments as far as they came, never the model's markup as text.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from add_tool import ABOUT, FUNCTION, PARAMETERS
from pydantic_core import from_json

import akunu

Told = tuple[str, list[tuple[str, str]], str]
"""Text, the names and arguments of calls, and why it ended."""

SUM = [{"role": "user", "content": "What is 12 + 7?"}]
ADD = {**FUNCTION, "strict": True}
WHOLE = ("", [("add", '{"a": 12, "b": 7}')])


def events(client: httpx.Client, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    answer = client.post(path, json={**body, "stream": True})
    assert answer.status_code == 200, answer.text
    lines = [line.removeprefix("data: ") for line in answer.text.splitlines()]
    return [json.loads(line) for line in lines if line.startswith("{")]


def post(client: httpx.Client, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = client.post(path, json={**body, "stream": False})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def chat(client: httpx.Client, choice: str, most: int, *, streams: bool) -> Told:
    tools = [{"type": "function", "function": ADD}]
    body = {"messages": SUM, "tools": tools, "tool_choice": choice, "max_tokens": most}
    path = "/v1/chat/completions"
    if not streams:
        (choice_,) = post(client, path, body)["choices"]
        message = choice_["message"]
        calls = [each["function"] for each in message.get("tool_calls", ())]
        assert (message["content"] is None) == bool(calls)
        told = [(call["name"], call["arguments"]) for call in calls]
        return message["content"] or "", told, choice_["finish_reason"]
    text, parts, reason = "", {}, ""
    for chunk in events(client, path, body):
        (choice_,) = chunk["choices"]
        text += choice_["delta"].get("content") or ""
        for part in choice_["delta"].get("tool_calls", ()):
            name, arguments = parts.get(part["index"], ("", ""))
            function = part["function"]
            arguments += function["arguments"]
            parts[part["index"]] = (name + function.get("name", ""), arguments)
        reason = choice_["finish_reason"] or reason
    return text, list(parts.values()), reason


def response(client: httpx.Client, choice: str, most: int, *, streams: bool) -> Told:
    tools = [{"type": "function", **ADD}]
    body = {"input": SUM, "tools": tools, "tool_choice": choice, "max_output_tokens": most}
    if streams:
        told = events(client, "/v1/responses", body)
        done = [each["item"] for each in told if each["type"] == "response.output_item.done"]
        whole = told[-1]["response"]
        assert done == whole["output"]
        arguments = "".join(
            each["delta"] for each in told if each["type"].endswith("arguments.delta")
        )
        assert arguments == "".join(each.get("arguments", "") for each in whole["output"])
    else:
        whole = post(client, "/v1/responses", body)
    texts = [each["content"][0]["text"] for each in whole["output"] if each["type"] == "message"]
    calls = [each for each in whole["output"] if each["type"] == "function_call"]
    if whole["status"] == "incomplete":
        is_whole = bool(calls) and calls[-1]["arguments"] == WHOLE[1][0][1]
        assert whole["output"][-1]["status"] == ("completed" if is_whole else "incomplete")
    reason = {"completed": "tool_calls", "incomplete": "length"}[whole["status"]]
    return "".join(texts), [(call["name"], call["arguments"]) for call in calls], reason


def message(client: httpx.Client, choice: str, most: int, *, streams: bool) -> Told:
    tools = [{**ABOUT, "input_schema": PARAMETERS, "strict": True}]
    kind = {"type": "any" if choice == "required" else "auto"}
    body = {"messages": SUM, "tools": tools, "tool_choice": kind, "max_tokens": most}
    if streams:
        blocks: list[dict[str, Any]] = []
        reason = ""
        for event in events(client, "/v1/messages", body):
            if event["type"] == "content_block_start":
                blocks.append({**event["content_block"], "json": ""})
            elif event["type"] == "content_block_delta":
                delta = event["delta"]
                if delta["type"] == "text_delta":
                    blocks[-1]["text"] += delta["text"]
                else:
                    blocks[-1]["json"] += delta["partial_json"]
            elif event["type"] == "message_delta":
                reason = event["delta"]["stop_reason"]
        for block in blocks:  # as Anthropic's client does
            block["input"] = from_json(block["json"] or "{}", allow_partial=True)
    else:
        whole = post(client, "/v1/messages", body)
        blocks, reason = whole["content"], whole["stop_reason"]
    text = "".join(block["text"] for block in blocks if block["type"] == "text")
    calls = [block for block in blocks if block["type"] == "tool_use"]
    told = [(call["name"], json.dumps(call["input"])) for call in calls]
    return text, told, {"tool_use": "tool_calls", "max_tokens": "length"}[reason]


def ollama(client: httpx.Client, choice: str, most: int, *, streams: bool) -> Told:
    tools = [{"type": "function", "function": ADD}]
    body: dict[str, Any] = {"model": "ember", "messages": SUM, "tools": tools}
    body |= {"tool_choice": choice, "options": {"num_predict": most}}
    lines = events(client, "/api/chat", body) if streams else [post(client, "/api/chat", body)]
    text = "".join(line["message"]["content"] for line in lines)
    calls = [call for line in lines for call in line["message"].get("tool_calls", ())]
    told = [(call["function"]["name"], json.dumps(call["function"]["arguments"])) for call in calls]
    reason = {"stop": "tool_calls", "length": "length"}[lines[-1]["done_reason"]]
    return text, told, reason


DIALECTS: dict[str, Callable[..., Told]] = {
    "chat": chat,
    "response": response,
    "message": message,
    "ollama": ollama,
}


@pytest.mark.parametrize(
    ("dialect", "choice"),
    [*((each, "required") for each in DIALECTS), ("chat", "auto"), ("ollama", "auto")],
)
def test_a_call_that_is_cut_is_told_as_far_as_it_came(
    client: httpx.Client, dialect: str, choice: str
) -> None:
    ask = DIALECTS[dialect]
    is_object = dialect in ("message", "ollama")
    n_calls = []
    for most in range(1, 100, 2):
        whole = ask(client, choice, most, streams=False)
        assert ask(client, choice, most, streams=True) == whole
        text, calls, reason = whole
        assert text in ("", "<"), whole  # which may be the beginning of anything
        n_calls.append(len(calls))
        if reason == "tool_calls":
            assert (text, calls) == WHOLE
            break
        assert reason == "length"
        for name, arguments in calls:
            assert name == "add"
            begun = from_json(arguments or "{}", allow_partial=True) if not is_object else None
            told = json.loads(arguments) if is_object else begun
            assert set(told) <= {"a", "b"}
            assert is_object or WHOLE[1][0][1].startswith(arguments)
    assert n_calls == sorted(n_calls)
    assert n_calls.count(1) > 3  # cuts within the arguments, too


def test_python_has_the_same() -> None:
    tools = [{"type": "function", "function": ADD}]
    arguments: dict[str, Any] = {"tools": tools, "tool_choice": "required"}
    with akunu.load() as model:
        arguments["max_tokens"] = model.chat(SUM, **arguments).completion_tokens - 5
        reply = model.chat(SUM, **arguments)
        with model.chat(SUM, **arguments, stream=True) as stream:
            assert list(stream) == []
    (call,) = reply.tool_calls
    assert (reply, reply.finish_reason, call.name, call.is_cut) == ("", "length", "add", True)
    assert '{"a": 12, "b": 7}'.startswith(call.arguments_text)
    (streamed,) = stream.completion.tool_calls
    assert (streamed.name, streamed.arguments_text) == (call.name, call.arguments_text)


@pytest.mark.parametrize("tool_choice", ["required", "auto"])
def test_what_a_stop_string_cuts_is_neither_text_nor_call(
    client: httpx.Client, tool_choice: str
) -> None:
    tools = [{"type": "function", "function": ADD}]
    body = {"messages": SUM, "tools": tools, "tool_choice": tool_choice, "stop": '"b'}
    (choice,) = post(client, "/v1/chat/completions", body)["choices"]
    assert choice["finish_reason"] == "stop"
    assert choice["message"]["content"] == ""
    assert "tool_calls" not in choice["message"]


def test_a_client_may_send_a_cut_call_back(client: httpx.Client) -> None:
    tools = [{"type": "function", "function": FUNCTION}]
    body = {"messages": SUM, "tools": tools, "tool_choice": "required"}
    n_tokens = post(client, "/v1/chat/completions", body)["usage"]["completion_tokens"]
    cut = post(client, "/v1/chat/completions", {**body, "max_tokens": n_tokens - 5})
    message = cut["choices"][0]["message"]
    call_id = message["tool_calls"][0]["id"]
    result = {"role": "tool", "tool_call_id": call_id, "content": "arguments are no JSON"}
    again = {**body, "messages": [*SUM, message, result]}
    (choice,) = post(client, "/v1/chat/completions", again)["choices"]
    assert choice["finish_reason"] == "tool_calls"


def test_a_number_that_no_double_holds_is_null(client: httpx.Client) -> None:
    parameters = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}
    with akunu.load() as model:
        ((e,), (nine,)) = map(model.tokenizer.encode, "e9")
    body = {
        "messages": SUM,
        "tools": [{"name": "add", "input_schema": parameters}],
        "tool_choice": {"type": "any"},
        "max_tokens": 40,
        "logit_bias": {str(e): 60, str(nine): 40},  # 9e9999 and so on
    }
    (call,) = post(client, "/v1/messages", body)["content"]
    assert call["input"] == {"x": None}
