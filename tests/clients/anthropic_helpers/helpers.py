"""Run by pytest of an environment with Anthropic's client; ANTHROPIC_BASE_URL is akunu's."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest
from anthropic import Anthropic, AsyncAnthropic, beta_tool
from pydantic import BaseModel

ASK: Any = {
    "model": "ember",
    "max_tokens": 60,
    "messages": [{"role": "user", "content": "What is 12 + 7?"}],
}


class Sum(BaseModel):
    """What the packaged model is asked for; it is small, and writes one number well."""

    first: int


@pytest.fixture
def client() -> Iterator[Anthropic]:
    with Anthropic(api_key="any", max_retries=0) as client:
        yield client


def text_of(message: Any) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def test_a_stream_tells_the_text_of_the_whole_answer(client: Anthropic) -> None:
    whole = client.messages.create(**ASK)
    assert "19" in text_of(whole)
    with client.messages.stream(**ASK) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == stream.get_final_text() == text_of(final) == text_of(whole)
    assert final.stop_reason == "end_turn"
    assert final.usage.output_tokens == whole.usage.output_tokens
    cached = final.usage.cache_read_input_tokens
    counted = client.messages.count_tokens(model="ember", messages=ASK["messages"])
    assert final.usage.input_tokens + (cached or 0) == counted.input_tokens


def test_a_stream_of_events_ends_with_the_whole_message(client: Anthropic) -> None:
    with client.messages.stream(**ASK) as stream:
        events = list(stream)
    kinds = [event.type for event in events]
    assert kinds[0] == "message_start"
    assert kinds[-1] == "message_stop"
    (stopped,) = [event for event in events if event.type == "content_block_stop"]
    assert stopped.content_block.text == events[-1].message.content[0].text
    texts = [event for event in events if event.type == "text"]
    assert texts[-1].snapshot == stopped.content_block.text


def test_a_coroutine_reads_the_same_stream(client: Anthropic) -> None:
    async def read() -> str:
        async with (
            AsyncAnthropic(api_key="any", max_retries=0) as other,
            other.messages.stream(**ASK) as stream,
        ):
            return await stream.get_final_text()

    assert asyncio.run(read()) == text_of(client.messages.create(**ASK))


def test_an_answer_is_parsed_into_a_model_of_pydantic(client: Anthropic) -> None:
    reply = client.messages.parse(**ASK, output_format=Sum)
    assert isinstance(reply.parsed_output, Sum)
    assert reply.parsed_output.model_dump() == json.loads(text_of(reply))


def test_a_streamed_answer_is_parsed_at_its_end(client: Anthropic) -> None:
    with client.messages.stream(**ASK, output_format=Sum) as stream:
        final = stream.get_final_message()
    assert isinstance(final.parsed_output, Sum)
    assert final.parsed_output == client.messages.parse(**ASK, output_format=Sum).parsed_output


def test_a_beta_request_is_parsed(client: Anthropic) -> None:
    reply = client.beta.messages.parse(**ASK, output_format=Sum)
    assert isinstance(reply.parsed_output, Sum)


def test_a_streamed_call_of_a_tool_is_that_of_the_whole_answer(client: Anthropic) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    asked = {
        **ASK,
        "tools": [{"name": "double", "description": "Twice a number.", "input_schema": schema}],
        "tool_choice": {"type": "tool", "name": "double"},
    }
    whole = client.messages.create(**asked)
    (call,) = [block for block in whole.content if block.type == "tool_use"]
    assert whole.stop_reason == "tool_use"
    assert isinstance(call.input["a"], int)
    with client.messages.stream(**asked) as stream:
        told = [event for event in stream if event.type == "input_json"]
        final = stream.get_final_message()
    (streamed,) = [block for block in final.content if block.type == "tool_use"]
    assert streamed.input == call.input
    assert json.loads("".join(event.partial_json for event in told)) == call.input


def test_the_tool_runner_calls_a_function_and_tells_its_result(client: Anthropic) -> None:
    asked: list[int] = []

    @beta_tool
    def double(number: int) -> str:
        """Twice a number.

        Args:
            number: Which one.
        """
        asked.append(number)
        return str(2 * number)

    runner = client.beta.messages.tool_runner(
        **ASK, tools=[double], tool_choice={"type": "any"}, max_iterations=2
    )
    messages = list(runner)
    # Its first request asks for a conversation that the server keeps, and is refused: the runner
    # goes on with whole conversations.
    assert len(messages) == 2
    calls = [block for block in messages[0].content if block.type == "tool_use"]
    assert asked[: len(calls)] == [call.input["number"] for call in calls]


def test_models_are_listed_through_all_pages(client: Anthropic) -> None:
    assert [model.id for model in client.models.list(limit=1)] == ["ember"]
    assert client.models.retrieve("ember").max_input_tokens == 1024
    assert [model.id for model in client.beta.models.list()] == ["ember"]


def test_errors_are_the_clients_own(client: Anthropic) -> None:
    with pytest.raises(anthropic.NotFoundError) as missing:
        client.messages.create(**{**ASK, "model": "none"})
    assert missing.value.request_id == missing.value.response.headers["request-id"]
    with pytest.raises(anthropic.NotFoundError):
        client.models.retrieve("none")
    with pytest.raises(anthropic.BadRequestError, match="prompt is too long"):
        client.messages.create(**{**ASK, "messages": [{"role": "user", "content": "a b " * 2000}]})
    with pytest.raises(anthropic.BadRequestError, match="temperature"):
        client.messages.create(**ASK, extra_body={"temperature": -1})


def test_raw_answers_have_their_headers(client: Anthropic) -> None:
    raw = client.messages.with_raw_response.create(**ASK, metadata={"user_id": "me"})
    assert raw.headers["x-akunu-ignored"] == "metadata"
    assert raw.request_id == raw.headers["request-id"]
    assert raw.parse().role == "assistant"


def test_a_conversation_goes_on_with_what_was_answered(client: Anthropic) -> None:
    first = client.messages.create(**ASK)
    turns = [*ASK["messages"], first.to_param(), {"role": "user", "content": "And 3 + 4?"}]
    assert text_of(client.messages.create(**{**ASK, "messages": turns}))
