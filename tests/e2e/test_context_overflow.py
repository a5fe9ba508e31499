"""Where the context is full: a text stops, fails, or forgets its oldest part and goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

import akunu
from akunu import ArgumentError, ContextOverflowError

CONTEXT = 256
KEPT = 192  # three quarters of it
HOT: dict[str, Any] = {"temperature": 50, "seed": 3, "ignore_eos": True}
GREEDY: dict[str, Any] = {"ignore_eos": True}


@pytest.fixture(scope="module")
def model() -> Iterator[Any]:
    with akunu.load("ember", context=CONTEXT, threads=1) as model:
        yield model


@pytest.fixture(scope="module")
def prompt(model: Any) -> list[int]:
    return list(model.tokenizer.encode("user\nHello there!\nassistant\n"))


def by_hand(model: Any, prompt: list[int], n: int, **options: Any) -> list[int]:
    """Greedily what a text that shifts has: whole contexts, each behind what was kept."""
    reply: list[int] = []
    begin = prompt
    while len(reply) < n:
        left = n - len(reply)
        reply += model.generate(begin, max_tokens=left, **options).token_ids
        begin = [*prompt, *reply][-KEPT:]
    return reply


def test_by_default_it_stops(model: Any, prompt: list[int]) -> None:
    text = model.generate(prompt, **HOT)
    assert text.finish_reason == "length"
    assert text.completion_tokens == CONTEXT + 1 - len(prompt)
    with pytest.raises(ContextOverflowError):
        model.generate([5] * (CONTEXT + 1), max_tokens=1)


def test_an_error_comes_before_any_work_or_when_it_is_full(model: Any, prompt: list[int]) -> None:
    options = {**HOT, "context_overflow": "error"}
    fits = CONTEXT + 1 - len(prompt)
    whole = model.generate(prompt, max_tokens=fits, **HOT)
    assert model.generate(prompt, max_tokens=fits, **options) == whole
    with pytest.raises(ContextOverflowError, match=f"max_tokens is {fits + 1}, the context holds"):
        model.generate(prompt, max_tokens=fits + 1, **options)
    with pytest.raises(ContextOverflowError, match=f"is full after {fits} tokens of the reply"):
        model.generate(prompt, **options)
    stream = model.generate(prompt, stream=True, **options)
    pieces = []
    with pytest.raises(ContextOverflowError):
        pieces += list(stream)
    stream = model.generate(prompt, stream=True, **options)
    try:
        for piece in stream:
            pieces.append(piece)
    except ContextOverflowError:
        pass
    assert whole.startswith("".join(pieces)[:200])
    short = model.generate("Hello", max_tokens=5, context_overflow="error")
    assert short == model.generate("Hello", max_tokens=5)


@pytest.mark.parametrize("n", [200, CONTEXT - 1, 300, 700])
def test_reread_is_the_newest_tokens_read_again(model: Any, prompt: list[int], n: int) -> None:
    expected = by_hand(model, prompt, n, **GREEDY)
    text = model.generate(prompt, max_tokens=n, context_overflow="reread", **GREEDY)
    assert list(text.token_ids) == expected
    assert (text.finish_reason, text.completion_tokens) == ("length", n)
    assert text.prompt_tokens == len(prompt)
    assert text.completion_seconds > 0


def test_a_long_prompt_loses_its_oldest_tokens(model: Any) -> None:
    tokens = [3 + i % 1000 for i in range(3 * CONTEXT)]
    text = model.generate(tokens, max_tokens=8, context_overflow="reread", **GREEDY)
    assert text == model.generate(tokens[-KEPT:], max_tokens=8, **GREEDY)
    assert text.prompt_tokens == KEPT


def moved_tokens(model: Any, prompt: list[int], **options: Any) -> tuple[Any, int]:
    stream = model.generate(prompt, stream=True, **options)
    for _ in stream:
        pass
    return stream.completion, stream._decoder.generation.moved_tokens


def test_a_shift_moves_what_it_keeps(model: Any, prompt: list[int]) -> None:
    """Its first part is that of a text that reads again; nothing but a last token is read later."""
    options = {**HOT, "max_tokens": 700}
    text, n_moved = moved_tokens(model, prompt, context_overflow="shift", **options)
    again, n_again = moved_tokens(model, prompt, context_overflow="reread", **options)
    fits = CONTEXT + 1 - len(prompt)
    n_shifts = -(-(700 - fits) // (CONTEXT + 1 - KEPT))
    assert (n_moved, n_again) == (n_shifts * (KEPT - 1), 0)
    assert text.token_ids[:fits] == again.token_ids[:fits]
    assert text.token_ids != again.token_ids  # values remember what was dropped
    assert moved_tokens(model, prompt, context_overflow="shift", **options)[0] == text


def test_shifting_texts_are_the_same_side_by_side(model: Any, prompt: list[int]) -> None:
    prompts = [[*prompt, *range(40, 40 + n)] for n in range(3)]
    options = {**HOT, "max_tokens": 320, "context_overflow": "shift", "speculation": 4}
    alone = [model.generate(each, **options).token_ids for each in prompts]
    together = model.generate(prompts, **options)
    assert [each.token_ids for each in together] == alone


def test_every_form_of_call_shifts_alike(model: Any, prompt: list[int]) -> None:
    options = {**HOT, "max_tokens": 400, "context_overflow": "shift"}
    text = model.generate(prompt, **options)
    assert text.completion_tokens == 400
    assert "".join(model.generate(prompt, stream=True, **options)) == text
    assert model.generate([prompt, prompt], **options) == [text, text]
    assert model.generate(prompt, n=2, **options)[0] == text

    async def both() -> tuple[str, list[str]]:
        stream = model.generate_async(prompt, stream=True, **options)
        return await model.generate_async(prompt, **options), [piece async for piece in stream]

    whole, pieces = asyncio.run(both())
    assert whole == text == "".join(pieces)


def test_a_shifted_text_does_not_draw_the_same_numbers_again(model: Any, prompt: list[int]) -> None:
    """Of a text so hot that each token is a draw, no part is the one before it again."""
    ids = model.generate(prompt, max_tokens=600, context_overflow="shift", **HOT).token_ids
    fits = CONTEXT + 1 - len(prompt)
    assert ids[fits : fits + 30] != ids[:30]


def test_logprobs_and_stops_cross_a_shift(model: Any, prompt: list[int]) -> None:
    options = {**HOT, "max_tokens": 400, "context_overflow": "shift"}
    text = model.generate(prompt, logprobs=2, **options)
    assert [each.token_id for each in text.logprobs] == list(text.token_ids)
    place = len(text) * 4 // 5
    stop = text[place : place + 12]
    cut = model.generate(prompt, stop=[stop], **options)
    assert cut == text[: text.index(stop)]
    assert cut.finish_reason == "stop"


def test_closing_one_that_shifted_ends_it(model: Any, prompt: list[int]) -> None:
    stream = model.generate(prompt, stream=True, context_overflow="shift", **HOT)
    for _ in range(300):
        next(stream)
    assert stream.completion_tokens > CONTEXT
    stream.close()
    assert stream.completion.finish_reason == "cancelled"


def test_what_a_grammar_holds_ends_with_the_context(model: Any, prompt: list[int]) -> None:
    text = model.generate(prompt, regex="[a-z ]{2000}", context_overflow="shift", temperature=50)
    assert text.finish_reason == "length"
    assert text.completion_tokens == CONTEXT + 1 - len(prompt)


def conversation(n: int) -> list[dict[str, str]]:
    messages = [{"role": "system", "content": "You are brief, and call the user Kim."}]
    for i in range(n):
        messages.append({"role": "user", "content": f"Question number {i}: what is {i} and {i}?"})
        messages.append({"role": "assistant", "content": f"That is {2 * i}, Kim, and no more."})
    return [*messages, {"role": "user", "content": "Who are you?"}]


@pytest.mark.parametrize("n", [1, 8, 40])
def test_a_conversation_keeps_its_system_prompt_and_newest_turns(model: Any, n: int) -> None:
    messages = conversation(n)
    reply = model.chat(messages, max_tokens=20, context_overflow="shift")
    kept = messages
    if n > 1:
        lengths = {}
        with akunu.load("ember", context=2048) as large:
            for first in range(1, len(messages), 2):
                shorter = [messages[0], *messages[first:]]
                lengths[first] = large.chat(shorter, max_tokens=0).prompt_tokens
        assert lengths[1] > CONTEXT
        first = min(first for first, length in lengths.items() if length <= KEPT)
        kept = [messages[0], *messages[first:]]
        assert 1 < first < len(messages) - 1
    assert reply == model.chat(kept, max_tokens=20)
    assert reply.prompt_tokens == model.chat(kept, max_tokens=0).prompt_tokens


def test_a_conversation_shifts_while_it_is_answered(model: Any) -> None:
    messages = conversation(2)
    reply = model.chat(messages, max_tokens=400, context_overflow="shift", **HOT)
    assert reply.completion_tokens == 400
    first = model.chat(messages, **HOT)
    assert reply.token_ids[: len(first.token_ids)] == first.token_ids


def test_a_turn_that_leaves_no_room_is_refused(model: Any) -> None:
    messages = [*conversation(3), {"role": "user", "content": "word " * 400}]
    with pytest.raises(ContextOverflowError, match="the latest turn have"):
        model.chat(messages, context_overflow="shift")


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ArgumentError, match="'stop' or 'error' or 'shift' or 'reread'"):
        akunu.SamplingOptions(context_overflow="slide")
    with pytest.raises(ArgumentError, match="that the penalties ignore"):
        akunu.SamplingOptions(context_overflow="shift", penalize_prompt=False)


def test_more_messages_than_the_context_has_tokens_shift(model: Any) -> None:
    messages = [
        {"role": "assistant" if index % 2 else "user", "content": f"Hello {index}"}
        for index in range(CONTEXT + 1)
    ]
    with pytest.raises(ContextOverflowError, match=f"{CONTEXT + 1} messages"):
        model.chat(messages, max_tokens=4)
    reply = model.chat(messages, max_tokens=4, context_overflow="shift")
    assert KEPT // 2 < reply.prompt_tokens <= KEPT
    assert reply == asyncio.run(model.chat_async(messages, max_tokens=4, context_overflow="shift"))


def test_megabytes_are_refused_before_their_tokens_are_known(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "hello " * 400_000
    chat = [{"role": "user", "content": long}]
    monkeypatch.setattr(akunu.Tokenizer, "encode_pieces", None)
    for call in (
        lambda: model.generate(long),
        lambda: model.generate([long]),
        lambda: model.chat(chat),
        lambda: model.chat([chat]),
        lambda: asyncio.run(model.generate_async(long)),
        lambda: asyncio.run(model.chat_async(chat)),
    ):
        with pytest.raises(ContextOverflowError, match=r"at least \d+ tokens, the context"):
            call()
