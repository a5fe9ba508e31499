"""Thinking as clients ask for it: one rule for every API, whatever the model knows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from running_server import running_with_template

from akunu.templates.chat_template import CHATML
from lines import each_line

HELLO = [{"role": "user", "content": "Hello"}]


def responses(client: httpx.Client, effort: str) -> httpx.Response:
    reasoning = {"effort": effort, "summary": "auto"}
    body = {"input": "Hello", "max_output_tokens": 2, "reasoning": reasoning}
    return client.post("/v1/responses", json=body)


def chat(field: str) -> Callable[[httpx.Client, Any], httpx.Response]:
    def ask(client: httpx.Client, wish: Any) -> httpx.Response:
        body = {"messages": HELLO, "max_tokens": 2, field: wish}
        return client.post("/v1/chat/completions", json=body)

    return ask


def ollama(client: httpx.Client, wish: Any) -> httpx.Response:
    model = client.get("/v1/models").json()["data"][0]["id"]
    options = {"num_predict": 2}
    body = {"model": model, "messages": HELLO, "think": wish, "stream": False, "options": options}
    return client.post("/api/chat", json=body)


def anthropic(client: httpx.Client, wish: Any) -> httpx.Response:
    body = {"messages": HELLO, "max_tokens": 2, "thinking": wish}
    return client.post("/v1/messages", json=body)


@each_line(
    ("ask", "wish", "field"),
    [
        (chat("reasoning_effort"), "high", "reasoning_effort"),
        (chat("reasoning"), {"effort": "low", "summary": "auto"}, "reasoning"),
        (chat("enable_thinking"), True, "enable_thinking"),
        (chat("thinking"), "medium", "thinking"),
        (chat("thinking_budget"), 100, "thinking_budget"),
        (responses, "medium", "reasoning"),
        (ollama, True, "think"),
        (ollama, "low", "think"),
        (anthropic, {"type": "enabled"}, "thinking"),
    ],
)
def test_a_model_without_thoughts_answers_and_names_the_wish(
    client: httpx.Client, ask: Any, wish: Any, field: str
) -> None:
    answer = ask(client, wish)
    assert answer.status_code == 200, answer.text
    assert field in answer.headers["x-akunu-ignored"].split(", ")


@each_line(
    ("ask", "wish"),
    [
        (chat("reasoning_effort"), "none"),
        (chat("enable_thinking"), False),
        (ollama, False),
        (anthropic, {"type": "disabled"}),
    ],
)
def test_not_to_think_is_what_a_model_without_thoughts_does(
    client: httpx.Client, ask: Any, wish: Any
) -> None:
    answer = ask(client, wish)
    assert answer.status_code == 200, answer.text
    assert "x-akunu-ignored" not in answer.headers


@pytest.mark.parametrize("ask", [chat("reasoning_effort"), responses, ollama])
def test_a_level_that_nobody_knows_is_refused(client: httpx.Client, ask: Any) -> None:
    answer = ask(client, "hihg")
    assert answer.status_code == 400
    assert "none, minimal, low, medium, high, xhigh, max" in answer.text


def test_a_budget_that_is_no_number_is_refused_whatever_the_model(client: httpx.Client) -> None:
    answer = chat("thinking_budget")(client, "much")
    assert answer.json()["error"]["param"] == "thinking_budget"


@pytest.mark.parametrize("ask", [chat("reasoning_effort"), responses, ollama])
def test_a_model_with_a_switch_thinks_at_any_level(thinking_client: httpx.Client, ask: Any) -> None:
    answer = ask(thinking_client, "low")
    assert answer.status_code == 200, answer.text
    assert "x-akunu-ignored" in answer.headers  # it thinks, and not less than usual


LEVELS = (
    CHATML + '{% if reasoning_effort == "high" %}deep{% elif reasoning_effort == "low" %}'
    "quick{% endif %}<think>"
)


@pytest.fixture(scope="module")
def levelled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of a server whose model thinks much or little."""
    path = tmp_path_factory.mktemp("levels") / "levels.gguf"
    with running_with_template(path, LEVELS) as client:
        yield client


@each_line(
    ("level", "shown", "is_named"),
    [
        ("high", "deep<think>", False),
        ("low", "quick<think>", False),
        ("xhigh", "deep<think>", True),
        ("minimal", "quick<think>", True),
    ],
)
def test_a_level_becomes_the_nearest_that_the_model_has(
    levelled: httpx.Client, level: str, shown: str, is_named: bool
) -> None:
    body = {"messages": HELLO, "reasoning_effort": level}
    answer = levelled.post("/v1/apply-template", json=body)
    assert answer.json()["prompt"].endswith(shown)
    answer = levelled.post("/v1/chat/completions", json={**body, "max_tokens": 1})
    assert answer.status_code == 200
    assert ("x-akunu-ignored" in answer.headers) is is_named
