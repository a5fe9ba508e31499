"""LlamaIndex's OpenAILike: completions, chats, streams, tools, objects of a class."""

from __future__ import annotations

import os
from typing import Any, Literal

from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel

ADDRESS = os.environ["AKUNU_URL"]
SUM = [ChatMessage(role="user", content="What is 12 + 7?")]
QUESTION = "What is the weather in Paris?"


class Answer(BaseModel):
    """An answer to a question."""

    verdict: Literal["even", "odd"]
    sure: bool


def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"It is sunny in {city}."


def model(**options: Any) -> OpenAILike:
    usual = {"is_chat_model": True, "is_function_calling_model": True, "temperature": 0}
    settings = {**usual, **options}
    return OpenAILike(
        model="ember", api_base=f"{ADDRESS}/v1", api_key="any", context_window=1024, **settings
    )


def test_a_chat_whole_and_in_parts() -> None:
    assert model().chat(SUM).message.content == "12 + 7 = 19"
    assert "".join(part.delta or "" for part in model().stream_chat(SUM)) == "12 + 7 = 19"


def test_a_text_goes_on() -> None:
    plain = model(is_chat_model=False, is_function_calling_model=False, max_tokens=4)
    whole = plain.complete("The sun is").text
    assert whole
    assert "".join(part.delta or "" for part in plain.stream_complete("The sun is")) == whole
    assert model().complete("What is 12 + 7?").text == "12 + 7 = 19"


def test_a_tool_is_called() -> None:
    reply = model().chat_with_tools([FunctionTool.from_defaults(get_weather)], user_msg=QUESTION)
    (call,) = model().get_tool_calls_from_response(reply)
    assert (call.tool_name, call.tool_kwargs) == ("get_weather", {"city": "Paris"})
    *_, last = model().stream_chat_with_tools(
        [FunctionTool.from_defaults(get_weather)], user_msg=QUESTION
    )
    (call,) = model().get_tool_calls_from_response(last)
    assert call.tool_kwargs == {"city": "Paris"}


def test_a_tool_is_called_and_its_result_answered() -> None:
    told = model().predict_and_call([FunctionTool.from_defaults(get_weather)], QUESTION)
    assert "sunny in Paris" in told.response


def test_an_object_of_a_class() -> None:
    for structured in (True, False):  # by a schema, or by a tool
        asked = model(should_use_structured_outputs=structured).as_structured_llm(Answer)
        answer = asked.chat([ChatMessage(role="user", content="Is 4 even?")])
        assert isinstance(answer.raw, Answer)


async def test_chats_that_are_awaited() -> None:
    assert (await model().achat(SUM)).message.content == "12 + 7 = 19"
    parts = await model().astream_chat(SUM)
    assert "".join([part.delta or "" async for part in parts]) == "12 + 7 = 19"
