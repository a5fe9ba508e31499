"""/v1/chat/completions: what comes back, whole and as a stream."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

import akunu

SUM = [{"role": "user", "content": "What is 12 + 7?"}]


def ask(client: httpx.Client, **body: Any) -> Any:
    answer = client.post("/v1/chat/completions", json={"messages": SUM, **body})
    assert answer.status_code == 200, answer.text
    return answer.json()


def chunks(client: httpx.Client, **body: Any) -> list[dict[str, Any]]:
    """The chunks of a stream, which ends as it should."""
    body = {"messages": SUM, "stream": True, **body}
    with client.stream("POST", "/v1/chat/completions", json=body) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        lines = [line for line in answer.iter_lines() if line]
    assert all(line.startswith("data: ") for line in lines)
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


def test_a_reply_is_the_one_that_the_model_gives_in_python(client: httpx.Client) -> None:
    with akunu.load() as model:
        expected = model.chat(SUM, **model.sampling_defaults)
    reply = ask(client)
    assert reply["object"] == "chat.completion"
    assert reply["id"].startswith("chatcmpl-")
    assert reply["model"] == "ember"
    assert reply["system_fingerprint"] == f"akunu-{akunu.__version__}"
    (choice,) = reply["choices"]
    assert choice["index"] == 0
    assert choice["finish_reason"] == "stop"
    assert choice["logprobs"] is None
    assert choice["message"] == {"role": "assistant", "content": expected, "refusal": None}
    usage = reply["usage"]
    assert usage["prompt_tokens"] == expected.prompt_tokens
    assert usage["completion_tokens"] == expected.completion_tokens
    assert usage["total_tokens"] == expected.prompt_tokens + expected.completion_tokens
    assert usage["completion_tokens_details"] == {"reasoning_tokens": 0}


def test_what_was_asked_before_is_found_in_the_cache(client: httpx.Client) -> None:
    ask(client)
    cached = ask(client)["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert cached > 0


def test_timings_count_what_usage_counts(client: httpx.Client) -> None:
    reply = ask(client)
    timings = reply["timings"]
    assert timings["prompt_n"] + timings["cache_n"] == reply["usage"]["prompt_tokens"]
    assert timings["predicted_n"] == reply["usage"]["completion_tokens"]
    assert timings["prompt_ms"] > 0


def test_a_stream_has_the_pieces_of_the_whole_reply(client: httpx.Client) -> None:
    whole = ask(client)
    streamed = chunks(client)
    deltas = [chunk["choices"][0]["delta"] for chunk in streamed]
    text = "".join(delta.get("content", "") for delta in deltas)
    assert text == whole["choices"][0]["message"]["content"]
    assert len({chunk["id"] for chunk in streamed}) == 1
    assert {chunk["object"] for chunk in streamed} == {"chat.completion.chunk"}


def test_the_role_is_in_the_first_delta_alone(client: httpx.Client) -> None:
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks(client)]
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert not any("role" in delta for delta in deltas[1:])


def test_the_last_chunk_has_an_empty_delta_and_the_reason(client: httpx.Client) -> None:
    choices = [chunk["choices"][0] for chunk in chunks(client, max_tokens=3)]
    assert [choice["finish_reason"] for choice in choices[:-1]] == [None] * (len(choices) - 1)
    assert choices[-1] == {"index": 0, "delta": {}, "finish_reason": "length"}


def test_usage_comes_last_in_a_stream_and_only_when_asked_for(client: httpx.Client) -> None:
    assert not any("usage" in chunk for chunk in chunks(client))
    streamed = chunks(client, stream_options={"include_usage": True})
    assert [chunk["usage"] for chunk in streamed[:-1]] == [None] * (len(streamed) - 1)
    assert streamed[-1]["choices"] == []
    whole = ask(client)["usage"]
    assert streamed[-1]["usage"]["total_tokens"] == whole["total_tokens"]


def test_the_most_tokens_have_two_names(client: httpx.Client) -> None:
    for name in ("max_tokens", "max_completion_tokens"):
        reply = ask(client, **{name: 2})
        assert reply["usage"]["completion_tokens"] == 2
        assert reply["choices"][0]["finish_reason"] == "length"


def test_several_answers_share_one_prompt(client: httpx.Client) -> None:
    wild = {"seed": 5, "temperature": 9.0, "top_k": 0, "top_p": 1.0, "max_tokens": 6}
    body = {"n": 3, **wild}
    reply = ask(client, **body)
    texts = [choice["message"]["content"] for choice in reply["choices"]]
    assert [choice["index"] for choice in reply["choices"]] == [0, 1, 2]
    assert len(set(texts)) == 3
    alone = ask(client, **wild)
    assert alone["choices"][0]["message"]["content"] == texts[0]
    assert reply["usage"]["prompt_tokens"] == alone["usage"]["prompt_tokens"]
    streamed: dict[int, str] = {0: "", 1: "", 2: ""}
    for chunk in chunks(client, **body):
        for choice in chunk["choices"]:
            streamed[choice["index"]] += choice["delta"].get("content", "")
    assert list(streamed.values()) == texts


def test_a_seed_gives_the_same_text_again(client: httpx.Client) -> None:
    texts = {
        ask(client, seed=seed, temperature=2.0)["choices"][0]["message"]["content"]
        for seed in (7, 7)
    }
    assert len(texts) == 1


def test_a_stop_string_ends_the_text_before_it(client: httpx.Client) -> None:
    for stop in ("=", ["=", "never"]):
        choice = ask(client, stop=stop)["choices"][0]
        assert choice["message"]["content"] == "12 + 7 "
        assert choice["finish_reason"] == "stop"


def test_a_bias_bans_a_token(client: httpx.Client) -> None:
    with akunu.load() as model:
        first = model.chat(SUM, max_tokens=1).token_ids[0]
    text = ask(client, logit_bias={str(first): -100}, temperature=0)
    assert not text["choices"][0]["message"]["content"].startswith("12")


def test_logprobs_are_those_of_the_tokens(client: httpx.Client) -> None:
    choice = ask(client, logprobs=True, top_logprobs=2)["choices"][0]
    content = choice["logprobs"]["content"]
    spelled = b"".join(bytes(token["bytes"]) for token in content)
    assert spelled.decode() == choice["message"]["content"]
    assert all(len(token["top_logprobs"]) == 2 for token in content)
    assert content[0]["top_logprobs"][0]["logprob"] >= content[0]["logprob"]
    streamed = chunks(client, logprobs=True, top_logprobs=2)
    parts = [chunk["choices"][0]["logprobs"] for chunk in streamed]
    joined = [token for part in parts if part for token in part["content"]]
    assert [token["token"] for token in joined] == [token["token"] for token in content]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/chat/completions"])
def test_routes_are_there_with_and_without_v1(client: httpx.Client, path: str) -> None:
    assert client.post(path, json={"messages": SUM, "max_tokens": 1}).status_code == 200


def test_messages_of_all_roles_and_forms_are_read(client: httpx.Client) -> None:
    call = {"name": "add", "arguments": '{"a": 1}'}
    messages = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Hello"}], "name": "Ann"},
        {"role": "assistant", "content": None, "refusal": "No."},
        {"role": "user", "content": " "},
        {"role": "assistant", "content": None, "function_call": call},
        {"role": "function", "name": "add", "content": "1"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": call}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "1"},
        {"role": "user", "content": "And?"},
    ]
    assert ask(client, messages=messages, max_tokens=1)["usage"]["completion_tokens"] == 1


def test_fields_without_effect_and_unknown_ones_are_named(client: httpx.Client) -> None:
    body = {"messages": SUM, "max_tokens": 1, "user": "me", "store": True, "new\r\nfield": 1}
    answer = client.post("/v1/chat/completions", json=body)
    assert answer.status_code == 200
    assert answer.headers["x-akunu-ignored"] == "user, store, new%5Cr%5Cnfield"
    answer = client.post("/v1/chat/completions", json={"messages": SUM, "max_tokens": 1})
    assert "x-akunu-ignored" not in answer.headers


def test_a_field_that_is_null_is_not_given(client: httpx.Client) -> None:
    nothing = dict.fromkeys(("temperature", "tools", "response_format", "stop", "audio", "n"))
    assert ask(client, **nothing)["choices"] == ask(client)["choices"]


def test_the_tokens_of_a_prompt_are_counted_without_writing(client: httpx.Client) -> None:
    body = {"messages": [{"role": "user", "content": "What is 12 + 7?"}], "max_tokens": 1}
    usage = client.post("/v1/chat/completions", json=body).json()["usage"]
    answer = client.post("/v1/chat/completions/input_tokens", json=body)
    assert answer.json() == {"input_tokens": usage["prompt_tokens"]}
