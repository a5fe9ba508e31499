"""Images in requests, in each dialect: the same prompt as in Python, and refused by name."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from image_models import N_TOKENS, drawn, encoded, question, url_of, write
from PIL import Image
from running_server import running

import akunu
from akunu import LoadOptions
from akunu.server import ServedModels
from lines import each_line

FIRST, SECOND = drawn(1), drawn(2)
ASK = {"max_tokens": 4, "temperature": 0, "ignore_eos": True, "logprobs": True}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("images") / "model")


@pytest.fixture(scope="module")
def reader(folder: Path) -> Iterator[httpx.Client]:
    """A client of a server whose model reads images."""
    models = ServedModels({"gemma": str(folder)}, LoadOptions(device="cpu", context=512))
    with running(models, max_body=4 << 20) as client:
        yield client


def image_url(image: Image.Image) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url_of(image)}}


def source(image: Image.Image) -> dict[str, Any]:
    return {"type": "base64", "media_type": "image/png", "data": bare(image)}


def bare(image: Image.Image) -> str:
    return base64.b64encode(encoded(image)).decode()


def said(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def chat(client: httpx.Client, *messages: dict[str, Any], **body: Any) -> Any:
    answer = client.post("/v1/chat/completions", json={"messages": messages, **ASK, **body})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_reply_about_images_is_the_one_of_python(reader: httpx.Client, folder: Path) -> None:
    message = {
        "role": "user",
        "content": [image_url(FIRST), said("What is this?"), image_url(SECOND)],
    }
    reply = chat(reader, message)
    again = chat(reader, message)
    with akunu.load(folder, device="cpu", context=512) as model:
        expected = model.chat(
            [question(FIRST, SECOND)], max_tokens=4, temperature=0, ignore_eos=True, logprobs=0
        )
    assert reply["choices"][0]["message"]["content"] == expected
    assert reply["usage"]["prompt_tokens"] == expected.prompt_tokens > 2 * N_TOKENS
    found = [each["logprob"] for each in reply["choices"][0]["logprobs"]["content"]]
    assert found == [each.logprob for each in expected.logprobs]
    assert again["choices"] == reply["choices"]
    cached = again["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert cached == expected.prompt_tokens - 1
    with reader.stream(
        "POST", "/v1/chat/completions", json={"messages": [message], **ASK, "stream": True}
    ) as answer:
        assert answer.status_code == 200
        assert answer.read().endswith(b"data: [DONE]\n\n")


def test_another_image_of_the_same_size_shares_nothing_behind_it(reader: httpx.Client) -> None:
    def asked(image: Image.Image) -> int:
        message = {"role": "user", "content": [image_url(image), said("How many are there?")]}
        details = chat(reader, message)["usage"]["prompt_tokens_details"]
        n_cached: int = details["cached_tokens"]
        return n_cached

    asked(drawn(50))
    n_before = asked(drawn(51))
    assert n_before < N_TOKENS
    assert asked(drawn(50)) > N_TOKENS
    assert asked(drawn(52)) == n_before


def test_images_of_earlier_turns_are_read_again_from_the_cache(reader: httpx.Client) -> None:
    first = {"role": "user", "content": [image_url(drawn(60)), said("What?")]}
    n_first = chat(reader, first)["usage"]["prompt_tokens"]
    more = [first, {"role": "assistant", "content": "ta"}]
    reply = chat(reader, *more, {"role": "user", "content": [said("And?"), image_url(drawn(61))]})
    assert reply["usage"]["prompt_tokens_details"]["cached_tokens"] >= n_first - 1


def test_every_dialect_makes_the_same_prompt(reader: httpx.Client) -> None:
    expected = chat(reader, {"role": "user", "content": [image_url(FIRST), said("What is this?")]})[
        "usage"
    ]["prompt_tokens"]
    of_anthropic = [
        {
            "role": "user",
            "content": [{"type": "image", "source": source(FIRST)}, said("What is this?")],
        }
    ]
    of_responses = [
        {
            "role": "user",
            "content": [
                {"type": "input_image", "image_url": url_of(FIRST), "detail": "high"},
                {"type": "input_text", "text": "What is this?"},
            ],
        }
    ]
    of_ollama = {"role": "user", "content": "What is this?", "images": [bare(FIRST)]}
    requests = [
        ("/v1/messages", {"messages": of_anthropic, "max_tokens": 1}),
        ("/v1/responses", {"input": of_responses, "max_output_tokens": 1}),
        ("/api/chat", {"model": "gemma", "messages": [of_ollama], "stream": False}),
        (
            "/api/generate",
            {"model": "gemma", "prompt": "What is this?", "images": [bare(FIRST)], "stream": False},
        ),
    ]
    for path, body in requests:
        if path.startswith("/api"):
            body = {**body, "options": {"num_predict": 1}}
        answer = reader.post(path, json=body)
        assert answer.status_code == 200, answer.text
        said_of = answer.json()
        usage = said_of.get("usage", {})
        read = usage.get("input_tokens", said_of.get("prompt_eval_count"))
        cached = usage.get("cache_read_input_tokens", 0)
        assert read + cached == expected, path
    answer = reader.post("/v1/messages/count_tokens", json={"messages": of_anthropic})
    assert answer.json() == {"input_tokens": expected}
    ignored = reader.post("/v1/responses", json=requests[1][1]).headers["x-akunu-ignored"]
    assert ignored == "input.content.detail"


def test_results_of_tools_may_have_images(reader: httpx.Client, folder: Path) -> None:
    """A screenshot, say: an agent's session goes on with it, in every dialect."""
    ask, name, arguments = "What is there?", "look", '{"at": 1}'
    function = {"name": name, "parameters": {"type": "object"}}
    call = {"name": name, "arguments": arguments}
    calls = [{"id": "c1", "type": "function", "function": call}]
    result = [image_url(FIRST), said("A picture.")]
    of_openai = [
        {"role": "user", "content": ask},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c1", "content": result},
    ]
    tools = [{"type": "function", "function": function}]
    expected = chat(reader, *of_openai, tools=tools)["usage"]["prompt_tokens"]
    with akunu.load(folder, device="cpu", context=512) as model:
        image = {"type": "image", "image": FIRST}
        turns = [*of_openai[:2], {**of_openai[2], "content": [image, said("A picture.")]}]
        assert model.chat(turns, tools=tools, max_tokens=1).prompt_tokens == expected
    as_text = [*of_openai[:2], {**of_openai[2], "content": "A picture."}]
    n_text = chat(reader, *as_text, tools=tools)["usage"]["prompt_tokens"]
    assert expected >= n_text + N_TOKENS
    shown = [{"type": "image", "source": source(FIRST)}, said("A picture.")]
    of_anthropic = [
        {"role": "user", "content": ask},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c1", "name": name, "input": {"at": 1}}],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "c1", "content": shown}],
        },
    ]
    of_responses = [
        {"role": "user", "content": ask},
        {"type": "function_call", "call_id": "c1", **call},
        {
            "type": "function_call_output",
            "call_id": "c1",
            "output": [
                {"type": "input_image", "image_url": url_of(FIRST)},
                {"type": "input_text", "text": "A picture."},
            ],
        },
    ]
    of_ollama = [
        {"role": "user", "content": ask},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": name, "arguments": {"at": 1}}}],
        },
        {"role": "tool", "tool_name": name, "content": "A picture.", "images": [bare(FIRST)]},
    ]
    requests = [
        (
            "/v1/messages",
            {
                "messages": of_anthropic,
                "max_tokens": 1,
                "tools": [{"name": name, "input_schema": {"type": "object"}}],
            },
        ),
        (
            "/v1/responses",
            {
                "input": of_responses,
                "max_output_tokens": 1,
                "tools": [{"type": "function", **function}],
            },
        ),
        (
            "/api/chat",
            {
                "model": "gemma",
                "messages": of_ollama,
                "stream": False,
                "options": {"num_predict": 1},
                "tools": tools,
            },
        ),
    ]
    for path, body in requests:
        answer = reader.post(path, json=body)
        assert answer.status_code == 200, (path, answer.text)
        told = answer.json()
        usage = told.get("usage", {})
        read = usage.get("input_tokens", told.get("prompt_eval_count"))
        read += usage.get("cache_read_input_tokens", 0)
        # Each writes the definition of the tool in its way.
        assert abs(read - expected) < 25, path
    result_ = of_anthropic[2]["content"][0]
    assert isinstance(result_, dict)
    result_["is_error"] = True
    answer = reader.post("/v1/messages", json={"messages": of_anthropic, "max_tokens": 1})
    assert answer.status_code == 200


def test_what_a_model_reads_is_told(reader: httpx.Client, client: httpx.Client) -> None:
    for each, name, reads in ((reader, "gemma", True), (client, "ember", False)):
        chat(each, {"role": "user", "content": "Hi"})  # so that it is loaded
        shown = each.post("/api/show", json={"model": name}).json()
        assert ("vision" in shown["capabilities"]) is reads
        assert each.get("/props").json()["modalities"]["vision"] is reads
        headers = {"anthropic-version": "2023-06-01"}
        model = each.get(f"/v1/models/{name}", headers=headers).json()
        assert model["capabilities"]["image_input"] == {"supported": reads}


@each_line(
    ("part", "why"),
    [
        (image_url(FIRST) | {"image_url": {"url": "https://a.example/cat.png"}}, "fetch"),
        (image_url(FIRST) | {"image_url": "http://127.0.0.1/cat.png"}, "fetch"),
        (image_url(FIRST) | {"image_url": {"url": "file:///etc/hostname"}}, "fetch"),
        (image_url(FIRST) | {"image_url": {"url": "/etc/hostname"}}, "fetch"),
        (image_url(FIRST) | {"image_url": {"url": 3}}, "must be a text"),
        ({"type": "image_url"}, "must be a text"),
        ({"type": "image", "image": "/etc/hostname"}, "fetch"),
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}, "and BMP"),
        ({"type": "image_url", "image_url": {"url": url_of(FIRST)[:-60]}}, "base64|damaged"),
        (
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,BOMB"}},
            "12000 x 9000 pixels|too large",
        ),
        ({"type": "image_url", "image_url": {"url": "data:image/svg+xml,<svg/>"}}, "base64"),
        ({"type": "input_image"}, "input_image"),
    ],
)
def test_bad_images_are_refused_by_name(
    reader: httpx.Client, part: dict[str, Any], why: str
) -> None:
    url = part.get("image_url")
    if isinstance(url, dict) and str(url["url"]).endswith(
        "BOMB"
    ):  # 17 KB become 108 million pixels
        part = image_url(Image.new("1", (12000, 9000)))
    body = {"messages": [{"role": "user", "content": [said("What?"), part]}], "max_tokens": 1}
    answer = reader.post("/v1/chat/completions", json=body)
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert error["param"] == "messages"
    assert "messages[0].content[1]" in error["message"]
    assert any(each in error["message"] for each in why.split("|")), error["message"]


@each_line(
    ("path", "body", "why"),
    [
        (
            "/v1/messages",
            {"type": "image", "source": {"type": "url", "url": "https://a.example/cat.png"}},
            "fetch",
        ),
        ("/v1/messages", {"type": "image", "source": {"type": "file", "file_id": "f"}}, "fetch"),
        ("/v1/messages", {"type": "image", "source": {"type": "base64"}}, "source.data"),
        ("/v1/messages", {"type": "image"}, "source must be"),
        ("/v1/messages", {"type": "document", "source": {}}, "not supported"),
        (
            "/v1/messages",
            {
                "type": "tool_result",
                "tool_use_id": "1",
                "content": [
                    {"type": "image", "source": {"type": "url", "url": "https://a.example"}}
                ],
            },
            "fetch",
        ),
        (
            "/v1/messages",
            {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "document"}]},
            "text and images",
        ),
        ("/v1/responses", {"type": "input_image", "file_id": "f"}, "fetch"),
        ("/v1/responses", {"type": "input_image", "image_url": "https://a.example/"}, "fetch"),
        ("/v1/responses", {"type": "input_file", "file_data": "a"}, "only text"),
    ],
)
def test_other_dialects_refuse_images_that_are_not_there(
    reader: httpx.Client, path: str, body: dict[str, Any], why: str
) -> None:
    field = "input" if path.endswith("responses") else "messages"
    answer = reader.post(path, json={field: [{"role": "user", "content": [body]}], "max_tokens": 1})
    assert answer.status_code == 400, answer.text
    assert why in answer.json()["error"]["message"]


@pytest.mark.parametrize("images", ["aa", [3], ["!!"]])
def test_ollama_s_images_are_base64(reader: httpx.Client, images: object) -> None:
    body = {"model": "gemma", "messages": [{"role": "user", "content": "a", "images": images}]}
    answer = reader.post("/api/chat", json=body)
    assert answer.status_code == 400
    assert "base64" in answer.json()["error"]


def test_a_model_without_an_encoder_says_so(client: httpx.Client) -> None:
    body = {"messages": [{"role": "user", "content": [said("What?"), image_url(FIRST)]}]}
    answer = client.post("/v1/chat/completions", json=body)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["param"] == "messages"
    assert error["message"].startswith("messages[0].content[1] is of type 'image': only text is")


def test_images_that_do_not_fit_are_a_context_that_is_too_long(reader: httpx.Client) -> None:
    body = {"messages": [{"role": "user", "content": [image_url(FIRST)] * 40}]}
    answer = reader.post("/v1/chat/completions", json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "context_length_exceeded"
    shown = {"type": "base64", "media_type": "image/png", "data": url_of(FIRST).partition(",")[2]}
    asked = [{"role": "user", "content": [{"type": "image", "source": shown}] * 40}]
    answer = reader.post("/v1/messages", json={"max_tokens": 1, "messages": asked})
    assert answer.json()["error"]["message"].startswith(
        "prompt is too long: "
    )  # agents look for it
    body["messages"][0]["content"] = [image_url(FIRST)] * 101
    error = reader.post("/v1/chat/completions", json=body).json()["error"]
    assert error["param"] == "messages"
    assert "messages have 101 images; at most 100" in error["message"]
