"""Thoughts of a real model: told from its text, switched, counted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from edited_model import edited
from test_api import EMBER

import akunu
from akunu.chat import ChatTemplate, encode_chat
from akunu.deltas import ReasoningDelta

# Ember's own form of a conversation, with thoughts as Qwen3's template has them.
TEMPLATE = (
    "{% for m in messages %}{{ m.role }}\n{{ m.content }}\n{% endfor %}assistant\n"
    "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n"
    "{% else %}<think>\n{% endif %}"
)
QUESTION = [{"role": "user", "content": "What can you do?"}]


@pytest.fixture(scope="module")
def thinker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[akunu.Model]:
    path = tmp_path_factory.mktemp("thinker") / "m.gguf"
    with akunu.load(edited(EMBER, path, {"tokenizer.chat_template": TEMPLATE})) as model:
        yield model


def generated(model: akunu.Model, **variables: bool) -> akunu.Completion:
    """What the model writes, markers and all."""
    ids = encode_chat(model.tokenizer, ChatTemplate(TEMPLATE), QUESTION, **variables)
    return model.generate(ids, max_tokens=12)


def test_thoughts_that_are_not_closed_are_reasoning_and_no_text(thinker: akunu.Model) -> None:
    whole = generated(thinker)
    reply = thinker.chat(QUESTION, max_tokens=12)
    assert reply == ""
    assert reply.text == ""
    assert reply.reasoning
    assert whole.strip().startswith(reply.reasoning.strip())
    assert reply.token_ids == whole.token_ids
    assert reply.reasoning_tokens == reply.completion_tokens == whole.completion_tokens


def test_switched_off_there_is_text_only(thinker: akunu.Model) -> None:
    whole = generated(thinker, enable_thinking=False)
    reply = thinker.chat(QUESTION, thinking=False, max_tokens=12)
    assert reply == whole != ""
    assert (reply.reasoning, reply.reasoning_tokens) == ("", 0)
    alike = thinker.chat(QUESTION, template_variables={"enable_thinking": False}, max_tokens=12)
    assert alike == reply


def test_a_stream_has_reasoning_as_deltas_of_its_own(thinker: akunu.Model) -> None:
    with thinker.chat(QUESTION, thinking=True, max_tokens=12, stream=True) as stream:
        deltas = list(stream.deltas())
    assert all(isinstance(delta, ReasoningDelta) for delta in deltas)
    assert "".join(d.text for d in deltas if isinstance(d, ReasoningDelta)) == (
        stream.completion.reasoning
    )


def test_coroutines_think_as_threads_do(thinker: akunu.Model) -> None:
    awaited = asyncio.run(thinker.chat_async(QUESTION, thinking=True, max_tokens=12))
    assert awaited.reasoning == thinker.chat(QUESTION, thinking=True, max_tokens=12).reasoning


def test_a_model_without_a_switch_says_so(ember: akunu.Model) -> None:
    with pytest.raises(akunu.ArgumentError, match=r"thinking is False; .* has no switch for it"):
        ember.chat(QUESTION, thinking=False)
    with pytest.raises(akunu.MisuseError, match="did you mean 'thinking'"):
        ember.chat(QUESTION, enable_thinking=False)  # type: ignore[call-overload]
