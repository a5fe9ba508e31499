"""Thoughts of a real model: told from its text, switched, counted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from edited_model import edited
from test_api import EMBER

import akunu
from akunu.templates.chat_template import CHATML, ChatTemplate, encode_chat
from akunu.text.deltas import ReasoningDelta

# Ember's own form of a conversation, with a switch and an opening as newer templates have them.
TEMPLATE = (
    CHATML
    + "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n"
    "{% else %}<think>\n{% endif %}"
)
QUESTION = [{"role": "user", "content": "What can you do?"}]


@pytest.fixture(scope="module")
def thinker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[akunu.Model]:
    path = tmp_path_factory.mktemp("thinker") / "m.gguf"
    file = edited(EMBER, path, {"tokenizer.chat_template": TEMPLATE})
    # In this format a prompt has the same bits as what was generated, at every level of the CPU.
    with akunu.load(file, kv_type="f32") as model:
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


def test_logprobs_of_the_answer_are_those_of_its_text(thinker: akunu.Model) -> None:
    options = {"thinking_budget": 3, "max_tokens": 14, "ignore_eos": True, "logprobs": 0}
    reply = thinker.chat(QUESTION, **options)
    assert reply.reasoning
    assert reply
    assert reply.logprobs is not None
    answer = reply.answer_logprobs
    assert answer is not None
    assert answer == reply.logprobs[-len(answer) :]
    assert "".join(each.text for each in answer) == reply
    with thinker.chat(QUESTION, **options, stream=True) as stream:
        for delta in stream.deltas():
            if isinstance(delta, ReasoningDelta):
                # Tokens that came together are all read before their texts are handed over.
                so_far = stream.answer_logprobs
                assert so_far == answer[: len(so_far)]
    assert stream.answer_logprobs == answer
    assert thinker.chat(QUESTION, thinking_budget=3, max_tokens=14).answer_logprobs is None


def test_coroutines_think_as_threads_do(thinker: akunu.Model) -> None:
    awaited = asyncio.run(thinker.chat_async(QUESTION, thinking=True, max_tokens=12))
    assert awaited.reasoning == thinker.chat(QUESTION, thinking=True, max_tokens=12).reasoning


def test_a_model_without_a_switch_says_so(ember: akunu.Model) -> None:
    with pytest.raises(akunu.ArgumentError, match=r"thinking is False; .* has no switch for it"):
        ember.chat(QUESTION, thinking=False)
    with pytest.raises(akunu.MisuseError, match="did you mean 'thinking'"):
        ember.chat(QUESTION, enable_thinking=False)  # type: ignore[call-overload]


CLOSING = "</think>"


# Without an end, so that there are always enough thoughts.
ENDLESS = {"logit_bias": {0: float("-inf"), 2: float("-inf")}}


@pytest.mark.parametrize("budget", [0, 1, 4])
def test_after_its_budget_the_end_of_the_thoughts_is_written_and_the_model_goes_on(
    thinker: akunu.Model, budget: int
) -> None:
    prompt = encode_chat(thinker.tokenizer, ChatTemplate(TEMPLATE), QUESTION)
    whole = thinker.generate(prompt, max_tokens=4, **ENDLESS)
    closing = thinker.tokenizer.encode(CLOSING, add_special=False)
    reply = thinker.chat(QUESTION, thinking_budget=budget, max_tokens=30, **ENDLESS)
    thoughts = list(whole.token_ids[:budget])
    end = budget + len(closing)
    assert list(reply.token_ids[:end]) == [*thoughts, *closing]
    assert reply.reasoning == thinker.tokenizer.decode(thoughts).strip()
    assert reply.reasoning_tokens == end
    begun = [*prompt, *thoughts, *closing]
    answer = thinker.generate(begun, max_tokens=30 - end, **ENDLESS)
    assert list(reply.token_ids[end:]) == list(answer.token_ids)
    assert reply == answer.lstrip()
    awaited = thinker.chat_async(QUESTION, thinking_budget=budget, max_tokens=30, **ENDLESS)
    assert asyncio.run(awaited).token_ids == reply.token_ids


def test_a_budget_that_is_not_used_up_changes_nothing(thinker: akunu.Model) -> None:
    options = akunu.SamplingOptions(temperature=0.9, seed=5, max_tokens=12, **ENDLESS)
    free = thinker.chat(QUESTION, options)
    assert len(free.token_ids) == 12
    assert thinker.chat(QUESTION, options, thinking_budget=12).token_ids == free.token_ids


def with_an_end_of_one_token(path: Path) -> Path:
    """Ember whose last token is the end of thoughts."""
    with akunu.load() as model:
        tokenizer = model.tokenizer
        tokens = [tokenizer.token_text(index) for index in range(tokenizer.vocab_size - 1)]
        last = tokenizer.token_text(len(tokens))
        merges = [merge for merge in tokenizer.merges() if merge.replace(" ", "") != last]
    types = [3, 3, 3, *[1] * (len(tokens) - 3), 4]  # control, normal, user-defined
    changes = {
        "tokenizer.chat_template": TEMPLATE,
        "tokenizer.ggml.tokens": [*tokens, CLOSING],
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.merges": merges,
    }
    return edited(EMBER, path, changes)


def test_an_end_that_is_one_token_is_seen_where_the_model_writes_it(tmp_path: Path) -> None:
    with akunu.load(with_an_end_of_one_token(tmp_path / "m.gguf")) as model:
        end = model.tokenizer.token_id(CLOSING)
        assert end is not None
        # The likeliest by far, so the model writes it at once, within its budget.
        own = model.chat(QUESTION, thinking_budget=3, max_tokens=5, logit_bias={end: 1e4})
        assert own.token_ids == (end,) * 5
        assert (own.reasoning, own.reasoning_tokens) == ("", 1)
        forced = model.chat(QUESTION, thinking_budget=3, max_tokens=6, **ENDLESS)
        assert forced.token_ids.index(end) == 3
        assert forced.reasoning_tokens == 4


def test_a_budget_needs_thoughts(thinker: akunu.Model, ember: akunu.Model) -> None:
    with pytest.raises(akunu.ArgumentError, match=r"thinking_budget is set, .* no thinking"):
        ember.chat(QUESTION, thinking_budget=3)
    with pytest.raises(akunu.ArgumentError, match="thinking_budget is set, but thinking is False"):
        thinker.chat(QUESTION, thinking=False, thinking_budget=3)
    with pytest.raises(akunu.ArgumentError, match="thinking_budget is -1; it must be an integer"):
        thinker.chat(QUESTION, thinking_budget=-1)


def test_stop_strings_end_the_answer_and_not_the_thoughts(thinker: akunu.Model) -> None:
    options = {"thinking_budget": 6, "max_tokens": 40, **ENDLESS}
    whole = thinker.chat(QUESTION, **options)
    word = whole.reasoning.split()[1]
    unstopped = thinker.chat(QUESTION, stop=[word + "\0", word], **options)
    assert unstopped.reasoning == whole.reasoning
    assert unstopped == whole.partition(word)[0]
    stop = whole.split()[2]
    cut = thinker.chat(QUESTION, stop=stop, **options)
    assert (cut.reasoning, cut.stop, cut.finish_reason) == (whole.reasoning, stop, "stop")
    assert cut == whole[: whole.index(stop)]
    assert cut.token_ids == whole.token_ids[: len(cut.token_ids)]
    answer = thinker.tokenizer.decode(list(cut.token_ids)).partition(CLOSING)[2].lstrip()
    assert answer
    assert cut.startswith(answer)
    with thinker.chat(QUESTION, stop=stop, **options, stream=True) as stream:
        assert "".join(stream) == cut
