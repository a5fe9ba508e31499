"""Many prompts in one call: in order, each as it would be alone, all looked at before any work."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import akunu
from lines import each_line

# So hot that the next token is nearly any: such a text goes on until the context is full.
LONG: dict[str, Any] = {"temperature": 50, "seed": 3}

Generate = Callable[..., Any]
NEVER_READ = itertools.count(1000)  # tokens that no prompt of this file begins with


@pytest.fixture(params=["blocking", "awaited"])
def generate(request: pytest.FixtureRequest, ember: akunu.Model) -> Generate:
    """`generate` of a model, or its twin in a loop of its own."""
    if request.param == "blocking":
        return lambda *given, model=ember, **options: model.generate(*given, **options)
    return lambda *given, model=ember, **options: asyncio.run(
        model.generate_async(*given, **options)
    )


@pytest.fixture(params=["blocking", "awaited"])
def chat(request: pytest.FixtureRequest, ember: akunu.Model) -> Generate:
    """`chat` of a model, or its twin in a loop of its own."""
    if request.param == "blocking":
        return ember.chat
    return lambda *given, **options: asyncio.run(ember.chat_async(*given, **options))


def test_completions_come_in_the_order_of_the_prompts(
    ember: akunu.Model, generate: Generate
) -> None:
    prompts: list[Any] = ["One", [5, 6, 7], "Three", "Four"]
    options = {"max_tokens": 12, "temperature": 0.8, "seed": 4, "stop": "e"}
    texts = generate(prompts, **options)
    assert texts == [ember.generate(prompt, **options) for prompt in prompts]
    assert [text.prompt_tokens for text in texts] == [
        ember.generate(prompt, max_tokens=0).prompt_tokens for prompt in prompts
    ]
    assert generate(tuple(prompts), **options) == texts


def test_conversations_come_in_order(ember: akunu.Model, chat: Generate) -> None:
    conversations = [[{"role": "user", "content": f"What is {i} + 7?"}] for i in (12, 5)]
    replies = chat(conversations, max_tokens=20)
    assert replies == [ember.chat(each, max_tokens=20) for each in conversations]


def test_a_list_of_one_is_a_list_of_one(ember: akunu.Model, generate: Generate) -> None:
    assert generate(["One"], max_tokens=3) == [ember.generate("One", max_tokens=3)]
    assert generate([[7]], max_tokens=3) == [ember.generate([7], max_tokens=3)]


def test_an_empty_list_is_an_empty_prompt(generate: Generate) -> None:
    with pytest.raises(akunu.ArgumentError, match=r"^the prompt is empty"):
        generate([], max_tokens=3)  # this model has no token to begin with


def test_there_may_be_more_prompts_than_may_wait(generate: Generate) -> None:
    prompts = [[i + 1, i + 2] for i in range(200)]
    with akunu.load(context=256, max_waiting=2) as model:
        texts = generate(prompts, max_tokens=2, model=model)
        assert texts[::40] == [model.generate(each, max_tokens=2) for each in prompts[::40]]
    assert len(texts) == 200


@pytest.mark.parametrize("stream", [False, True])
def test_more_answers_than_can_begin_together_are_refused_before_any_work(stream: bool) -> None:
    with akunu.load(context=256, max_waiting=3) as model:
        for call in (model.generate, model.generate_async):
            with pytest.raises(akunu.ArgumentError, match=r"n is 68; .* 67: 64 .* max_waiting=3"):
                call([5] * 100, n=68, stream=stream, max_tokens=1)
        with pytest.raises(akunu.ArgumentError, match="n is 2000"):
            model.chat([{"role": "user", "content": "Hi"}], n=2000, stream=stream)
        assert model.generate([5] * 100, max_tokens=1).cached_tokens == 0


@each_line(
    ("prompts", "error", "message"),
    [
        (["One", 3], akunu.ArgumentError, r"^prompt\[1\]: prompt is 3"),
        (["One", [1.5]], akunu.ArgumentError, r"^prompt\[1\]: prompt is \[1.5\]"),
        ([[1], [2, -1]], akunu.ArgumentError, r"^prompt\[1\]: prompt\[1\] is -1"),
        (["One", None, 3], akunu.ArgumentError, r"^prompt\[1\]: prompt is None"),
        ([[1], [1] * 5000], akunu.ContextOverflowError, r"^prompt\[1\]: .*5000 tokens.*1024"),
    ],
)
def test_a_bad_prompt_is_named_before_any_work(
    ember: akunu.Model, generate: Generate, prompts: Any, error: Any, message: str
) -> None:
    with pytest.raises(error, match=message):
        generate(prompts, max_tokens=1)
    first = [next(NEVER_READ)] * 100
    with pytest.raises(error):
        generate([first, *prompts], max_tokens=1)
    assert ember.generate(first, max_tokens=1).cached_tokens == 0


def test_a_bad_conversation_is_named(chat: Generate) -> None:
    good = [{"role": "user", "content": "Hi"}]
    with pytest.raises(akunu.ArgumentError, match=r"^messages\[1\]: "):
        chat([good, [{"role": "user"}]], max_tokens=1)


def test_pieces_of_several_prompts_are_refused(ember: akunu.Model) -> None:
    for call in (ember.generate, ember.generate_async):
        with pytest.raises(akunu.ArgumentError, match="stream is True"):
            call(["One", "Two"], stream=True)  # type: ignore[call-overload]


def test_options_that_make_no_sense_are_refused_once(generate: Generate) -> None:
    with pytest.raises(akunu.ArgumentError, match=r"^top_p is 2"):
        generate(["One", "Two"], top_p=2)


def test_closing_the_model_ends_all_with_an_error(generate: Generate) -> None:
    model = akunu.load(context=256)
    closer = threading.Timer(0.2, model.close)
    closer.start()
    with pytest.raises(akunu.AkunuError, match=r"^prompt\[\d+\]: .*closed"):
        generate([[i + 1] for i in range(3000)], **LONG, model=model)
    closer.join()


@pytest.fixture
def default_ctrl_c() -> Iterator[None]:
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


@pytest.mark.usefixtures("default_ctrl_c")
def test_ctrl_c_ends_a_batch(ember: akunu.Model) -> None:
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        ember.generate([[i % 4000] for i in range(3000)], **LONG)
    timer.join()
    assert ember.generate("Hello", max_tokens=3)


def test_a_cancelled_batch_leaves_nothing_under_way(ember: akunu.Model) -> None:
    async def look() -> None:
        prompts = [[i % 4000] for i in range(3000)]
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(ember.generate_async(prompts, **LONG), 0.3)
        assert not ember._wakers._by_loop
        assert await ember.generate_async("Hello", max_tokens=3)

    asyncio.run(look())
