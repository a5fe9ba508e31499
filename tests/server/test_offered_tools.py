"""Tools of a provider's own, which agents offer beside theirs: one rule for every dialect.

The model does not hear of them, and the header says so. Their types are those of the documents of
OpenAI, Anthropic and Ollama.
"""

from __future__ import annotations

from typing import Any

import httpx
from add_tool import ABOUT, FUNCTION, PARAMETERS

from lines import each_line

SUM = [{"role": "user", "content": "What is 12 + 7?"}]
OF_OPENAI = (
    *("web_search", "web_search_preview", "file_search", "code_interpreter", "mcp", "custom"),
    *("computer_use_preview", "image_generation", "local_shell", "apply_patch"),
)
OF_ANTHROPIC = (
    *("web_search_20250305", "web_fetch_20250910", "code_execution_20250825", "bash_20250124"),
    *("computer_20250124", "text_editor_20250728", "memory_20250818"),
)
ADD = {"type": "function", "function": FUNCTION}


@each_line(
    ("path", "body", "own", "others"),
    [
        ("/v1/chat/completions", {"messages": SUM, "max_tokens": 1}, ADD, OF_OPENAI),
        (
            "/v1/responses",
            {"input": SUM, "max_output_tokens": 1},
            {"type": "function", **FUNCTION},
            OF_OPENAI,
        ),
        (
            "/v1/messages",
            {"messages": SUM, "max_tokens": 1},
            {**ABOUT, "input_schema": PARAMETERS},
            OF_ANTHROPIC,
        ),
        (
            "/api/chat",
            {"model": "ember", "messages": SUM, "stream": False, "options": {"num_predict": 1}},
            ADD,
            OF_OPENAI,
        ),
    ],
)
def test_the_model_does_not_hear_of_them_and_the_header_says_so(
    client: httpx.Client, path: str, body: dict[str, Any], own: dict[str, Any], others: Any
) -> None:
    def n_prompt(tools: list[dict[str, Any]]) -> tuple[int, list[str]]:
        answer = client.post(path, json={**body, "tools": tools})
        assert answer.status_code == 200, answer.text
        told = answer.json()
        usage = told.get("usage", told)
        names = ("prompt_tokens", "input_tokens", "cache_read_input_tokens", "prompt_eval_count")
        named = answer.headers.get("x-akunu-ignored", "").split(", ")
        return sum(usage.get(name, 0) for name in names), named

    offered = [{"type": kind, "name": kind} for kind in others]
    alone, _ = n_prompt([own])
    n_both, named = n_prompt([offered[0], own, *offered[1:]])
    assert n_both == alone
    assert {f"tools.{kind}" for kind in others} <= set(named)
    n_none, _ = n_prompt([])
    n_others, named = n_prompt(offered)
    assert n_others == n_none < alone
    assert {f"tools.{kind}" for kind in others} <= set(named)


def test_where_one_of_them_must_be_called_there_is_nothing_to_call(client: httpx.Client) -> None:
    body = {"messages": SUM, "max_tokens": 1}
    search = {"type": "web_search_20250305", "name": "web_search"}
    choice = {"type": "tool", "name": "web_search"}
    for path, more in (
        ("/v1/messages", {"tools": [search], "tool_choice": choice}),
        ("/v1/chat/completions", {"tools": [search], "tool_choice": "required"}),
    ):
        answer = client.post(path, json={**body, **more})
        assert answer.status_code == 400
        error = answer.json()["error"]
        assert error["param"] == "tool_choice"
        assert error["message"].startswith("tool_choice is ")


def test_a_tool_that_is_allowed_and_not_done_is_left_out(client: httpx.Client) -> None:
    tools = [{"type": "web_search"}, {"type": "function", **FUNCTION}]
    allowed = [{"type": "web_search"}, {"type": "function", "name": "add"}]
    choice = {"type": "allowed_tools", "mode": "required", "tools": allowed}
    answer = client.post(
        "/v1/responses", json={"input": SUM, "tools": tools, "tool_choice": choice}
    )
    assert answer.status_code == 200, answer.text
    (item,) = answer.json()["output"]
    assert item["name"] == "add"


def test_the_type_of_a_tool_is_a_text(client: httpx.Client) -> None:
    tools = [{"type": 5, "name": "add"}]
    for path in ("/v1/chat/completions", "/v1/responses", "/v1/messages", "/api/chat"):
        asked = {"input": SUM} if path == "/v1/responses" else {"messages": SUM, "max_tokens": 1}
        answer = client.post(path, json={**asked, "tools": tools})
        assert answer.status_code == 400, path
        assert "tools[0].type must be a text" in answer.text
