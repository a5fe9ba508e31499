"""Conversations as coding agents send them, with a model whose template is strict about order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from running_server import running_with_template

from akunu.templates.chat_template import CHATML

# As Qwen3.5's and Mistral's: one system message, at the beginning, and turns that alternate.
STRICT = (
    "{% set ns = namespace(last='') %}{% for m in messages %}"
    "{% if m.role == 'system' and not loop.first %}"
    "{{ raise_exception('System message must be at the beginning.') }}{% endif %}"
    "{% if m.role == 'user' and ns.last == 'user' %}"
    "{{ raise_exception('Roles must alternate.') }}{% endif %}{% set ns.last = m.role %}"
    "{% endfor %}" + CHATML
)


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of a server with such a model."""
    path = tmp_path_factory.mktemp("strict") / "strict.gguf"
    with running_with_template(path, STRICT) as client:
        yield client


def test_claude_code_sends_a_system_message_behind_what_the_user_says(strict: httpx.Client) -> None:
    def n_tokens(system: list[Any], messages: list[Any]) -> int:
        body = {"system": system, "messages": messages}
        answer = strict.post("/v1/messages/count_tokens", json=body)
        assert answer.status_code == 200, answer.text
        return int(answer.json()["input_tokens"])

    system = [{"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.197.44c;"}]
    system += [{"type": "text", "text": "You write code."}]
    question = {"role": "user", "content": [{"type": "text", "text": "List src."}]}
    agents = {"role": "system", "content": "There are agents."}
    told = n_tokens(system, [question, agents])
    assert told == n_tokens(
        system[1:], [{"role": "user", "content": "List src.\n\nThere are agents."}]
    )


def test_codex_sends_several_messages_of_the_developer_and_the_user(strict: httpx.Client) -> None:
    def prompt(items: list[Any]) -> Any:
        answer = strict.post("/v1/responses/input_tokens", json={"input": items})
        assert answer.status_code == 200, answer.text
        return answer.json()

    said = [("developer", "A."), ("developer", "B."), ("user", "C."), ("user", "D.")]
    items = [
        {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}
        for role, text in said
    ]
    joined = [{"role": "system", "content": "A.\n\nB."}, {"role": "user", "content": "C.\n\nD."}]
    assert prompt(items) == prompt(joined)


def test_opencode_asks_for_a_title_in_two_messages_of_the_user(strict: httpx.Client) -> None:
    messages = [
        {"role": "system", "content": "You are a title generator."},
        {"role": "user", "content": "Generate a title for this conversation:\n"},
        {"role": "user", "content": '"Write akunu into made.txt"'},
    ]
    answer = strict.post("/v1/chat/completions", json={"messages": messages, "max_tokens": 1})
    assert answer.status_code == 200, answer.text
    assert "x-akunu-ignored" not in answer.headers
