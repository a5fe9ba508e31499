"""/v1/messages and /v1/messages/count_tokens: what Anthropic's clients ask for and get."""

from __future__ import annotations

import json
from typing import Any

import httpx
from add_tool import ABOUT, PARAMETERS

import akunu
from lines import each_line

SUM = [{"role": "user", "content": "What is 12 + 7?"}]
ADD = {**ABOUT, "input_schema": PARAMETERS, "cache_control": {"type": "ephemeral"}}


def ask(client: httpx.Client, **body: Any) -> Any:
    answer = client.post("/v1/messages", json={"messages": SUM, "max_tokens": 30, **body})
    assert answer.status_code == 200, answer.text
    return answer.json()


def events(client: httpx.Client, **body: Any) -> list[dict[str, Any]]:
    """The events of a stream, whose names are their types."""
    body = {"messages": SUM, "max_tokens": 30, "stream": True, **body}
    with client.stream("POST", "/v1/messages", json=body) as answer:
        assert answer.status_code == 200
        text = "".join(answer.iter_text())
    found = []
    for told in text.strip().split("\n\n"):
        name, data = told.split("\n")
        found.append(json.loads(data.removeprefix("data: ")))
        assert name == f"event: {found[-1]['type']}"
    return found


def refused(client: httpx.Client, status: int = 400, **body: Any) -> Any:
    answer = client.post("/v1/messages", json={"messages": SUM, "max_tokens": 30, **body})
    assert answer.status_code == status
    told = answer.json()
    assert told["type"] == "error"
    assert told["request_id"] == answer.headers["x-request-id"] == answer.headers["request-id"]
    return told["error"]


def test_a_reply_is_a_message_with_a_block_of_text(client: httpx.Client) -> None:
    with akunu.load() as model:
        expected = model.chat(SUM, max_tokens=30)
    reply = ask(client)
    assert reply["type"] == "message"
    assert reply["role"] == "assistant"
    assert reply["id"].startswith("msg_")
    assert reply["model"] == "ember"
    assert reply["content"] == [{"type": "text", "text": expected}]
    assert (reply["stop_reason"], reply["stop_sequence"]) == ("end_turn", None)
    usage = reply["usage"]
    assert usage["input_tokens"] + usage["cache_read_input_tokens"] == expected.prompt_tokens
    assert usage["output_tokens"] == expected.completion_tokens


def test_the_request_id_is_where_the_client_looks_for_it(client: httpx.Client) -> None:
    answer = client.post("/v1/messages", json={"messages": SUM, "max_tokens": 1})
    assert answer.headers["request-id"] == answer.headers["x-request-id"]


def test_what_the_cache_had_is_counted_apart(client: httpx.Client) -> None:
    ask(client)
    usage = ask(client)["usage"]
    assert usage["cache_read_input_tokens"] > 0


def test_the_most_tokens_and_stop_sequences_end_a_reply(client: httpx.Client) -> None:
    assert ask(client, max_tokens=2)["stop_reason"] == "max_tokens"
    reply = ask(client, stop_sequences=["="])
    assert (reply["stop_reason"], reply["stop_sequence"]) == ("stop_sequence", "=")
    assert reply["content"][0]["text"] == "12 + 7 "


def test_a_stream_has_its_events_in_their_order(client: httpx.Client) -> None:
    told = events(client)
    kinds = [each["type"] for each in told]
    n_deltas = kinds.count("content_block_delta")
    assert n_deltas >= 1  # what is written while the loop is busy comes as one
    assert kinds == [
        "message_start",
        "ping",
        "content_block_start",
        *["content_block_delta"] * n_deltas,
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    whole = ask(client)
    start = told[0]["message"]
    assert (start["content"], start["stop_reason"]) == ([], None)
    assert start["usage"]["input_tokens"] > 0
    text = "".join(each["delta"]["text"] for each in told[3 : 3 + n_deltas])
    assert text == whole["content"][0]["text"]
    assert told[-2]["delta"] == {"stop_reason": "end_turn", "stop_sequence": None}
    assert told[-2]["usage"]["output_tokens"] == whole["usage"]["output_tokens"]


def test_a_call_is_a_block_with_its_input(client: httpx.Client) -> None:
    body = {"tools": [ADD], "tool_choice": {"type": "any"}}
    reply = ask(client, **body)
    assert reply["stop_reason"] == "tool_use"
    (block,) = reply["content"]
    assert (block["type"], block["name"]) == ("tool_use", "add")
    assert block["input"] == {"a": 12, "b": 7}
    told = events(client, **body)
    kinds = [each["type"] for each in told]
    assert kinds[2:5] == ["content_block_start", "content_block_delta", "content_block_stop"]
    start = told[2]["content_block"]
    assert (start["type"], start["name"], start["input"]) == ("tool_use", "add", {})
    assert json.loads(told[3]["delta"]["partial_json"]) == {"a": 12, "b": 7}
    assert told[-2]["delta"]["stop_reason"] == "tool_use"


def test_a_tool_can_be_demanded_by_name_or_forbidden(client: httpx.Client) -> None:
    spell = {"name": "spell", "input_schema": {"type": "object", "properties": {}}}
    demanded = {"type": "tool", "name": "spell", "disable_parallel_tool_use": True}
    reply = ask(client, tools=[ADD, spell], tool_choice=demanded, max_tokens=200)
    assert [block["name"] for block in reply["content"]] == ["spell"]
    reply = ask(client, tools=[ADD], tool_choice={"type": "none"})
    assert [block["type"] for block in reply["content"]] == ["text"]


def test_calls_and_results_come_back_as_the_model_knows_them(client: httpx.Client) -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 12, "b": 7}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "19"}
    turns = [
        *SUM,
        {"role": "assistant", "content": [{"type": "text", "text": "I add."}, call]},
        {"role": "user", "content": [result, {"type": "text", "text": "And?"}]},
    ]
    openai = [
        *SUM,
        {
            "role": "assistant",
            "content": "I add.",
            "tool_calls": [
                {
                    "id": "toolu_1",
                    "type": "function",
                    "function": {"name": "add", "arguments": '{"a": 12, "b": 7}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "toolu_1", "content": "19"},
        {"role": "user", "content": "And?"},
    ]
    counted = client.post("/v1/messages/count_tokens", json={"messages": turns}).json()
    asked = client.post("/v1/chat/completions", json={"messages": openai, "max_tokens": 1})
    assert counted == {"input_tokens": asked.json()["usage"]["prompt_tokens"]}


def test_system_is_a_text_or_blocks_of_text(client: httpx.Client) -> None:
    def counted(system: Any) -> int:
        body = {"messages": SUM, "system": system}
        found: int = client.post("/v1/messages/count_tokens", json=body).json()["input_tokens"]
        return found

    cached = {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}
    assert counted([cached]) == counted("Be brief.") > counted([])


def test_a_line_that_agents_change_in_every_request_is_left_out(client: httpx.Client) -> None:
    def system(number: int) -> list[dict[str, str]]:
        line = f"x-anthropic-billing-header: cc_version=2.1.{number}; cch={number}{number};"
        return [{"type": "text", "text": line}, {"type": "text", "text": "Be brief. " * 20}]

    first, second = (
        client.post("/v1/messages", json={"messages": SUM, "max_tokens": 1, "system": system(n)})
        for n in (1, 2)
    )
    assert first.headers["x-akunu-ignored"] == "x-anthropic-billing-header"
    usage = second.json()["usage"]
    assert usage["cache_read_input_tokens"] > usage["input_tokens"]


def test_fields_without_effect_are_named_those_inside_others_too(client: httpx.Client) -> None:
    body = {"metadata": {"user_id": "me"}, "tools": [ADD], "thinking": {"type": "enabled"}}
    answer = client.post("/v1/messages", json={"messages": SUM, "max_tokens": 1, **body})
    # the packaged model knows no thoughts
    assert answer.headers["x-akunu-ignored"] == "metadata, cache_control, thinking"


@each_line(
    ("field", "value"),
    [
        ("messages", [{"role": "user", "content": [{"type": "image", "source": {}}]}]),
        ("messages", [{"role": "assistant", "content": "It is"}]),
        ("messages", [{"role": "robot", "content": "Hi"}]),
        ("messages", []),
        ("system", [{"type": "image"}]),
        ("tools", [{"type": 3, "name": "web_search"}]),
        ("tool_choice", {"type": "some"}),
        ("thinking", {"type": "much"}),
        ("mcp_servers", [{"url": "http://x"}]),
        ("temperature", -1),
        ("max_tokens", "many"),
        ("stop_sequences", 3),
    ],
)
def test_what_makes_no_sense_is_refused_by_name_in_anthropics_shape(
    client: httpx.Client, field: str, value: object
) -> None:
    error = refused(client, **{field: value})
    assert error["type"] == "invalid_request_error"
    assert error["param"] == field


def test_agents_know_a_prompt_that_is_too_long_by_its_words(client: httpx.Client) -> None:
    error = refused(client, messages=[{"role": "user", "content": "hello " * 2000}])
    assert error["message"].startswith("prompt is too long: ")
    assert error["message"].endswith(" tokens > 1024 maximum")


def test_models_keys_and_routes_that_are_not_there(client: httpx.Client, serving: Any) -> None:
    assert refused(client, 404, model="claude-x")["type"] == "not_found_error"
    assert client.get("/v1/messages").json()["type"] == "error"
    with serving(api_keys=["a"]) as closed:
        assert refused(closed, 401)["type"] == "authentication_error"
        answer = closed.post(
            "/v1/messages/count_tokens", json={"messages": SUM}, headers={"x-api-key": "a"}
        )
        assert answer.status_code == 200


def test_thoughts_are_a_block_before_the_text(thinking_client: httpx.Client) -> None:
    budget = {"type": "enabled", "budget_tokens": 3}
    body = {"thinking": budget, "ignore_eos": True, "max_tokens": 12}
    thought, text = ask(thinking_client, **body)["content"]
    assert thought["type"] == "thinking"
    assert thought["signature"]
    told = events(thinking_client, **body)
    deltas = [each for each in told if each["type"] == "content_block_delta"]
    assert [each["index"] for each in deltas] == sorted(each["index"] for each in deltas)
    parts = {kind: "" for kind in ("thinking", "signature", "text")}
    for each in deltas:
        kind = each["delta"]["type"].removesuffix("_delta")
        parts[kind] += each["delta"][kind]
    assert parts["thinking"] == thought["thinking"]
    assert parts["signature"] == thought["signature"]
    assert parts["text"] == text["text"]
    last = [each for each in deltas if each["index"] == 0][-1]
    assert last["delta"]["type"] == "signature_delta"


def test_thoughts_are_switched_off(thinking_client: httpx.Client) -> None:
    reply = ask(thinking_client, thinking={"type": "disabled"}, max_tokens=5)
    assert [block["type"] for block in reply["content"]] == ["text"]


def test_thoughts_can_be_sent_back(thinking_client: httpx.Client) -> None:
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "akunu"}
    reply = {"role": "assistant", "content": [thought, {"type": "text", "text": "19"}]}
    turns = [*SUM, reply, {"role": "user", "content": "And?"}]
    assert ask(thinking_client, messages=turns, max_tokens=1)["type"] == "message"


def test_a_tool_that_makes_no_sense_is_named_by_its_field(client: httpx.Client) -> None:
    tool = {"name": "f", "input_schema": {"type": "object", "properties": {"place": "a town"}}}
    error = refused(client, tools=[tool])
    assert error["param"] == "tools"
    assert error["message"].startswith("parameters of the tool 'f'")


def test_a_thread_is_refused_as_anthropics_client_reads_it(client: httpx.Client) -> None:
    error = refused(client, thread={"type": "create"})
    assert error["param"] == "thread"
    assert error["details"] == {
        "error_code": "thread_unsupported_request",
        "unsupported": ["thread"],
    }
    assert refused(client, compaction={"type": "summarize"})["param"] == "compaction"


def test_advice_on_effort_and_budget_has_no_effect_and_is_named(client: httpx.Client) -> None:
    advice = {"effort": "low", "task_budget": {"type": "tokens", "total": 1024}}
    body = {"messages": SUM, "max_tokens": 2, "output_config": advice}
    answer = client.post("/v1/messages", json=body)
    assert answer.status_code == 200
    assert answer.headers["x-akunu-ignored"] == "output_config.effort, output_config.task_budget"


def test_the_tokens_of_thoughts_are_counted(thinking_client: httpx.Client) -> None:
    body = {"ignore_eos": True, "max_tokens": 12}
    thinking = {"type": "enabled", "budget_tokens": 3}
    usage = ask(thinking_client, thinking=thinking, **body)["usage"]
    wish = {"messages": SUM, "thinking": True, "thinking_budget": 3, **body}
    other = thinking_client.post("/v1/chat/completions", json=wish).json()["usage"]
    counted = other["completion_tokens_details"]["reasoning_tokens"]
    assert 0 < counted < usage["output_tokens"]
    assert usage["output_tokens_details"] == {"thinking_tokens": counted}
    told = events(thinking_client, thinking=thinking, **body)
    assert told[-2]["usage"]["output_tokens_details"] == {"thinking_tokens": counted}
