"""Ollama's own Python client: chats, texts, tools, formats, thoughts, models."""

from __future__ import annotations

import os
from typing import Literal

import ollama
import pytest
from pydantic import BaseModel

ADDRESS = os.environ["AKUNU_URL"]
SUM = [{"role": "user", "content": "What is 12 + 7?"}]


class Answer(BaseModel):
    verdict: Literal["even", "odd"]
    sure: bool


WEATHER = [{"role": "user", "content": "What is the weather in Paris?"}]


def get_weather(city: str) -> str:
    """
    The weather in a city.

    Args:
      city: The name of the city

    Returns:
      str: The weather
    """
    return f"sunny in {city}"


@pytest.fixture
def client() -> ollama.Client:
    return ollama.Client(host=ADDRESS)


@pytest.fixture
def async_client() -> ollama.AsyncClient:
    return ollama.AsyncClient(host=ADDRESS)


def test_a_chat_has_text_and_numbers(client: ollama.Client) -> None:
    reply = client.chat(model="ember", messages=SUM)
    assert reply.message.content == "12 + 7 = 19"
    assert reply["message"]["role"] == "assistant"
    assert reply.done
    assert reply.done_reason == "stop"
    assert reply.prompt_eval_count
    assert reply.eval_count
    assert reply.total_duration is not None
    assert reply.eval_duration is not None
    assert reply.total_duration > reply.eval_duration > 0


def test_a_chat_comes_in_parts(client: ollama.Client) -> None:
    parts = list(client.chat(model="ember", messages=SUM, stream=True))
    assert "".join(part.message.content or "" for part in parts) == "12 + 7 = 19"
    assert [part.done for part in parts] == [False] * (len(parts) - 1) + [True]
    assert parts[-1].eval_count


def test_a_text_is_generated_whole_and_in_parts(client: ollama.Client) -> None:
    whole = client.generate(model="ember", prompt="What is 12 + 7?")
    assert whole.response == "12 + 7 = 19"
    parts = client.generate(model="ember", prompt="What is 12 + 7?", stream=True)
    assert "".join(part.response for part in parts) == whole.response
    raw = client.generate(model="ember", prompt="The sun", raw=True, options={"num_predict": 4})
    assert raw.eval_count == 4
    assert raw.done_reason == "length"


def test_a_python_function_is_a_tool(client: ollama.Client) -> None:
    reply = client.chat(model="ember", messages=WEATHER, tools=[get_weather])
    (call,) = reply.message.tool_calls or ()
    assert call.function.name == "get_weather"
    told = get_weather(**call.function.arguments)
    assert told == "sunny in Paris"
    result = {"role": "tool", "tool_name": "get_weather", "content": told}
    turns = [*WEATHER, reply.message, result]
    after = client.chat(model="ember", messages=turns, tools=[get_weather])
    assert after.message.content


def test_calls_come_in_a_stream(client: ollama.Client) -> None:
    parts = list(client.chat(model="ember", messages=WEATHER, tools=[get_weather], stream=True))
    calls = [call for part in parts for call in part.message.tool_calls or ()]
    assert [call.function.arguments for call in calls] == [{"city": "Paris"}]


def test_a_schema_of_pydantic_is_kept(client: ollama.Client) -> None:
    schema = Answer.model_json_schema()
    reply = client.chat(model="ember", messages=SUM, format=schema)
    assert Answer.model_validate_json(reply.message.content or "").verdict in {"even", "odd"}
    text = client.generate(model="ember", prompt="Is 4 even?", format=schema)
    Answer.model_validate_json(text.response)
    client.chat(model="ember", messages=SUM, format="json", options={"num_predict": 40})


def test_options_are_those_of_ollama(client: ollama.Client) -> None:
    options = {"temperature": 1.5, "seed": 4, "num_predict": 8, "top_k": 50, "num_ctx": 512}
    one = client.chat(model="ember", messages=SUM, options=options)
    two = client.chat(model="ember", messages=SUM, options=ollama.Options(**options))
    assert one.message.content == two.message.content
    assert one.eval_count == two.eval_count
    stopped = client.chat(model="ember", messages=SUM, options={"stop": ["="]})
    assert stopped.message.content == "12 + 7 "


def test_logprobs_come_for_each_token(client: ollama.Client) -> None:
    reply = client.chat(model="ember", messages=SUM, logprobs=True, top_logprobs=2)
    assert reply.logprobs is not None
    assert "".join(each.token for each in reply.logprobs) == "12 + 7 = 19"
    assert len(reply.logprobs[0].top_logprobs or ()) == 2


def test_thoughts_are_beside_the_text(client: ollama.Client) -> None:
    few = {"num_predict": 6}
    thought = client.chat(model="thinker", messages=SUM, think=True, options=few)
    assert thought.message.thinking
    assert not thought.message.content
    parts = list(client.chat(model="thinker", messages=SUM, think=True, options=few, stream=True))
    assert "".join(p.message.thinking or "" for p in parts) == thought.message.thinking
    silent = client.chat(model="thinker", messages=SUM, think=False, options=few)
    assert silent.message.thinking is None
    assert silent.message.content
    assert client.generate(model="thinker", prompt="Hi", think=True, options=few).thinking


def test_a_model_without_thoughts_answers_all_the_same(client: ollama.Client) -> None:
    for think in (True, False, "low"):
        reply = client.chat(model="ember", messages=SUM, think=think)
        assert reply.message.content == "12 + 7 = 19"
        assert reply.message.thinking is None


def test_models_are_listed_shown_and_running(client: ollama.Client) -> None:
    listed, thinker = client.list().models[:2]
    assert (listed.model, thinker.model) == ("ember", "thinker")
    assert listed.details is not None
    assert listed.details.format == "gguf"
    assert listed.size
    assert listed.modified_at is not None
    shown = client.show("ember")
    assert "tools" in (shown.capabilities or ())
    assert shown.modelinfo
    assert shown.template
    client.generate(model="ember")  # loads it
    running = {each.model: each for each in client.ps().models}["ember"]
    assert running.context_length
    assert client.chat(model="ember:latest", messages=SUM).message.content == "12 + 7 = 19"


def test_a_model_is_created_copied_and_deleted() -> None:
    client = ollama.Client(host=os.environ["AKUNU_CREATING_URL"])
    steps = client.create(
        "poet",
        from_="ember",
        system="Answer.",
        template="{% for m in messages %}{{ m.content }}{% endfor %}",
        parameters={"num_predict": 3, "stop": ["Q"]},
        messages=[{"role": "user", "content": "A"}],
        license=["free"],
        stream=True,
    )
    assert [each.status for each in steps][-1] == "success"
    assert client.create("poet", from_="ember", system="Answer.").status == "success"
    assert client.copy("poet", "twin").status == "success"
    created = {"poet", "twin"}
    assert created <= {each.model for each in client.list().models}
    shown = client.show("twin")
    assert shown.modelfile
    assert "SYSTEM" in shown.modelfile
    assert shown.details is not None
    assert shown.details.parent_model == "ember"
    assert client.chat(model="twin", messages=SUM, options={"num_predict": 3}).eval_count == 3
    assert {client.delete(each).status for each in created} == {"success"}
    assert not created & {each.model for each in client.list().models}
    with pytest.raises(ollama.ResponseError, match="not served") as caught:
        client.create("x", from_="./model.gguf")
    assert caught.value.status_code == 404


def test_errors_say_what_is_wrong(client: ollama.Client) -> None:
    with pytest.raises(ollama.ResponseError) as caught:
        client.chat(model="nobody", messages=SUM)
    assert caught.value.status_code == 404
    assert "nobody" in caught.value.error
    with pytest.raises(ollama.ResponseError) as caught:
        list(client.chat(model="ember", messages=SUM, options={"mirostat": 1}, stream=True))
    assert caught.value.status_code == 400
    assert "mirostat" in caught.value.error
    with pytest.raises(ollama.ResponseError) as caught:
        client.embed(model="ember", input="text")  # which is there, and is no encoder
    assert caught.value.status_code == 400


async def test_the_async_client(async_client: ollama.AsyncClient) -> None:
    reply = await async_client.chat(model="ember", messages=SUM)
    assert reply.message.content == "12 + 7 = 19"
    text = ""
    async for part in await async_client.generate(
        model="ember", prompt="What is 12 + 7?", stream=True
    ):
        text += part.response
    assert text == "12 + 7 = 19"
    called = await async_client.chat(model="ember", messages=WEATHER, tools=[get_weather])
    assert called.message.tool_calls
