"""The chat page as a browser has it: `GET /`, and what happens when somebody types."""

from __future__ import annotations

from typing import Any

import httpx


def ask(page: Any, text: str) -> None:
    page.fill("#prompt", text)
    page.press("#prompt", "Enter")


def reply(page: Any) -> str:
    """The last reply, once it is complete."""
    page.wait_for_selector(".message.assistant.last:not(.writing)")
    return str(page.inner_text(".message.assistant.last .body"))


def test_the_page_answers_with_what_the_model_says(opened: Any, client: httpx.Client) -> None:
    said = client.post(
        "/v1/chat/completions", json={"messages": [{"role": "user", "content": "What is 12 + 7?"}]}
    ).json()["choices"][0]["message"]["content"]
    page = opened()
    ask(page, "What is 12 + 7?")
    assert reply(page) == said
    assert "tokens/s" in page.inner_text(".message.assistant.last .cost")
