"""A last message of the assistant that the reply continues."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

import akunu
from akunu import ArgumentError, Model

sys.path.append(str(Path(__file__).parents[1] / "server"))
from running_server import running

THINKS = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}"
    "{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n"
    "{% else %}<think>\n{% endif %}{% endif %}"
)
ASK = {"role": "user", "content": "What is 12 + 7?"}


def reply(**parts: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": "", **parts}


@pytest.fixture(scope="module")
def model() -> Any:
    with akunu.load() as model:
        yield model


def prompt_of(model: Model, last: dict[str, Any], **options: Any) -> str:
    """Return the prompt as text."""
    from akunu.text.request import Request

    request = Request(messages=[ASK, last], continue_final_message=True, **options)
    ids = model._pipeline.prompt(request).tokens.tolist()
    return model.tokenizer.decode(ids)


def test_a_reply_that_is_cut_and_continued_is_the_whole_reply(model: Model) -> None:
    whole = str(model.chat([ASK], temperature=0, max_tokens=40))
    cuts = [at for at, sign in enumerate(whole) if sign == " "]  # where tokens end
    assert len(cuts) > 2
    for cut in cuts:
        messages = [ASK, reply(content=whole[:cut])]
        rest = model.chat(messages, temperature=0, max_tokens=40, continue_final_message=True)
        assert rest.startswith(" ")
        assert whole[:cut] + rest == whole


def test_the_prompt_is_the_generation_prompt_and_the_text(model: Model) -> None:
    from akunu.templates.chat_template import ChatTemplate

    start = ChatTemplate.of(model.tokenizer).render([ASK])
    assert prompt_of(model, reply(content=" It is ")) == start + " It is "
    parts = [{"type": "text", "text": "It"}, {"type": "text", "text": " is"}]
    assert prompt_of(model, reply(content=parts)) == start + "It is"
    assert prompt_of(model, reply(content="")) == start


def test_the_names_of_control_tokens_stay_text(model: Model) -> None:
    from akunu.text.request import Request

    end = model.tokenizer.token_text(next(iter(model.tokenizer.control_ids)))
    request = Request(messages=[ASK, reply(content=end)], continue_final_message=True)
    with_name = model._pipeline.prompt(request).tokens.tolist()
    request = Request(messages=[ASK, reply(content="")], continue_final_message=True)
    without = model._pipeline.prompt(request).tokens.tolist()
    added = with_name[len(without) :]
    assert with_name[: len(without) - 1] == without[:-1]
    assert not set(added) & set(model.tokenizer.control_ids)


def test_thoughts_are_closed_before_text_and_continued_without_it() -> None:
    with akunu.load(chat_template=THINKS) as model:
        start = "<|im_start|>user\nWhat is 12 + 7?<|im_end|>\n<|im_start|>assistant\n"
        closed = "\n</think>\n\n"
        assert prompt_of(model, reply(content="19")).endswith(f"{start}<think>\n{closed}19")
        last = reply(content="19", reasoning="Easy.")
        assert prompt_of(model, last).endswith(f"{start}<think>\nEasy.{closed}19")
        assert prompt_of(model, reply(reasoning="Easy")).endswith(f"{start}<think>\nEasy")
        more = {"max_tokens": 6, "ignore_eos": True, "continue_final_message": True}
        answer = model.chat([ASK, reply(reasoning="Easy")], **more)
        assert answer.reasoning
        assert str(answer) == ""
        text = model.chat([ASK, last], **more)
        assert not text.reasoning


@pytest.mark.parametrize(
    ("messages", "more", "message"),
    [
        ([ASK], {}, "needs a message before the one"),
        ([ASK, ASK], {}, "messages\\[1\\] is of 'user'; a reply"),
        (
            [ASK, reply(tool_calls=[{"function": {"name": "f", "arguments": "{}"}}])],
            {},
            "messages\\[1\\] has tool calls",
        ),
        ([ASK, reply(reasoning="a")], {}, "this model's chat template has none"),
        ([ASK, reply(content="a")], {"json": True}, "structured output does not work"),
        ([ASK, reply(content="a")], {"thinking_budget": 3}, "thinking_budget does not work"),
        ([ASK], {"continue_final_message": 1}, "it must be True or False"),
        ([ASK, reply(content=3)], {}, r"messages\[1\]\['content'\] must be a str"),
    ],
)
def test_what_cannot_be_continued_is_refused(
    model: Model, messages: list[dict[str, Any]], more: dict[str, Any], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        model.chat(messages, **{"continue_final_message": True, "max_tokens": 1, **more})


@pytest.fixture(scope="module")
def client() -> Any:
    with running() as client:
        yield client


def rest_of(answer: dict[str, Any], path: str) -> str:
    if path == "/v1/messages":
        return str(answer["content"][0]["text"])
    if path == "/api/chat":
        return str(answer["message"]["content"])
    if path == "/v1/responses":
        return str(answer["output"][0]["content"][0]["text"])
    return str(answer["choices"][0]["message"]["content"])


@pytest.mark.parametrize(
    ("path", "more"),
    [
        (
            "/v1/chat/completions",
            {"continue_final_message": True, "add_generation_prompt": False, "max_tokens": -1},
        ),
        ("/v1/messages", {"max_tokens": 30}),
        ("/api/chat", {"stream": False, "options": {"temperature": 0}}),
        ("/v1/responses", {"continue_final_message": True}),
    ],
)
def test_every_dialect_continues(
    client: httpx.Client, model: Model, path: str, more: dict[str, Any]
) -> None:
    whole = str(model.chat([ASK], temperature=0))
    name = "input" if path == "/v1/responses" else "messages"
    sampling = {} if path == "/api/chat" else {"temperature": 0}
    body = {"model": "ember", name: [ASK, reply(content=whole[:2])], **sampling, **more}
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    assert "x-akunu-ignored" not in answer.headers
    assert whole[:2] + rest_of(answer.json(), path) == whole


def test_what_says_both_is_refused(client: httpx.Client) -> None:
    for both in (True, False):
        flags = {"continue_final_message": both, "add_generation_prompt": both}
        body = {"messages": [ASK, reply(content="a")], **flags}
        answer = client.post("/v1/chat/completions", json=body)
        assert answer.status_code == 400
        assert answer.json()["error"]["param"] == "add_generation_prompt"
