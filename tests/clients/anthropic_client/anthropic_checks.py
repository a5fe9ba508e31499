"""Anthropic's Python client: messages, streams, parsed answers, tools, thoughts, tokens, errors."""

from __future__ import annotations

import os
from typing import Any, Literal

import anthropic
import pytest
from anthropic import Anthropic, AsyncAnthropic, beta_tool
from pydantic import BaseModel

ADDRESS = os.environ["AKUNU_URL"]
SUM: Any = [{"role": "user", "content": "What is 12 + 7?"}]
QUESTION: Any = [{"role": "user", "content": "What is the weather in Paris?"}]
WEATHER: Any = {
    "name": "get_weather",
    "description": "The weather in a city.",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
}


class Answer(BaseModel):
    verdict: Literal["even", "odd"]
    sure: bool


@pytest.fixture
def client() -> Anthropic:
    return Anthropic(base_url=ADDRESS, api_key="any")


@pytest.fixture
def async_client() -> AsyncAnthropic:
    return AsyncAnthropic(base_url=ADDRESS, api_key="any")


def test_a_message_has_text_a_reason_and_usage(client: Anthropic) -> None:
    message = client.messages.create(model="ember", max_tokens=40, messages=SUM)
    (block,) = message.content
    assert block.type == "text"
    assert block.text == "12 + 7 = 19"
    assert message.stop_reason == "end_turn"
    assert message.usage.output_tokens > 0
    assert message._request_id


def test_stop_sequences_and_the_most_tokens_have_their_reasons(client: Anthropic) -> None:
    stopped = client.messages.create(
        model="ember", max_tokens=40, messages=SUM, stop_sequences=["="]
    )
    assert (stopped.stop_reason, stopped.stop_sequence) == ("stop_sequence", "=")
    cut = client.messages.create(model="ember", max_tokens=2, messages=SUM, system="Be brief.")
    assert cut.stop_reason == "max_tokens"


def test_events_and_the_stream_helper(client: Anthropic) -> None:
    asked: Any = {"model": "ember", "max_tokens": 40, "messages": SUM}
    kinds = [event.type for event in client.messages.create(**asked, stream=True)]
    deltas = [each for each in kinds if each == "content_block_delta"]
    assert [each for each in kinds if each != "ping"] == [
        "message_start",
        "content_block_start",
        *deltas,
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    with client.messages.stream(**asked) as stream:
        assert "".join(stream.text_stream) == "12 + 7 = 19"
        final = stream.get_final_message()
    assert final.stop_reason == "end_turn"
    assert final.usage.output_tokens > 0


def test_parse_returns_an_object_of_the_class(client: Anthropic) -> None:
    message = client.messages.parse(
        model="ember", max_tokens=60, messages=SUM, output_format=Answer
    )
    assert isinstance(message.parsed_output, Answer)
    with client.messages.stream(
        model="ember", max_tokens=60, messages=SUM, output_format=Answer
    ) as stream:
        assert stream.get_final_message().parsed_output == message.parsed_output


def test_a_tool_is_used_and_its_result_answered(client: Anthropic) -> None:
    first = client.messages.create(model="ember", max_tokens=60, messages=QUESTION, tools=[WEATHER])
    assert first.stop_reason == "tool_use"
    use = first.content[-1]
    assert use.type == "tool_use"
    assert use.input == {"city": "Paris"}
    result = {"type": "tool_result", "tool_use_id": use.id, "content": "It is sunny."}
    second = client.messages.create(
        model="ember",
        max_tokens=60,
        messages=[
            *QUESTION,
            {"role": "assistant", "content": first.content},
            {"role": "user", "content": [result]},
        ],
        tools=[WEATHER],
    )
    (block,) = second.content
    assert block.type == "text"
    assert block.text


def test_a_tool_that_is_chosen_streams_its_input(client: Anthropic) -> None:
    with client.messages.stream(
        model="ember",
        max_tokens=60,
        messages=SUM,
        tools=[WEATHER],
        tool_choice={"type": "tool", "name": "get_weather"},
    ) as stream:
        pieces = [event.partial_json for event in stream if event.type == "input_json"]
        (use,) = stream.get_final_message().content
    assert pieces
    assert use.type == "tool_use"
    assert isinstance(use.input, dict)
    assert isinstance(use.input["city"], str)


def test_the_tool_runner_calls_python_functions(client: Anthropic) -> None:
    asked = []

    @beta_tool
    def get_weather(city: str) -> str:
        """The weather in a city.

        Args:
            city: The name of the city.
        """
        asked.append(city)
        return f"It is sunny in {city}."

    runner = client.beta.messages.tool_runner(
        model="ember", max_tokens=60, messages=QUESTION, tools=[get_weather]
    )
    (block,) = runner.until_done().content
    assert asked == ["Paris"]
    assert block.type == "text"
    assert block.text


def test_thoughts_are_blocks_of_their_own(client: Anthropic) -> None:
    thinking: Any = {"type": "enabled", "budget_tokens": 1024}
    asked: Any = {"model": "thinker", "max_tokens": 8, "messages": SUM}
    message = client.messages.create(**asked, thinking=thinking)
    assert message.content[0].type == "thinking"
    with client.messages.stream(**asked, thinking=thinking) as stream:
        thoughts = "".join(event.thinking for event in stream if event.type == "thinking")
    assert thoughts == message.content[0].thinking
    silent = client.messages.create(**asked, thinking={"type": "disabled"})
    assert [block.type for block in silent.content] == ["text"]


def test_tokens_are_counted(client: Anthropic) -> None:
    counted = client.messages.count_tokens(model="ember", messages=SUM, system="Be brief.")
    usage = client.messages.create(
        model="ember", max_tokens=2, messages=SUM, system="Be brief."
    ).usage
    assert counted.input_tokens == usage.input_tokens + (usage.cache_read_input_tokens or 0)


def test_models_are_listed_and_retrieved(client: Anthropic) -> None:
    assert [model.id for model in client.models.list()][:2] == ["ember", "thinker"]
    assert client.models.retrieve("ember").id == "ember"


def test_errors_are_of_the_classes_of_the_client(client: Anthropic) -> None:
    with pytest.raises(anthropic.NotFoundError) as missing:
        client.messages.create(model="claude-9", max_tokens=5, messages=SUM)
    assert missing.value.type == "not_found_error"
    with pytest.raises(anthropic.BadRequestError) as wrong:
        client.messages.create(
            model="ember", max_tokens=5, messages=SUM, extra_body={"temperature": -1}
        )
    assert wrong.value.type == "invalid_request_error"
    assert "temperature" in wrong.value.message
    guarded = os.environ["AKUNU_GUARDED_URL"]
    with pytest.raises(anthropic.AuthenticationError) as caught:
        Anthropic(base_url=guarded, api_key="wrong").messages.create(
            model="ember", max_tokens=5, messages=SUM
        )
    assert caught.value.type == "authentication_error"


async def test_the_async_client(async_client: AsyncAnthropic) -> None:
    message = await async_client.messages.create(model="ember", max_tokens=40, messages=SUM)
    assert message.content[0].type == "text"
    async with async_client.messages.stream(model="ember", max_tokens=40, messages=SUM) as stream:
        text = "".join([text async for text in stream.text_stream])
    assert text == message.content[0].text
