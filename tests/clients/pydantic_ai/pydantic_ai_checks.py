"""Agents of pydantic-ai over OpenAI's chats and responses, Ollama's address, Anthropic's."""

from __future__ import annotations

import os
from typing import Literal

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput, ToolOutput
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.ollama import OllamaProvider
from pydantic_ai.providers.openai import OpenAIProvider

ADDRESS = os.environ["AKUNU_URL"]
SUM = "What is 12 + 7?"


class Answer(BaseModel):
    """An answer to a question."""

    verdict: Literal["even", "odd"]
    sure: bool


@pytest.fixture(params=["chat", "responses", "ollama", "anthropic"])
def model(request: pytest.FixtureRequest) -> Model:
    address = f"{ADDRESS}/v1"
    if request.param == "responses":
        provider = OpenAIProvider(base_url=address, api_key="any")
        return OpenAIResponsesModel("ember", provider=provider)
    if request.param == "ollama":
        return OpenAIChatModel("ember", provider=OllamaProvider(base_url=address))
    if request.param == "anthropic":
        return AnthropicModel(
            "ember",
            provider=AnthropicProvider(base_url=ADDRESS, api_key="any"),
            # It infers from the names of Claude models whether they take schemas.
            profile=ModelProfile(supports_json_schema_output=True),
        )
    return OpenAIChatModel("ember", provider=OpenAIProvider(base_url=address, api_key="any"))


async def test_an_agent_answers(model: Model) -> None:
    run = await Agent(model).run(SUM)
    assert run.output == "12 + 7 = 19"
    assert run.usage.output_tokens > 0


async def test_an_agent_answers_in_parts(model: Model) -> None:
    async with Agent(model).run_stream(SUM) as run:
        parts = [part async for part in run.stream_text(delta=True, debounce_by=None)]
        assert "".join(parts) == "12 + 7 = 19"
        assert run.usage.output_tokens > 0


async def test_an_agent_calls_a_tool(model: Model) -> None:
    asked = []
    agent = Agent(model)

    @agent.tool_plain
    def get_weather(city: str) -> str:
        """The weather in a city."""
        asked.append(city)
        return f"It is sunny in {city}."

    run = await agent.run("What is the weather in Paris?")
    assert asked == ["Paris"]
    assert run.output


async def test_an_output_is_an_object_of_the_class(model: Model) -> None:
    run = await Agent(model, output_type=ToolOutput(Answer)).run("Is 4 even?")
    assert isinstance(run.output, Answer)


async def test_an_output_keeps_the_schema_of_the_class(model: Model) -> None:
    run = await Agent(model, output_type=NativeOutput(Answer)).run("Is 4 even?")
    assert isinstance(run.output, Answer)


async def test_an_error_has_its_status(model: Model) -> None:
    with pytest.raises(ModelHTTPError) as caught:
        await Agent(model).run("word " * 5000)
    assert caught.value.status_code == 400
