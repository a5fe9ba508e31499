"""litellm through its providers: OpenAI's, Anthropic's, Ollama's, vLLM's and plain texts."""

from __future__ import annotations

import os
from typing import Any, Literal

import litellm
import pytest
from pydantic import BaseModel

ADDRESS = os.environ["AKUNU_URL"]
SUM = [{"role": "user", "content": "What is 12 + 7?"}]
QUESTION = [{"role": "user", "content": "What is the weather in Paris?"}]
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}
PROVIDERS: dict[str, dict[str, Any]] = {
    "openai": {"model": "openai/ember", "api_base": f"{ADDRESS}/v1", "api_key": "any"},
    "hosted_vllm": {"model": "hosted_vllm/ember", "api_base": f"{ADDRESS}/v1"},
    "anthropic": {"model": "anthropic/ember", "api_base": ADDRESS, "api_key": "any"},
    "ollama_chat": {"model": "ollama_chat/ember", "api_base": ADDRESS},
    "llamafile": {"model": "llamafile/ember", "api_base": f"{ADDRESS}/v1"},
}
every_provider = pytest.mark.parametrize("provider", PROVIDERS)


class Answer(BaseModel):
    verdict: Literal["even", "odd"]
    sure: bool


@every_provider
def test_a_reply_has_text_a_reason_and_usage(provider: str) -> None:
    reply = litellm.completion(messages=SUM, **PROVIDERS[provider])
    assert reply.choices[0].message.content == "12 + 7 = 19"
    assert reply.choices[0].finish_reason == "stop"
    assert reply.usage.completion_tokens > 0
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens


@every_provider
def test_a_stream_is_the_same_text_with_usage(provider: str) -> None:
    parts = list(
        litellm.completion(
            messages=SUM,
            stream=True,
            stream_options={"include_usage": True},
            **PROVIDERS[provider],
        )
    )
    text = "".join(part.choices[0].delta.content or "" for part in parts if part.choices)
    assert text == "12 + 7 = 19"
    whole = litellm.stream_chunk_builder(parts, messages=SUM)
    assert whole.choices[0].message.content == text
    assert whole.usage.completion_tokens > 0


@every_provider
def test_a_tool_is_called_and_its_result_answered(provider: str) -> None:
    reply = litellm.completion(messages=QUESTION, tools=[WEATHER], **PROVIDERS[provider])
    message = reply.choices[0].message
    (call,) = message.tool_calls
    assert call.function.name == "get_weather"
    assert call.function.arguments.replace(" ", "") == '{"city":"Paris"}'
    assert reply.choices[0].finish_reason == "tool_calls"
    result = {"role": "tool", "tool_call_id": call.id, "content": "It is sunny."}
    after = litellm.completion(
        messages=[*QUESTION, message, result], tools=[WEATHER], **PROVIDERS[provider]
    )
    assert after.choices[0].message.content


@every_provider
def test_a_call_comes_in_a_stream(provider: str) -> None:
    parts = list(
        litellm.completion(messages=QUESTION, tools=[WEATHER], stream=True, **PROVIDERS[provider])
    )
    (call,) = litellm.stream_chunk_builder(parts).choices[0].message.tool_calls
    assert call.function.name == "get_weather"
    assert call.function.arguments.replace(" ", "") == '{"city":"Paris"}'


@pytest.mark.parametrize("provider", ["openai", "hosted_vllm", "ollama_chat", "llamafile"])
def test_an_answer_keeps_a_schema(provider: str) -> None:
    reply = litellm.completion(
        messages=SUM, response_format=Answer, max_tokens=60, **PROVIDERS[provider]
    )
    Answer.model_validate_json(reply.choices[0].message.content)


@every_provider
async def test_replies_and_streams_that_are_awaited(provider: str) -> None:
    reply = await litellm.acompletion(messages=SUM, **PROVIDERS[provider])
    assert reply.choices[0].message.content == "12 + 7 = 19"
    stream = await litellm.acompletion(messages=SUM, stream=True, **PROVIDERS[provider])
    text = "".join([part.choices[0].delta.content or "" async for part in stream])
    assert text == "12 + 7 = 19"


def test_texts_that_are_no_chats() -> None:
    for model in ("text-completion-openai/ember", "hosted_vllm/ember"):
        reply = litellm.text_completion(
            model=model,
            api_base=f"{ADDRESS}/v1",
            api_key="any",
            prompt="The sun is",
            max_tokens=4,
        )
        assert reply.choices[0].text
    parts = litellm.text_completion(
        model="text-completion-openai/ember",
        api_base=f"{ADDRESS}/v1",
        api_key="any",
        prompt="The sun is",
        max_tokens=4,
        stream=True,
    )
    assert "".join(part.choices[0].text or "" for part in parts)
    generated = litellm.completion(
        model="ollama/ember", api_base=ADDRESS, messages=SUM, max_tokens=20
    )
    assert generated.choices[0].message.content


def test_responses_and_thoughts() -> None:
    response = litellm.responses(
        model="openai/ember", api_base=f"{ADDRESS}/v1", api_key="any", input="What is 12 + 7?"
    )
    assert response.output[0].content[0].text == "12 + 7 = 19"
    thought = litellm.completion(
        **{**PROVIDERS["hosted_vllm"], "model": "hosted_vllm/thinker"},
        messages=SUM,
        max_tokens=6,
    )
    assert thought.choices[0].message.reasoning_content


def test_errors_are_of_the_classes_of_litellm() -> None:
    wanted = PROVIDERS["openai"]
    with pytest.raises(litellm.NotFoundError):
        litellm.completion(**{**wanted, "model": "openai/nobody"}, messages=SUM)
    with pytest.raises(litellm.BadRequestError):
        litellm.completion(**wanted, messages=SUM, temperature=-1)
    with pytest.raises(litellm.ContextWindowExceededError):
        litellm.completion(**wanted, messages=[{"role": "user", "content": "word " * 5000}])
    with pytest.raises(litellm.AuthenticationError):
        litellm.completion(
            model="openai/ember",
            api_base=os.environ["AKUNU_GUARDED_URL"] + "/v1",
            api_key="wrong",
            messages=SUM,
        )
