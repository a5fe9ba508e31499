"""Chats of openai-python: whole, streamed, structured, with tools."""

from __future__ import annotations

import json
from typing import Any, Literal

import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel

SUM: Any = [{"role": "user", "content": "What is 12 + 7?"}]
ADD: Any = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "The sum of two numbers.",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
            "additionalProperties": False,
        },
        "strict": True,
    },
}


class Answer(BaseModel):
    verdict: Literal["even", "odd"]
    sure: bool


class Add(BaseModel):
    """The sum of two numbers."""

    a: int
    b: int


def test_a_reply_has_text_a_reason_and_usage(client: OpenAI) -> None:
    reply = client.chat.completions.create(model="ember", messages=SUM)
    assert reply.choices[0].message.content == "12 + 7 = 19"
    assert reply.choices[0].finish_reason == "stop"
    assert reply.usage is not None
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens


def test_a_stream_is_the_same_text_and_ends_with_usage(client: OpenAI) -> None:
    chunks = list(
        client.chat.completions.create(
            model="ember", messages=SUM, stream=True, stream_options={"include_usage": True}
        )
    )
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == "12 + 7 = 19"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens > 0


def test_parse_returns_an_object_of_the_class(client: OpenAI) -> None:
    reply = client.chat.completions.parse(model="ember", messages=SUM, response_format=Answer)
    parsed = reply.choices[0].message.parsed
    assert isinstance(parsed, Answer)
    assert parsed.verdict in {"even", "odd"}


def test_parse_says_when_the_text_was_cut(client: OpenAI) -> None:
    with pytest.raises(openai.LengthFinishReasonError):
        client.chat.completions.parse(
            model="ember", messages=SUM, response_format=Answer, max_tokens=2
        )


def test_parse_reads_the_arguments_of_a_tool(client: OpenAI) -> None:
    reply = client.chat.completions.parse(
        model="ember",
        messages=SUM,
        tools=[openai.pydantic_function_tool(Add)],
        tool_choice="required",
    )
    (call,) = reply.choices[0].message.tool_calls or ()
    assert isinstance(call.function.parsed_arguments, Add)


def test_the_stream_helper_tells_its_events_in_order(client: OpenAI) -> None:
    with client.chat.completions.stream(model="ember", messages=SUM) as stream:
        events = [event.type for event in stream]
        final = stream.get_final_completion()
    assert events[0] == "chunk"
    assert "content.delta" in events
    assert "content.done" in events
    assert final.choices[0].message.content == "12 + 7 = 19"
    assert final.choices[0].message.role == "assistant"


def test_the_stream_helper_parses(client: OpenAI) -> None:
    with client.chat.completions.stream(
        model="ember", messages=SUM, response_format=Answer
    ) as stream:
        done = [event for event in stream if event.type == "content.done"]
        final = stream.get_final_completion()
    assert isinstance(done[0].parsed, Answer)
    assert final.choices[0].message.parsed == done[0].parsed


def test_the_stream_helper_tells_the_arguments_of_a_call(client: OpenAI) -> None:
    with client.chat.completions.stream(
        model="ember",
        messages=SUM,
        tools=[openai.pydantic_function_tool(Add)],
        tool_choice="required",
    ) as stream:
        events = list(stream)
    pieces = [e for e in events if e.type == "tool_calls.function.arguments.delta"]
    (done,) = [e for e in events if e.type == "tool_calls.function.arguments.done"]
    assert len(pieces) > 1
    assert "".join(piece.arguments_delta for piece in pieces) == done.arguments
    assert isinstance(done.parsed_arguments, Add)


def test_a_call_its_result_and_the_answer(client: OpenAI) -> None:
    first = client.chat.completions.create(
        model="ember", messages=SUM, tools=[ADD], tool_choice="required"
    )
    message = first.choices[0].message
    assert first.choices[0].finish_reason == "tool_calls"
    assert message.content is None
    (call,) = message.tool_calls or ()
    assert call.type == "function"
    arguments = json.loads(call.function.arguments)
    assert set(arguments) == {"a", "b"}
    result = {"role": "tool", "tool_call_id": call.id, "content": "19"}
    second = client.chat.completions.create(
        model="ember", messages=[*SUM, message, result], tools=[ADD], tool_choice="none"
    )
    assert second.choices[0].finish_reason == "stop"
    assert second.choices[0].message.content


def test_several_answers_and_a_seed(client: OpenAI) -> None:
    def texts() -> list[str | None]:
        reply = client.chat.completions.create(
            model="ember", messages=SUM, n=2, seed=3, temperature=2, top_p=1, max_tokens=8
        )
        return [choice.message.content for choice in reply.choices]

    first = texts()
    assert len(first) == 2
    assert first == texts()


def test_logprobs_of_each_token(client: OpenAI) -> None:
    reply = client.chat.completions.create(
        model="ember", messages=SUM, logprobs=True, top_logprobs=2, max_tokens=3
    )
    logprobs = reply.choices[0].logprobs
    assert logprobs is not None
    assert logprobs.content is not None
    assert len(logprobs.content) == 3
    for each in logprobs.content:
        assert len(each.top_logprobs) == 2
        assert each.logprob <= 0
        assert each.token == bytes(each.bytes or ()).decode()


def test_headers_of_the_answer_can_be_read(client: OpenAI) -> None:
    raw = client.chat.completions.with_raw_response.create(
        model="ember", messages=SUM, user="me", extra_headers={"x-request-id": "mine-1"}
    )
    assert raw.headers["x-request-id"] == "mine-1"
    assert raw.headers["x-akunu-ignored"] == "user"
    reply = raw.parse()
    assert reply.choices[0].message.content == "12 + 7 = 19"
    assert reply._request_id == "mine-1"


def test_a_stream_can_be_read_as_it_arrives(client: OpenAI) -> None:
    with client.chat.completions.with_streaming_response.create(
        model="ember", messages=SUM, stream=True
    ) as answer:
        lines = [line for line in answer.iter_lines() if line]
    assert lines[-1] == "data: [DONE]"


async def test_replies_and_streams_of_the_async_client(async_client: AsyncOpenAI) -> None:
    reply = await async_client.chat.completions.create(model="ember", messages=SUM)
    assert reply.choices[0].message.content == "12 + 7 = 19"
    text = ""
    async for chunk in await async_client.chat.completions.create(
        model="ember", messages=SUM, stream=True
    ):
        text += chunk.choices[0].delta.content or ""
    assert text == "12 + 7 = 19"
    parsed = await async_client.chat.completions.parse(
        model="ember", messages=SUM, response_format=Answer
    )
    assert isinstance(parsed.choices[0].message.parsed, Answer)
    async with async_client.chat.completions.stream(model="ember", messages=SUM) as stream:
        final = await stream.get_final_completion()
    assert final.choices[0].message.content == "12 + 7 = 19"
