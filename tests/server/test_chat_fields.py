"""/v1/chat/completions: fields that clients of OpenAI's and of other servers send."""

from __future__ import annotations

from typing import Any

import httpx
from test_chat import SUM, ask, chunks
from test_chat_forms import ADD, SPELL

from akunu.server.openai.chat_fields import CHAT_FIELDS
from lines import each_line

# What OpenAI's clients send and a local model has no use for.
WITHOUT_EFFECT = {
    "metadata": {"a": "b"},
    "store": True,
    "service_tier": "auto",
    "safety_identifier": "me",
    "prompt_cache_key": "k",
    "prompt_cache_retention": "24h",
    "prompt_cache_options": {},
    "verbosity": "low",
    "prediction": {"type": "content", "content": "19"},
    "moderation": {},
    "user": "me",
    "cache_prompt": True,
    "id_slot": 0,
    "return_progress": True,
}
# What other servers have beyond OpenAI's API.
LOCAL = (
    *("top_k", "min_p", "typical_p", "repeat_penalty", "repetition_penalty", "repeat_last_n"),
    *("dry_multiplier", "dry_base", "dry_allowed_length", "dry_penalty_last_n"),
    *("dry_sequence_breakers", "xtc_probability", "xtc_threshold", "mirostat", "mirostat_tau"),
    *("mirostat_eta", "dynatemp_range", "dynatemp_exponent", "grammar", "json_schema"),
    *("structured_outputs", "chat_template_kwargs", "continue_final_message"),
    *("add_generation_prompt", "reasoning_format", "thinking_budget_tokens", "lora", "n_probs"),
    *("samplers", "min_tokens", "ignore_eos", "stop_token_ids"),
)


def test_fields_without_effect_are_taken_and_named(client: httpx.Client) -> None:
    body = {"messages": SUM, "max_tokens": 3, **WITHOUT_EFFECT}
    answer = client.post("/v1/chat/completions", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-akunu-ignored"].split(", ") == list(WITHOUT_EFFECT)
    message = answer.json()["choices"][0]["message"]
    assert message == ask(client, max_tokens=3)["choices"][0]["message"]


def test_what_stands_in_stream_options_without_effect_is_named(client: httpx.Client) -> None:
    options = {"include_usage": True, "include_obfuscation": False}
    body = {"messages": SUM, "max_tokens": 1, "stream": True, "stream_options": options}
    answer = client.post("/v1/chat/completions", json=body)
    assert answer.headers["x-akunu-ignored"] == "stream_options.include_obfuscation"


@each_line("field", LOCAL)
def test_fields_of_other_servers_are_known(field: str) -> None:
    assert CHAT_FIELDS[field].effect in ("honoured", "refused")


def test_an_answer_has_all_that_clients_read(client: httpx.Client) -> None:
    reply = ask(client, max_tokens=3)
    head = {"id", "object", "created", "model", "system_fingerprint", "choices", "usage", "timings"}
    assert set(reply) == head
    assert isinstance(reply["created"], int)
    assert set(reply["choices"][0]) == {"index", "message", "logprobs", "finish_reason"}
    assert set(reply["usage"]) == {
        *("prompt_tokens", "completion_tokens", "total_tokens"),
        *("prompt_tokens_details", "completion_tokens_details"),
    }


def test_keys_of_messages_that_nobody_reads_are_named(client: httpx.Client) -> None:
    part = {"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}, "mood": None}
    messages = [{"role": "user", "content": [part], "mood": "good"}, *SUM]
    for path, name in (("/v1/chat/completions", "messages"), ("/v1/responses", "input")):
        body = {name: messages, "max_tokens": 1, "max_output_tokens": 1}
        del body["max_output_tokens" if name == "messages" else "max_tokens"]
        if name == "input":
            part["type"] = "input_text"
        answer = client.post(path, json=body)
        assert answer.status_code == 200, answer.text
        named = answer.headers["x-akunu-ignored"].split(", ")
        assert sorted(named) == [f"{name}.content.cache_control", f"{name}.mood"]
    turns = [{"role": "user", "content": "Hi", "mood": "good"}]
    for path in ("/v1/messages", "/api/chat"):
        answer = client.post(path, json={"messages": turns, "max_tokens": 1, "stream": False})
        assert answer.headers["x-akunu-ignored"].split(", ")[-1] == "messages.mood"


def test_headers_of_openais_clients_change_nothing(client: httpx.Client) -> None:
    headers = {
        "authorization": "Bearer sk-any",
        "api-key": "any",
        "x-stainless-lang": "python",
        "x-stainless-retry-count": "0",
        "x-stainless-read-timeout": "600",
        "openai-organization": "org",
    }
    body = {"messages": SUM, "max_tokens": 1}
    answer = client.post("/v1/chat/completions", json=body, headers=headers)
    assert answer.status_code == 200
    assert "x-akunu-ignored" not in answer.headers


def test_each_chunk_has_its_times_where_that_is_asked_for(client: httpx.Client) -> None:
    streamed = chunks(client, timings_per_token=True, stream_options={"include_usage": True})
    told = [chunk["timings"]["predicted_n"] for chunk in streamed]
    assert told == sorted(told)
    assert told[-1] == streamed[-1]["usage"]["completion_tokens"]
    assert not any("timings" in chunk for chunk in chunks(client))


def test_any_number_of_stop_strings_is_taken(client: httpx.Client) -> None:
    stop = [f"never {n}" for n in range(40)] + ["="]
    assert ask(client, stop=stop)["choices"][0]["message"]["content"] == "12 + 7 "


def test_a_token_that_must_not_come_again_does_not(client: httpx.Client) -> None:
    """As far as penalties go: with the highest ones the second text repeats nothing."""
    body = {"temperature": 0, "max_tokens": 12, "ignore_eos": True, "logprobs": True}
    choice = ask(client, **body, presence_penalty=2, frequency_penalty=2)["choices"][0]
    plain = ask(client, **body)["choices"][0]
    told = [[each["token"] for each in one["logprobs"]["content"]] for one in (choice, plain)]
    assert len(set(told[0])) > len(set(told[1]))


def several_calls() -> dict[str, Any]:
    # A model that cannot end its text calls again.
    return {"tools": [ADD, SPELL], "tool_choice": "required", "ignore_eos": True, "max_tokens": 90}


def test_calls_of_a_stream_are_numbered_and_named_once(client: httpx.Client) -> None:
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks(client, **several_calls())]
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    begun = [call for call in calls if "id" in call]
    assert len(begun) > 1
    assert [call["index"] for call in begun] == list(range(len(begun)))
    assert len({call["id"] for call in begun}) == len(begun)
    assert all(call["id"] and call["function"]["name"] for call in begun)
    for call in calls:
        assert isinstance(call["index"], int)
        assert isinstance(call["function"]["arguments"], str)
        assert ("name" in call["function"]) == ("type" in call) == ("id" in call)


def test_one_call_is_all_where_calls_may_not_be_parallel(client: httpx.Client) -> None:
    reply = ask(client, **several_calls(), parallel_tool_calls=False)
    assert len(reply["choices"][0]["message"]["tool_calls"]) == 1
