"""How likely tokens were, several answers to one prompt, and prompts in front of a text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import akunu

PROMPT = "user\nTell me something about the sea.\nassistant\n"
LONG = PROMPT * 30  # more than a page of the cache, and than a step's rows with logits


@pytest.fixture(scope="module")
def model(ember: Any) -> Any:
    return ember


def log_softmax(logits: np.ndarray) -> np.ndarray:
    wide = logits.astype(np.float64)
    wide -= wide.max(axis=1, keepdims=True)
    return wide - np.log(np.exp(wide).sum(axis=1, keepdims=True))


def assert_are(given: Any, rows: np.ndarray, tokens: Any, n: int) -> None:
    """That logprobs are those of the rows, each from before its token."""
    assert len(given) == len(tokens) == len(rows)
    for one, row, token in zip(given, rows, tokens, strict=True):
        assert one.token_id == token
        # A generated token's row has the arithmetic of few rows, `logits` that of a prompt.
        assert one.logprob == pytest.approx(row[token], abs=0.25)
        assert [each.logprob for each in one.top] == pytest.approx(np.sort(row)[::-1][:n], abs=0.25)
        assert [e.logprob for e in one.top] == sorted([e.logprob for e in one.top])[::-1]
        assert len({each.token_id for each in one.top}) == n


def test_logprobs_are_the_model_s_own(model: Any) -> None:
    """Before biases, penalties and filters, which here choose another token."""
    plain = model.generate(PROMPT, max_tokens=6, logprobs=0)
    chosen = {
        "logit_bias": {plain.token_ids[0]: -100.0},
        "presence_penalty": 0.7,
        "temperature": 1.5,
        "top_k": 3,
        "seed": 1,
    }
    for options in ({}, chosen):
        text = model.generate(PROMPT, max_tokens=6, logprobs=4, **options)
        prompt = model.tokenizer.encode(PROMPT)
        logits = model.logits([*prompt, *text.token_ids])[len(prompt) - 1 : -1]
        assert_are(text.logprobs, log_softmax(logits), text.token_ids, 4)
        assert "".join(one.text for one in text.logprobs) == text
        assert text.prompt_logprobs is None
    assert plain.logprobs[0].top == ()
    assert model.generate(PROMPT, max_tokens=2).logprobs is None


@pytest.mark.parametrize("max_tokens", [0, 1, 5])
def test_logprobs_of_a_prompt(model: Any, max_tokens: int) -> None:
    prompt = model.tokenizer.encode(LONG)[:400]
    usual = model.generate(prompt, max_tokens=max_tokens)
    text = model.generate(prompt, max_tokens=max_tokens, prompt_logprobs=2)
    assert text == usual, "the cache's or anew, the text is the same"
    assert text.prompt_logprobs[0] is None
    assert text.logprobs is None
    rows = log_softmax(model.logits(prompt))[:-1]
    assert_are(text.prompt_logprobs[1:], rows, prompt[1:], 2)


def test_logprobs_of_both_come_together(model: Any) -> None:
    text = model.generate(PROMPT, max_tokens=3, logprobs=1, prompt_logprobs=3)
    assert {len(one.top) for one in text.logprobs} == {1}
    assert {len(one.top) for one in text.prompt_logprobs[1:]} == {3}
    assert text.logprobs == model.generate(PROMPT, max_tokens=3, logprobs=1).logprobs


def test_a_stream_has_the_logprobs_of_what_came(ember: Any) -> None:
    stream = ember.generate(PROMPT, max_tokens=8, logprobs=1, stream=True)
    text = ""
    for piece in stream:
        text += piece
        assert "".join(one.text for one in stream.logprobs) == text
    assert stream.completion.logprobs == stream.logprobs


def test_logprobs_end_with_the_text(ember: Any) -> None:
    usual = ember.generate(PROMPT, max_tokens=12, logprobs=0)
    third = usual.logprobs[2].text
    cut = ember.generate(PROMPT, max_tokens=12, logprobs=0, stop=third)
    assert cut.logprobs == usual.logprobs[:2]
    assert [one.token_id for one in cut.logprobs] == list(cut.token_ids)


@pytest.mark.parametrize("prefix_cache", [True, False])
@pytest.mark.parametrize("prompt", [PROMPT, LONG], ids=["short", "long"])
def test_each_of_several_answers_is_what_its_index_gives_alone(
    prefix_cache: bool, prompt: str
) -> None:
    # The first must not be over when the others come, on a busy machine too: they share its pages.
    chosen = {"temperature": 9.0, "seed": 11, "max_tokens": 300, "logprobs": 2, "ignore_eos": True}
    with akunu.load(prefix_cache=prefix_cache) as model:
        answers = model.generate(prompt, n=3, **chosen)
        n_prompt = answers[0].prompt_tokens
        assert answers[0].cached_tokens == 0
        assert [each.cached_tokens for each in answers[1:]] == [n_prompt - 1] * 2
        alone = [model.generate(prompt, answer_index=index, **chosen) for index in range(3)]
        assert answers == alone
        assert [a.logprobs for a in answers] == [a.logprobs for a in alone]
    assert len(set(answers)) > 1


def test_answers_come_as_streams_too(ember: Any) -> None:
    chosen = {"temperature": 9.0, "seed": 12, "max_tokens": 10}
    streams = ember.generate(PROMPT, n=3, stream=True, **chosen)
    texts = ["".join(stream) for stream in reversed(streams)][::-1]
    assert texts == ember.generate(PROMPT, n=3, **chosen)
    again = ember.generate(PROMPT, n=1, **chosen)
    assert again == texts[:1]
    question = [{"role": "user", "content": "Hello!"}]
    replies = ember.chat(question, n=2, **chosen)
    assert replies == [ember.chat(question, answer_index=index, **chosen) for index in (0, 1)]


def test_answers_without_a_seed_share_one(ember: Any) -> None:
    answers = ember.generate(PROMPT, n=2, max_tokens=4)
    assert answers[0] == answers[1], "the most likely tokens"
    with pytest.raises(akunu.ArgumentError, match=r"^n is 0; it must be an integer from 1 up"):
        ember.generate(PROMPT, n=0)


def test_a_text_may_begin_with_its_prompt(ember: Any) -> None:
    usual = ember.generate(PROMPT, max_tokens=4)
    text = ember.generate(PROMPT, max_tokens=4, echo=True, stop="sea")
    assert text == PROMPT + usual, "a stop text ends what is generated, not the prompt"
    assert text.token_ids == usual.token_ids
    ids = ember.tokenizer.encode(PROMPT)
    assert ember.generate(ids, max_tokens=4, echo=True) == text
    stream = ember.generate(PROMPT, max_tokens=4, echo=True, stream=True)
    assert next(stream) == PROMPT
    assert "".join(stream) == usual
    scored = ember.generate(PROMPT, max_tokens=0, echo=True, prompt_logprobs=0)
    assert (scored, len(scored.prompt_logprobs)) == (PROMPT, len(ids))
    with pytest.raises(akunu.ArgumentError, match=r"^echo works with generate"):
        ember.chat([{"role": "user", "content": "Hello!"}], echo=True)


def test_a_stream_knows_tokens_and_the_prompts_logprobs_before_its_end(model: Any) -> None:
    whole = model.generate(PROMPT, max_tokens=6, prompt_logprobs=1)
    with model.generate(PROMPT, max_tokens=6, prompt_logprobs=1, stream=True) as stream:
        assert stream.token_ids == ()
        next(stream)
        assert stream.prompt_logprobs == whole.prompt_logprobs
        assert 0 < len(stream.token_ids) <= 6
        assert stream.token_ids == whole.token_ids[: len(stream.token_ids)]
        for _ in stream:
            pass
    assert stream.token_ids == whole.token_ids
