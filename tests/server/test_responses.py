"""/v1/responses: what comes back, whole and as the events that clients put together."""

from __future__ import annotations

import json
from typing import Any

import httpx
from add_tool import FUNCTION

import akunu
from lines import each_line

SUM = [{"role": "user", "content": "What is 12 + 7?"}]
ADD = {"type": "function", **FUNCTION, "strict": True}
CALL = {"type": "function_call", "call_id": "c1", "name": "add", "arguments": '{"a": 12, "b": 7}'}


def ask(client: httpx.Client, **body: Any) -> Any:
    answer = client.post("/v1/responses", json={"input": "What is 12 + 7?", **body})
    assert answer.status_code == 200, answer.text
    return answer.json()


def events(client: httpx.Client, **body: Any) -> list[dict[str, Any]]:
    """The events of a stream, whose names are their types and whose numbers count up."""
    body = {"input": "What is 12 + 7?", "stream": True, **body}
    with client.stream("POST", "/v1/responses", json=body) as answer:
        assert answer.status_code == 200
        text = "".join(answer.iter_text())
    found = []
    for number, told in enumerate(text.strip().split("\n\n")):
        name, data = told.split("\n")
        found.append(json.loads(data.removeprefix("data: ")))
        assert name == f"event: {found[-1]['type']}"
        assert found[-1]["sequence_number"] == number
    return found


def kinds(told: list[dict[str, Any]]) -> list[str]:
    """The types of events; deltas that follow each other are one."""
    names = [each["type"].removeprefix("response.") for each in told]
    return [
        name
        for before, name in zip(["", *names], names, strict=False)
        if not (name.endswith(".delta") and name == before)
    ]


def n_prompt(client: httpx.Client, **body: Any) -> int:
    answer = client.post("/v1/responses/input_tokens", json=body)
    assert answer.status_code == 200, answer.text
    found: int = answer.json()["input_tokens"]
    return found


def test_a_response_has_a_message_with_the_models_text(client: httpx.Client) -> None:
    with akunu.load() as model:
        expected = model.chat(SUM)
    reply = ask(client, instructions=None)
    assert reply["object"] == "response"
    assert reply["id"].startswith("resp_")
    assert (reply["status"], reply["error"], reply["model"]) == ("completed", None, "ember")
    (item,) = reply["output"]
    assert (item["type"], item["role"], item["status"]) == ("message", "assistant", "completed")
    (part,) = item["content"]
    assert part == {"type": "output_text", "text": expected, "annotations": [], "logprobs": []}
    usage = reply["usage"]
    assert usage["input_tokens"] == expected.prompt_tokens
    assert usage["output_tokens"] == expected.completion_tokens
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    assert usage["output_tokens_details"] == {"reasoning_tokens": 0}
    assert set(usage["input_tokens_details"]) == {"cached_tokens", "cache_write_tokens"}
    assert {"created_at", "parallel_tool_calls", "tool_choice", "tools"} < set(reply)


def test_what_the_cache_had_is_told(client: httpx.Client) -> None:
    ask(client)
    assert ask(client)["usage"]["input_tokens_details"]["cached_tokens"] > 0


def test_a_stream_has_its_events_in_the_order_that_clients_require(client: httpx.Client) -> None:
    told = events(client)
    assert kinds(told) == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    deltas = [each for each in told if each["type"] == "response.output_text.delta"]
    assert deltas  # how many depends on how fast they are read
    whole = ask(client)["output"][0]["content"][0]["text"]
    assert "".join(each["delta"] for each in deltas) == whole
    item = told[2]["item"]
    assert (item["status"], item["content"]) == ("in_progress", [])
    places = {(each["item_id"], each["output_index"], each["content_index"]) for each in deltas}
    assert places == {(item["id"], 0, 0)}
    response = told[-1]["response"]
    assert response["id"] == told[0]["response"]["id"]
    assert response["output"] == [told[-2]["item"]]
    assert response["output"][0]["id"] == item["id"]
    assert response["usage"]["output_tokens"] > 0


def test_a_text_that_is_cut_is_incomplete(client: httpx.Client) -> None:
    reply = ask(client, max_output_tokens=2)
    assert reply["status"] == reply["output"][0]["status"] == "incomplete"
    assert reply["incomplete_details"] == {"reason": "max_output_tokens"}
    assert reply["usage"]["output_tokens"] == reply["max_output_tokens"] == 2
    assert events(client, max_output_tokens=2)[-1]["type"] == "response.incomplete"


def test_an_empty_reply_is_an_empty_message(client: httpx.Client) -> None:
    body = {"stop": "1", "temperature": 0}
    assert ask(client, **body)["output"][0]["content"][0]["text"] == ""
    assert "output_item.done" in kinds(events(client, **body))


def test_a_call_is_an_item_of_its_own(client: httpx.Client) -> None:
    body = {"tools": [ADD], "tool_choice": {"type": "function", "name": "add"}}
    (item,) = ask(client, **body)["output"]
    assert (item["type"], item["name"], item["status"]) == ("function_call", "add", "completed")
    assert json.loads(item["arguments"]) == {"a": 12, "b": 7}
    assert item["call_id"]
    told = events(client, **body)
    assert kinds(told)[2:-1] == [
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
    ]
    assert told[2]["item"]["arguments"] == ""
    assert told[2]["item"]["call_id"] == told[-2]["item"]["call_id"]
    assert json.loads(told[3]["delta"]) == {"a": 12, "b": 7}
    assert (told[4]["name"], told[4]["arguments"]) == ("add", item["arguments"])


def test_items_become_the_messages_that_chats_have(client: httpx.Client) -> None:
    items = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Add."}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": None},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "I add.", "annotations": []}],
        },
        CALL,
        {"type": "function_call_output", "call_id": "c1", "output": "19"},
        {"role": "user", "content": "And?"},
    ]
    function = {"name": "add", "arguments": '{"a": 12, "b": 7}'}
    call = {"id": "c1", "type": "function", "function": function}
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Add."},
        {"role": "assistant", "content": "I add.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "19"},
        {"role": "user", "content": "And?"},
    ]
    chat = client.post("/v1/chat/completions", json={"messages": messages, "max_tokens": 1}).json()
    counted = n_prompt(client, instructions="Be brief.", input=items)
    assert counted == chat["usage"]["prompt_tokens"]


def test_instructions_stand_before_what_a_developer_says(client: httpx.Client) -> None:
    both = [{"role": "developer", "content": "Add."}, *SUM]
    joined = [{"role": "system", "content": "Be brief.\n\nAdd."}, *SUM]
    assert n_prompt(client, input=both, instructions="Be brief.") == n_prompt(client, input=joined)


def test_a_response_can_be_held_to_a_schema(client: httpx.Client) -> None:
    schema = {
        "type": "object",
        "properties": {"sum": {"type": "integer"}},
        "required": ["sum"],
        "additionalProperties": False,
    }
    form = {"type": "json_schema", "name": "sum", "schema": schema, "strict": True}
    reply = ask(client, text={"format": form})
    assert set(json.loads(reply["output"][0]["content"][0]["text"])) == {"sum"}
    assert reply["text"] == {"format": form}


def test_logprobs_come_where_they_are_included(client: httpx.Client) -> None:
    body = {"include": ["message.output_text.logprobs"], "top_logprobs": 2}
    part = ask(client, **body)["output"][0]["content"][0]
    assert "".join(each["token"] for each in part["logprobs"]) == part["text"]
    assert all(len(each["top_logprobs"]) == 2 for each in part["logprobs"])
    told = events(client, **body)
    deltas = [each for each in told if each["type"] == "response.output_text.delta"]
    joined = [token["token"] for each in deltas for token in each["logprobs"]]
    assert joined == [each["token"] for each in part["logprobs"]]


def test_thoughts_are_an_item_before_the_message(thinking_client: httpx.Client) -> None:
    body = {"max_output_tokens": 12, "reasoning": {"effort": "high"}}
    item = ask(thinking_client, **body)["output"][0]
    assert item["type"] == "reasoning"
    assert item["content"][0]["type"] == "reasoning_text"
    told = events(thinking_client, **body)
    text = "".join(each["delta"] for each in told if "reasoning_text.delta" in each["type"])
    assert text == item["content"][0]["text"]
    assert kinds(told)[2:6] == [
        "output_item.added",
        "content_part.added",
        "reasoning_text.delta",
        "reasoning_text.done",
    ]


def test_thoughts_are_switched_off_and_sent_back(thinking_client: httpx.Client) -> None:
    thought = {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "Hm."}]}
    turns = [*SUM, thought, {"role": "assistant", "content": "19"}, *SUM]
    reply = ask(thinking_client, reasoning={"effort": "none"}, input=turns, max_output_tokens=3)
    assert [item["type"] for item in reply["output"]] == ["message"]


def test_what_an_agent_sends_is_taken_and_what_has_no_effect_is_named(client: httpx.Client) -> None:
    body = {
        "input": SUM,
        "tools": [ADD, {"type": "web_search"}, {"type": "custom", "name": "apply_patch"}],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "reasoning": {"effort": "medium", "summary": "auto"},
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "x",
        "client_metadata": {},
        "max_output_tokens": 1,
    }
    answer = client.post("/v1/responses", json=body)
    assert answer.status_code == 200
    named = answer.headers["x-akunu-ignored"].split(", ")
    assert named == [
        "prompt_cache_key",
        "client_metadata",
        "tools.web_search",
        "tools.custom",
        "reasoning.summary",
        "include.reasoning.encrypted_content",
        "reasoning",  # the packaged model does not think
    ]


# As Codex sends the tools of an MCP server.
WEATHER = {
    "type": "namespace",
    "name": "mcp__weather",
    "description": "Tools in the mcp__weather namespace.",
    "tools": [
        {
            "type": "function",
            "name": "get_weather",
            "description": "Get the weather in a city.",
            "strict": False,
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string", "enum": ["Paris"]}},
                "required": ["city"],
                "additionalProperties": False,
            },
        },
        {"type": "custom", "name": "patch"},
    ],
}


def test_functions_within_a_namespace_are_called_by_it_and_their_name(
    client: httpx.Client,
) -> None:
    body: dict[str, Any] = {
        "tools": [WEATHER],
        "tool_choice": "required",
        "input": [{"role": "user", "content": "What is the weather in Paris?"}],
        "max_output_tokens": 60,
    }
    reply = ask(client, **body)
    item = reply["output"][0]
    assert (item["type"], item["namespace"], item["name"], json.loads(item["arguments"])) == (
        *("function_call", "mcp__weather", "get_weather"),
        {"city": "Paris"},
    )
    told = events(client, **body)
    assert [each["item"]["namespace"] for each in told if "output_item" in each["type"]] == [
        "mcp__weather",
        "mcp__weather",
    ]
    (done,) = [each for each in told if each["type"].endswith("arguments.done")]
    assert done["name"] == "get_weather"
    # Sent back, the call is the one that the model knows.
    result = {"type": "function_call_output", "call_id": item["call_id"], "output": "sunny"}
    plain = {**item, "name": "mcp__weather__get_weather"}
    del plain["namespace"]
    assert n_prompt(client, **{**body, "input": [*body["input"], item, result]}) == n_prompt(
        client, **{**body, "input": [*body["input"], plain, result]}
    )
    answer = client.post("/v1/responses", json={**body, "max_output_tokens": 1})
    named = answer.headers["x-akunu-ignored"].split(", ")
    assert named == ["tools.namespace.description", "tools.custom"]


@each_line(
    ("field", "value"),
    [
        ("previous_response_id", "resp_1"),
        ("conversation", "conv_1"),
        ("background", True),
        ("truncation", "auto"),
        ("prompt", {"id": "x"}),
        ("input", [{"role": "user", "content": [{"type": "input_image"}]}]),
        ("input", [{"type": "item_reference", "id": "x"}]),
        ("input", [{"type": "function_call", "name": "add"}]),
        ("tools", [{"type": "namespace", "name": "mcp__weather"}]),
        ("tools", [{"type": "namespace", "tools": []}]),
        ("tools", [ADD, {"type": "namespace", "name": "n", "tools": [3]}]),
        ("input", []),
        ("instructions", 3),
        ("reasoning", {"efort": "low"}),
        ("text", {"fromat": {}}),
        ("temperature", -1),
        ("max_output_tokens", "many"),
        ("tools", [3]),
    ],
)
def test_what_makes_no_sense_or_is_not_done_is_refused_by_name(
    client: httpx.Client, field: str, value: object
) -> None:
    answer = client.post("/v1/responses", json={"input": SUM, field: value})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == field


def test_an_input_that_is_too_long_is_told_apart(client: httpx.Client) -> None:
    answer = client.post("/v1/responses", json={"input": "hello " * 2000})
    error = answer.json()["error"]
    assert (error["code"], error["param"]) == ("context_length_exceeded", "input")


def test_the_usual_mode_of_thinking_is_taken_and_others_are_refused(client: httpx.Client) -> None:
    answer = client.post("/v1/responses", json={"input": SUM, "reasoning": {"mode": "standard"}})
    assert answer.status_code == 200
    answer = client.post("/v1/responses", json={"input": SUM, "reasoning": {"mode": "pro"}})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "reasoning"
