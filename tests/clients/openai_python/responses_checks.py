"""Responses of openai-python: created, streamed, parsed, with a function."""

from __future__ import annotations

from typing import Any, Literal

import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel

ADD: Any = {
    "type": "function",
    "name": "add",
    "description": "The sum of two numbers.",
    "parameters": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
    "strict": True,
}


class Answer(BaseModel):
    verdict: Literal["even", "odd"]


def test_a_response_has_text_and_usage(client: OpenAI) -> None:
    response = client.responses.create(model="ember", input="What is 12 + 7?")
    assert response.status == "completed"
    assert response.output_text == "12 + 7 = 19"
    assert response.usage is not None
    assert response.usage.total_tokens > response.usage.output_tokens > 0


def test_a_response_that_was_cut_says_why(client: OpenAI) -> None:
    response = client.responses.create(model="ember", input="What is 12 + 7?", max_output_tokens=3)
    assert response.status == "incomplete"
    assert response.incomplete_details is not None
    assert response.incomplete_details.reason == "max_output_tokens"


def test_the_events_of_a_stream_come_in_order(client: OpenAI) -> None:
    events = list(client.responses.create(model="ember", input="What is 12 + 7?", stream=True))
    kinds = [event.type for event in events]
    deltas = [each for each in kinds if each == "response.output_text.delta"]
    assert kinds == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        *deltas,
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert deltas
    assert [event.sequence_number for event in events] == list(range(len(events)))


def test_the_stream_helper_gathers_the_response(client: OpenAI) -> None:
    with client.responses.stream(model="ember", input="What is 12 + 7?") as stream:
        text = "".join(e.delta for e in stream if e.type == "response.output_text.delta")
        final = stream.get_final_response()
    assert text == final.output_text == "12 + 7 = 19"


def test_parse_returns_an_object_of_the_class(client: OpenAI) -> None:
    response = client.responses.parse(model="ember", input="Is 4 even?", text_format=Answer)
    assert isinstance(response.output_parsed, Answer)
    with client.responses.stream(model="ember", input="Is 4 even?", text_format=Answer) as stream:
        assert stream.until_done().get_final_response().output_parsed == response.output_parsed


def test_a_function_is_called_and_its_result_answered(client: OpenAI) -> None:
    turns: Any = [{"role": "user", "content": "What is 12 + 7?"}]
    first = client.responses.create(model="ember", input=turns, tools=[ADD], tool_choice="required")
    (call,) = [item for item in first.output if item.type == "function_call"]
    assert call.name == "add"
    turns += first.output
    turns.append({"type": "function_call_output", "call_id": call.call_id, "output": "19"})
    second = client.responses.create(model="ember", input=turns, tools=[ADD], tool_choice="none")
    assert second.output_text


def test_the_stream_helper_parses_a_function_call(client: OpenAI) -> None:
    class Add(BaseModel):
        a: int
        b: int

    with client.responses.stream(
        model="ember",
        input="What is 12 + 7?",
        tools=[openai.pydantic_function_tool(Add, name="add")],  # a chat's form, which it turns
        tool_choice="required",
    ) as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert "response.function_call_arguments.delta" in {event.type for event in events}
    (call,) = [item for item in final.output if item.type == "function_call"]
    assert isinstance(call.parsed_arguments, Add)


def test_the_tokens_of_an_input_are_counted(client: OpenAI) -> None:
    counted = client.responses.input_tokens.count(model="ember", input="What is 12 + 7?")
    response = client.responses.create(model="ember", input="What is 12 + 7?")
    assert response.usage is not None
    assert counted.input_tokens == response.usage.input_tokens


def test_a_stored_response_is_continued_retrieved_and_deleted(client: OpenAI) -> None:
    first = client.responses.create(model="ember", input="What is 12 + 7?")
    second = client.responses.create(
        model="ember", input="And 3 + 4?", previous_response_id=first.id
    )
    assert second.previous_response_id == first.id
    assert first.usage is not None
    assert second.usage is not None
    assert second.usage.input_tokens > first.usage.total_tokens
    assert client.responses.retrieve(first.id).output_text == first.output_text
    (item,) = client.responses.input_items.list(second.id)
    assert item.type == "message"
    client.responses.delete(first.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(first.id)


def test_a_response_that_is_not_stored_cannot_be_continued(client: OpenAI) -> None:
    first = client.responses.create(model="ember", input="What is 12 + 7?", store=False)
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(model="ember", input="And now?", previous_response_id=first.id)
    assert caught.value.param == "previous_response_id"


async def test_responses_of_the_async_client(async_client: AsyncOpenAI) -> None:
    response = await async_client.responses.create(model="ember", input="What is 12 + 7?")
    assert response.output_text == "12 + 7 = 19"
    async with async_client.responses.stream(model="ember", input="What is 12 + 7?") as stream:
        final = await stream.get_final_response()
    assert final.output_text == "12 + 7 = 19"
