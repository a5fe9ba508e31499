"""Ollama's routes below /api: chats, texts, and what is known of the models."""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from add_tool import FUNCTION
from running_server import EMBER, running

import akunu
from akunu.server import ServedModels, ServerSettings
from akunu.server.ollama.fields import chat_request
from lines import each_line

SUM = [{"role": "user", "content": "What is 12 + 7?"}]
ADD = {"type": "function", "function": FUNCTION}


def post(client: httpx.Client, path: str, **body: Any) -> Any:
    answer = client.post(path, json={"model": "ember", "stream": False, **body})
    assert answer.status_code == 200, answer.text
    return answer.json()


def chat(client: httpx.Client, **body: Any) -> Any:
    return post(client, "/api/chat", **{"messages": SUM, **body})


def lines(client: httpx.Client, path: str, **body: Any) -> list[dict[str, Any]]:
    """The objects of a stream, of which the last alone is done."""
    with client.stream("POST", path, json={"model": "ember", **body}) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "application/x-ndjson"
        found = [json.loads(line) for line in answer.iter_lines()]
    assert [each["done"] for each in found] == [False] * (len(found) - 1) + [True]
    return found


def test_a_reply_has_the_models_text_and_times_in_nanoseconds(client: httpx.Client) -> None:
    with akunu.load() as model:
        expected = model.chat(SUM)
    reply = chat(client)
    assert reply["message"] == {"role": "assistant", "content": expected}
    assert (reply["model"], reply["done"], reply["done_reason"]) == ("ember", True, "stop")
    assert datetime.fromisoformat(reply["created_at"].replace("Z", "+00:00")).tzinfo is not None
    assert reply["prompt_eval_count"] == expected.prompt_tokens
    assert reply["eval_count"] == expected.completion_tokens
    parts = reply["prompt_eval_duration"] + reply["eval_duration"]
    assert 0 < parts <= reply["total_duration"]
    assert all(isinstance(reply[name], int) for name in reply if name.endswith("_duration"))


def test_a_chat_is_a_stream_unless_told_otherwise(client: httpx.Client) -> None:
    told = lines(client, "/api/chat", messages=SUM)
    assert len(told) > 1  # how many tokens come together depends on the machine
    text = "".join(each["message"]["content"] for each in told)
    whole = chat(client)
    assert text == whole["message"]["content"]
    assert told[-1]["eval_count"] == whole["eval_count"]
    assert told[-1]["message"] == {"role": "assistant", "content": ""}
    assert not any("eval_count" in each for each in told[:-1])


def test_generate_goes_on_from_a_prompt_as_a_chat_or_as_it_is(client: httpx.Client) -> None:
    prompt = SUM[0]["content"]
    reply = post(client, "/api/generate", prompt=prompt)
    assert reply["response"] == chat(client)["message"]["content"]
    with akunu.load() as model:
        plain = model.generate(prompt, max_tokens=6)
        brief = model.chat([{"role": "system", "content": "Be brief."}, *SUM])
    options = {"num_predict": 6}
    assert (
        post(client, "/api/generate", prompt=prompt, raw=True, options=options)["response"] == plain
    )
    asked = post(client, "/api/generate", prompt=prompt, system="Be brief.")
    assert (asked["response"], asked["prompt_eval_count"]) == (brief, brief.prompt_tokens)
    told = lines(client, "/api/generate", prompt=prompt)
    assert "".join(each["response"] for each in told) == reply["response"]


def test_options_say_how_tokens_are_chosen(client: httpx.Client) -> None:
    assert chat(client, options={"num_predict": 2})["done_reason"] == "length"
    assert chat(client, options={"num_predict": -1})["done_reason"] == "stop"
    assert chat(client, options={"stop": ["="]})["message"]["content"] == "12 + 7 "
    wild = {"temperature": 9.0, "top_k": 0, "top_p": 1.0, "num_predict": 6}
    texts = {chat(client, options={**wild, "seed": seed})["message"]["content"] for seed in (1, 1)}
    assert len(texts) == 1


def test_a_format_is_json_or_a_schema(client: httpx.Client) -> None:
    schema = {
        "type": "object",
        "properties": {"sum": {"type": "integer"}},
        "required": ["sum"],
        "additionalProperties": False,
    }
    assert set(json.loads(chat(client, format=schema)["message"]["content"])) == {"sum"}
    text = chat(client, format="json", options={"num_predict": 20})["message"]["content"]
    assert text.startswith("{")


def test_a_call_has_its_arguments_as_an_object(client: httpx.Client) -> None:
    asked = {"messages": SUM, "tools": [ADD], "tool_choice": "required"}
    (call,) = chat(client, **asked)["message"]["tool_calls"]
    assert call["function"] == {"index": 0, "name": "add", "arguments": {"a": 12, "b": 7}}
    told = lines(client, "/api/chat", **asked)
    calls = [call for each in told for call in each["message"].get("tool_calls", ())]
    assert [each["function"] for each in calls] == [call["function"]]


def test_results_find_their_calls_without_ids(client: httpx.Client) -> None:
    call = {"function": {"name": "add", "arguments": {"a": 12, "b": 7}}}
    turns = [
        *SUM,
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": "19", "tool_name": "add"},
    ]
    assert chat(client, messages=turns, options={"num_predict": 1})["eval_count"] == 1


@pytest.mark.parametrize("names", [{}, {"tool_name": "nobody"}])
def test_results_without_a_known_name_belong_to_the_calls_in_their_order(
    client: httpx.Client, names: dict[str, str]
) -> None:
    calls = [
        {"id": each, "function": {"name": "add", "arguments": {"a": 1, "b": 2}}} for each in "xy"
    ]
    results = [{"role": "tool", "content": "3", **names} for _ in calls]
    turns = [*SUM, {"role": "assistant", "content": "", "tool_calls": calls}, *results]
    assert chat(client, messages=turns, options={"num_predict": 1})["eval_count"] == 1
    asked = chat_request({"model": "ember", "messages": turns}, ServerSettings())
    messages = asked.arguments["messages"]
    assert [message["tool_call_id"] for message in messages[-2:]] == ["x", "y"]


def test_thoughts_have_a_field_of_their_own(thinking_client: httpx.Client) -> None:
    body = {"model": "thinker", "think": True, "options": {"num_predict": 8}}
    message = chat(thinking_client, **body)["message"]
    assert message["thinking"]
    told = lines(thinking_client, "/api/chat", messages=SUM, **body)
    assert "".join(each["message"].get("thinking", "") for each in told) == message["thinking"]
    assert "thinking" not in chat(thinking_client, **{**body, "think": False})["message"]


def test_logprobs_are_those_of_the_tokens(client: httpx.Client) -> None:
    reply = chat(client, logprobs=True, top_logprobs=2)
    assert "".join(each["token"] for each in reply["logprobs"]) == reply["message"]["content"]
    assert all(len(each["top_logprobs"]) == 2 for each in reply["logprobs"])


def test_a_request_without_a_prompt_loads_the_model_or_unloads_it(serving: Any) -> None:
    with serving() as client:
        assert client.get("/api/ps").json() == {"models": []}
        assert post(client, "/api/generate")["done_reason"] == "load"
        (loaded,) = client.get("/api/ps").json()["models"]
        assert (loaded["name"], loaded["context_length"]) == ("ember", 1024)
        assert loaded["size"] > 10_000_000
        assert post(client, "/api/chat", messages=[], keep_alive=0)["done_reason"] == "unload"
        assert client.get("/api/ps").json() == {"models": []}


def test_models_are_described(client: httpx.Client) -> None:
    chat(client)
    (listed,) = client.get("/api/tags").json()["models"]
    assert (listed["name"], listed["details"]["family"]) == ("ember", "qwen3")
    assert listed["size"] == EMBER.stat().st_size
    assert re.fullmatch("[0-9a-f]{64}", listed["digest"])
    details = listed["details"]
    assert (details["parameter_size"], details["quantization_level"]) == ("10.49M", "Q8_0")
    shown = client.post("/api/show", json={"model": "ember:latest"}).json()
    assert shown["capabilities"] == ["completion", "tools"]
    assert shown["model_info"]["qwen3.context_length"] == 1024
    assert "<|im_start|>" in shown["template"]
    told = client.get("/api/version").json()
    assert told["akunu"] == akunu.__version__
    # `codex --oss` wants no older one, which had no /v1/responses.
    assert tuple(map(int, told["version"].split("."))) >= (0, 13, 4)


def test_a_model_is_listed_with_its_size_before_it_is_loaded(tmp_path: Path) -> None:
    models = ServedModels({"a": "ember", "gone": str(tmp_path / "none.gguf")})
    with running(models) as client:
        known, gone = client.get("/api/tags").json()["models"]
        assert known["details"]["quantization_level"] == "Q8_0"
        assert (gone["size"], gone["digest"]) == (0, "")
        assert client.get("/api/ps").json() == {"models": []}


def test_fields_and_options_without_effect_are_named(client: httpx.Client) -> None:
    body = {"keep_alive": "5m", "think": True, "options": {"num_ctx": 99, "num_predict": 1}}
    answer = client.post("/api/chat", json={"model": "ember", "messages": SUM, **body})
    assert answer.headers["x-akunu-ignored"] == "options.num_ctx, think"


@each_line(
    ("path", "body", "named"),
    [
        ("chat", {"messages": [{"role": "user", "content": "", "images": ["aa"]}]}, "images"),
        ("chat", {"messages": SUM, "options": {"mirostat": 2}}, "mirostat"),
        ("chat", {"messages": SUM, "options": {"temperature": -1}}, "temperature"),
        ("chat", {"messages": SUM, "format": "xml"}, "format"),
        ("chat", {"messages": SUM, "think": 3}, "think"),
        ("generate", {"prompt": "a", "template": "{{ x }}"}, "template"),
        ("generate", {"prompt": "a", "context": [1]}, "context"),
        ("generate", {"prompt": "a", "raw": True, "system": "b"}, "system"),
        ("generate", {"prompt": "a", "suffix": "b"}, "suffix"),
        ("generate", {"prompt": "a", "keep_alive": "soon"}, "keep_alive"),
        ("show", {"model": 3}, "model"),
    ],
)
def test_what_is_not_done_here_is_refused_in_ollamas_shape(
    client: httpx.Client, path: str, body: dict[str, Any], named: str
) -> None:
    answer = client.post(f"/api/{path}", json={"model": "ember", **body})
    assert answer.status_code == 400
    assert set(answer.json()) == {"error"}
    assert named in answer.json()["error"]


def test_a_model_that_is_not_there_is_404(client: httpx.Client) -> None:
    answer = client.post("/api/chat", json={"model": "llama3:8b", "messages": SUM})
    assert answer.status_code == 404
    assert "llama3:8b" in answer.json()["error"]


def test_without_the_name_of_a_model_the_first_answers_as_on_all_routes(
    client: httpx.Client,
) -> None:
    for path, asked in (
        ("/api/chat", {"messages": SUM}),
        ("/api/generate", {"prompt": "Hello"}),
    ):
        answer = client.post(path, json={**asked, "stream": False, "options": {"num_predict": 1}})
        assert answer.json()["model"] == "ember"
    assert "qwen3.context_length" in client.post("/api/show", json={}).json()["model_info"]
