"""Completions, models, errors and clients that go away, with openai-python."""

from __future__ import annotations

import time
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI

SUM: Any = [{"role": "user", "content": "What is 12 + 7?"}]
# A text without an end within the context.
ENDLESS: Any = {
    "model": "ember",
    "messages": [{"role": "user", "content": "Count."}],
    "extra_body": {"ignore_eos": True},
}


def test_a_completion_with_its_prompt_and_logprobs(client: OpenAI) -> None:
    reply = client.completions.create(
        model="ember", prompt="The sun is", echo=True, logprobs=1, max_tokens=0
    )
    (choice,) = reply.choices
    assert choice.text == "The sun is"
    assert choice.logprobs is not None
    assert choice.logprobs.tokens is not None
    assert "".join(choice.logprobs.tokens) == "The sun is"
    assert choice.logprobs.token_logprobs is not None
    assert choice.logprobs.token_logprobs[0] is None
    assert all(each <= 0 for each in choice.logprobs.token_logprobs[1:])


def test_completions_of_several_prompts_as_text_and_ids(client: OpenAI) -> None:
    texts = client.completions.create(model="ember", prompt=["One", "Two"], max_tokens=3)
    assert [choice.index for choice in texts.choices] == [0, 1]
    ids = client.completions.create(model="ember", prompt=[[5, 6, 7], [8]], max_tokens=3)
    assert len(ids.choices) == 2
    streamed = {0: "", 1: ""}
    for chunk in client.completions.create(
        model="ember", prompt=["One", "Two"], max_tokens=3, stream=True
    ):
        for choice in chunk.choices:
            streamed[choice.index] += choice.text
    assert list(streamed.values()) == [choice.text for choice in texts.choices]


def test_models_are_listed_and_retrieved(client: OpenAI) -> None:
    model, *_ = client.models.list()
    assert model.id == "ember"
    assert client.models.retrieve("ember") == model
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("nobody/has:it")


def test_a_bad_request_names_its_field(client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model="ember", messages=SUM, temperature=-1)
    assert caught.value.param == "temperature"
    assert caught.value.type == "invalid_request_error"
    assert caught.value.request_id
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model="ember", messages=SUM, web_search_options={})
    assert (caught.value.param, caught.value.code) == (
        "web_search_options",
        "unsupported_parameter",
    )


def test_a_prompt_that_does_not_fit_has_a_code(client: OpenAI) -> None:
    long: Any = [{"role": "user", "content": "word " * 5000}]
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model="ember", messages=long)
    assert caught.value.code == "context_length_exceeded"


def test_an_unknown_model_is_not_found(client: OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        client.chat.completions.create(model="gpt-9", messages=SUM)
    assert caught.value.code == "model_not_found"


def test_a_wrong_key_is_an_authentication_error(guarded_address: str) -> None:
    stranger = OpenAI(base_url=f"{guarded_address}/v1", api_key="wrong")
    with pytest.raises(openai.AuthenticationError) as caught:
        stranger.models.list()
    assert caught.value.code == "invalid_api_key"


def test_too_many_requests_are_a_rate_limit_error(guarded_address: str) -> None:
    eager = OpenAI(base_url=f"{guarded_address}/v1", api_key="right", max_retries=0)

    def ask_often() -> None:
        for _ in range(30):
            eager.models.list()

    with pytest.raises(openai.RateLimitError) as caught:
        ask_often()
    assert caught.value.code == "rate_limit_exceeded"
    assert int(caught.value.response.headers["retry-after"]) > 0


def running(client: OpenAI) -> int:
    """How many texts are being written or wait."""
    ember = client.get("/metrics", cast_to=object)["models"]["ember"]  # type: ignore[index]
    return int(ember["running"] + ember["waiting"])


def until_nothing_runs(client: OpenAI) -> None:
    end = time.monotonic() + 20
    while running(client):
        assert time.monotonic() < end, "a text goes on that nobody waits for"
        time.sleep(0.01)


def test_a_client_that_times_out_ends_its_text(client: OpenAI) -> None:
    with pytest.raises(openai.APITimeoutError):
        client.with_options(timeout=0.3, max_retries=0).chat.completions.create(
            **ENDLESS, n=16, seed=1
        )
    until_nothing_runs(client)


def test_a_stream_that_is_closed_ends_its_text(client: OpenAI) -> None:
    with client.chat.completions.create(**ENDLESS, stream=True) as stream:
        next(iter(stream))
        assert running(client) == 1
    until_nothing_runs(client)


async def test_an_async_stream_that_is_closed_ends_its_text(
    client: OpenAI, async_client: AsyncOpenAI
) -> None:
    async with await async_client.chat.completions.create(**ENDLESS, stream=True) as stream:
        async for _ in stream:
            break
    until_nothing_runs(client)
