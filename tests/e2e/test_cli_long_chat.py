"""`akunu chat` goes over the end of the context, and nobody is asked what to drop."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from cli_support import ask

import akunu
from akunu.text.conversation import Conversation

CONTEXT = 256
KEPT = 192  # three quarters of it
SYSTEM = "You are brief, and you call the user Kim."
QUESTIONS = [f"Question {i}: tell me about the number {i}." for i in range(24)]
MOST = 40
TALKS = ["--system", SYSTEM, "--context", str(CONTEXT), "--max-tokens", str(MOST)]


def said(terminal: Callable[..., Any], folder: Path, *options: str) -> list[str]:
    """The replies to all questions."""
    talk = terminal("chat", *TALKS, *options)
    talk.wait_for("> ")
    shown = [ask(talk, question) for question in QUESTIONS]
    assert "context is full" not in "".join(shown)
    assert re.search(rf"conversation +{len(QUESTIONS)} turns", ask(talk, "/stats"))
    kept = folder / "state" / "akunu" / "last-conversation.json"
    messages = json.loads(kept.read_text())["messages"]
    assert [each["content"] for each in messages if each["role"] == "user"] == QUESTIONS
    return [each["content"] for each in messages if each["role"] == "assistant"]


def shortest(talk: Conversation, question: str, n_reply: int) -> Sequence[int]:
    """The prompt without as few of the oldest turns as must go, the system message with it."""
    smaller = Conversation(talk._tokenizer, system=SYSTEM)
    smaller.replace(SYSTEM, talk.turns)
    while len(prompt := smaller.prompt(question)) + n_reply > KEPT:
        assert smaller.drop_oldest() is not None
    return prompt


def by_hand(model: Any) -> tuple[list[str], list[int]]:
    """The same conversation with prompts shortened here, and in which turns they were."""
    talk, shortened = Conversation(model.tokenizer, system=SYSTEM), []
    for i, question in enumerate(QUESTIONS):
        prompt: Sequence[int] = talk.prompt(question)
        reply: list[int] = []
        if len(prompt) > CONTEXT:
            prompt = shortest(talk, question, 0)
            shortened.append(i)
        while True:
            part = model.generate([*prompt, *reply], max_tokens=MOST - len(reply), temperature=0)
            reply += part.token_ids
            if part.finish_reason == "stop" or len(reply) == MOST:
                break
            prompt = shortest(talk, question, len(reply))
            shortened.append(i)
        talk.add(question, model.tokenizer.decode(reply), reply)
    return [turn.reply for turn in talk.turns], shortened


@pytest.fixture(scope="module")
def expected() -> tuple[list[str], list[int]]:
    with akunu.load("ember", context=CONTEXT) as model:
        return by_hand(model)


def test_the_oldest_turns_are_forgotten_and_the_system_message_stays(
    terminal: Callable[..., Any], tmp_path: Path, expected: tuple[list[str], list[int]]
) -> None:
    replies, shortened = expected
    assert len(shortened) >= 10
    found = said(terminal, tmp_path, "--context-overflow", "reread", "--temperature", "0")
    assert found == replies


def test_replies_behind_a_shift_are_right_in_form(
    terminal: Callable[..., Any], tmp_path: Path, expected: tuple[list[str], list[int]]
) -> None:
    """Until keys turn they are those of prompts; then each is a reply of its own, and ends."""
    replies, shortened = expected
    found = said(terminal, tmp_path, "--context-overflow", "shift", "--temperature", "0")
    assert found[: shortened[0]] == replies[: shortened[0]]
    assert len(QUESTIONS) - shortened[0] >= 10  # more turns than the context holds
    with akunu.load("ember", context=CONTEXT) as model:
        for reply in found:
            assert 0 < len(model.tokenizer.encode(reply, add_special=False)) <= MOST
            assert not re.search(r"^(system|user|assistant)$", reply, re.MULTILINE)


def test_a_conversation_shifts_and_is_the_same_again(
    terminal: Callable[..., Any], tmp_path: Path
) -> None:
    options = ["--context-overflow", "shift", "--temperature", "0.9", "--seed", "3"]
    first = said(terminal, tmp_path, *options)
    assert said(terminal, tmp_path, *options) == first
    assert all(first)
