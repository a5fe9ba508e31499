"""Conversations over the end of the context, served: as `Model.chat` has the same messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from running_server import Serving

import akunu

CONTEXT = 256
SYSTEM = {"role": "system", "content": "You are brief, and you call the user Kim."}

WHY = "Say it to somebody who never learned to count, and who wants to know why it is so."


@pytest.fixture(scope="module")
def model() -> Iterator[Any]:
    with akunu.load("ember", context=CONTEXT) as model:
        yield model


def posted(client: httpx.Client, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = client.post(path, json={"model": "ember", **body})
    reply: dict[str, Any] = answer.raise_for_status().json()
    return reply


def streamed(client: httpx.Client, body: dict[str, Any]) -> str:
    """The text of a reply in pieces."""
    text = ""
    whole = {"model": "ember", "stream": True, **body}
    with client.stream("POST", "/v1/chat/completions", json=whole) as answer:
        answer.raise_for_status()
        for line in answer.iter_lines():
            if line.startswith("data: {"):
                for choice in json.loads(line[6:])["choices"]:
                    text += choice["delta"].get("content") or ""
    return text


@pytest.mark.parametrize("overflow", ["shift", "reread"])
def test_a_conversation_goes_over_the_end_again_and_again(
    serving: Serving, model: Any, overflow: str
) -> None:
    """The server's setting says so, and no request."""
    messages = [SYSTEM]
    with serving(context=CONTEXT, context_overflow=overflow) as client:
        for i in range(12):
            question = f"Question {i}: what is {i} and {i}, and what do people call it? {WHY}"
            messages.append({"role": "user", "content": question})
            body = {"messages": messages, "max_tokens": 40, "temperature": 0}
            reply = posted(client, "/v1/chat/completions", body)
            alone = model.chat(messages, max_tokens=40, temperature=0, context_overflow=overflow)
            content = reply["choices"][0]["message"]["content"]
            assert (content, reply["choices"][0]["finish_reason"]) == (alone, alone.finish_reason)
            usage = reply["usage"]
            assert usage["prompt_tokens"] == alone.prompt_tokens <= CONTEXT
            assert usage["completion_tokens"] == alone.completion_tokens
            messages.append({"role": "assistant", "content": content})
        stopped = {"messages": messages[-2:-1], "max_tokens": 400, "context_overflow": "stop"}
        usage = posted(client, "/v1/chat/completions", {**stopped, "ignore_eos": True})["usage"]
        assert usage["total_tokens"] == CONTEXT + 1
    whole = [messages[0], *messages[1:-1]]
    with akunu.load("ember", context=2048) as large:
        assert large.chat(whole, max_tokens=0).prompt_tokens > 2 * CONTEXT


def test_a_request_says_that_its_reply_goes_on(serving: Serving, model: Any) -> None:
    """Over the end three times, whole and in pieces; without it the reply ends there."""
    messages = [SYSTEM, {"role": "user", "content": "Tell me a long story."}]
    options = {"max_tokens": 400, "temperature": 0.9, "seed": 4, "ignore_eos": True}
    shifts = {**options, "context_overflow": "shift"}
    expected = model.chat(messages, **shifts)
    assert expected.completion_tokens == 400
    prompt = list(model.tokenizer.encode("Once upon a time"))
    with serving(context=CONTEXT) as client:
        reply = posted(client, "/v1/chat/completions", {"messages": messages, **shifts})
        assert reply["choices"][0]["message"]["content"] == expected
        assert reply["usage"]["completion_tokens"] == 400
        assert streamed(client, {"messages": messages, **shifts}) == expected
        text = posted(client, "/v1/completions", {"prompt": prompt, **shifts})
        assert text["choices"][0]["text"] == model.generate(prompt, **shifts)
        short = posted(client, "/v1/chat/completions", {"messages": messages, **options})
        assert short["usage"]["total_tokens"] == CONTEXT + 1
        assert short["choices"][0]["finish_reason"] == "length"
