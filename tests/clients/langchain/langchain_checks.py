"""LangChain's ChatOpenAI, ChatAnthropic and ChatOllama: the same turns through three APIs."""

from __future__ import annotations

import os
from typing import Any, Literal

import pytest
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_ollama import ChatOllama, OllamaLLM
from langchain_openai import ChatOpenAI, OpenAI
from pydantic import BaseModel

ADDRESS = os.environ["AKUNU_URL"]
SUM = "What is 12 + 7?"
QUESTION = "What is the weather in Paris?"


class Answer(BaseModel):
    """An answer to a question."""

    verdict: Literal["even", "odd"]
    sure: bool


@tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"It is sunny in {city}."


def openai_model(**options: Any) -> ChatOpenAI:
    # It asks for the usage of a stream by itself only where the address is OpenAI's.
    return ChatOpenAI(
        model="ember", base_url=f"{ADDRESS}/v1", api_key="any", stream_usage=True, **options
    )


MODELS: dict[str, Any] = {
    "chat": openai_model,
    "responses": lambda **options: openai_model(use_responses_api=True, **options),
    "anthropic": lambda **options: ChatAnthropic(
        model_name="ember", base_url=ADDRESS, api_key="any", **options
    ),
    "ollama": lambda **options: ChatOllama(model="ember", base_url=ADDRESS, **options),
}


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> BaseChatModel:
    made: BaseChatModel = MODELS[request.param]()
    return made


def test_a_reply_has_text_and_usage(model: BaseChatModel) -> None:
    reply = model.invoke(SUM)
    assert reply.text == "12 + 7 = 19"
    assert reply.usage_metadata is not None
    assert reply.usage_metadata["output_tokens"] > 0
    assert (
        reply.usage_metadata["total_tokens"]
        == reply.usage_metadata["input_tokens"] + reply.usage_metadata["output_tokens"]
    )


def test_a_stream_is_the_same_text(model: BaseChatModel) -> None:
    parts = list(model.stream(SUM))
    assert "".join(part.text for part in parts) == "12 + 7 = 19"
    whole = parts[0]
    for part in parts[1:]:
        whole += part
    assert whole.usage_metadata is not None
    assert whole.usage_metadata["output_tokens"] > 0


def test_a_tool_is_called_and_its_result_answered(model: BaseChatModel) -> None:
    with_tools = model.bind_tools([get_weather])
    question = HumanMessage(QUESTION)
    called = with_tools.invoke([question])
    assert isinstance(called, AIMessage)
    (call,) = called.tool_calls
    assert (call["name"], call["args"]) == ("get_weather", {"city": "Paris"})
    told = get_weather.invoke(call)
    assert isinstance(told, ToolMessage)
    assert with_tools.invoke([question, called, told]).text


def test_the_pieces_of_a_call_add_up(model: BaseChatModel) -> None:
    parts = list(model.bind_tools([get_weather]).stream(QUESTION))
    whole = parts[0]
    for part in parts[1:]:
        whole += part
    assert isinstance(whole, AIMessage)
    assert [call["args"] for call in whole.tool_calls] == [{"city": "Paris"}]


@pytest.mark.parametrize("api", ["chat", "responses", "anthropic"])
@pytest.mark.parametrize("choice", ["any", "get_weather"])
def test_a_call_can_be_required(api: str, choice: str) -> None:
    model = MODELS[api]().bind_tools([get_weather], tool_choice=choice)
    assert [call["name"] for call in model.invoke("Hello").tool_calls] == ["get_weather"]


METHODS = [
    *(("chat", method) for method in ("json_schema", "function_calling", "json_mode")),
    ("responses", "json_schema"),
    ("anthropic", "json_schema"),
    ("anthropic", "function_calling"),
    ("ollama", "json_schema"),
]


@pytest.mark.parametrize(("api", "method"), METHODS)
def test_structured_output_is_an_object_of_the_class(api: str, method: str) -> None:
    asked = MODELS[api]().with_structured_output(Answer, method=method, include_raw=True)
    answer = asked.invoke("Is 4 even? Reply with JSON.")
    if method == "json_mode":  # some object: no schema is sent
        assert answer["raw"].text.startswith("{")
    else:
        assert isinstance(answer["parsed"], Answer), answer["parsing_error"]


def test_a_structured_answer_comes_as_a_stream() -> None:
    asked = openai_model().with_structured_output(Answer)
    *_, last = asked.stream("Is 4 even?")
    assert isinstance(last, Answer)


async def test_replies_and_streams_that_are_awaited(model: BaseChatModel) -> None:
    assert (await model.ainvoke(SUM)).text == "12 + 7 = 19"
    assert "".join([part.text async for part in model.astream(SUM)]) == "12 + 7 = 19"
    replies = await model.abatch([SUM, SUM])
    assert [reply.text for reply in replies] == ["12 + 7 = 19"] * 2


def test_an_agent_calls_a_tool_and_ends(model: BaseChatModel) -> None:
    agent = create_agent(model, [get_weather], system_prompt="Use tools.")
    turns = agent.invoke({"messages": [HumanMessage(QUESTION)]})["messages"]
    assert [turn.type for turn in turns][:4] == ["human", "ai", "tool", "ai"]


def test_tokens_of_a_prompt_and_logprobs() -> None:
    reply = openai_model(logprobs=True, top_logprobs=2, stop=["="]).invoke(SUM)
    assert reply.text == "12 + 7 "
    assert len(reply.response_metadata["logprobs"]["content"][0]["top_logprobs"]) == 2


def test_thoughts_of_a_reasoning_model() -> None:
    few = ChatOllama(model="thinker", base_url=ADDRESS, reasoning=True, num_predict=6)
    assert few.invoke(SUM).additional_kwargs["reasoning_content"]


def test_texts_that_are_no_chats() -> None:
    completion = OpenAI(model="ember", base_url=f"{ADDRESS}/v1", api_key="any", max_tokens=4)
    assert completion.invoke("The sun is")
    assert completion.generate(["One", "Two"]).generations[1][0].text
    assert "".join(completion.stream("The sun is"))
    generated = OllamaLLM(model="ember", base_url=ADDRESS, num_predict=4)
    assert generated.invoke("The sun is")
