"""Calls of tools, from the question to the answer that uses their results."""

from __future__ import annotations

import asyncio
import math
from typing import Any, Literal

import pytest

import akunu
from akunu.text.deltas import ToolCallArguments, ToolCallEnd, ToolCallStart
from lines import each_line


def get_weather(city: str, unit: Literal["c", "f"] = "c", days: int = 1) -> str:
    """Get the weather in a city."""
    return f"It is sunny in {city}."


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


QUESTION = [{"role": "user", "content": "What is the weather in Paris?"}]
TOOLS = [get_weather, add]
HOT: dict[str, Any] = {"temperature": 3.0, "max_tokens": 120}


@each_line("seed", range(6))
def test_a_call_that_must_come_is_one_however_hot_the_model_is(
    ember: akunu.Model, seed: int
) -> None:
    reply = ember.chat(
        QUESTION, tools=TOOLS, tool_choice="required", parallel_tool_calls=False, seed=seed, **HOT
    )
    if reply.finish_reason == "length":  # within a long text
        assert reply.tool_calls == ()
        return
    (call,) = reply.tool_calls
    assert (reply, reply.finish_reason) == ("", "tool_calls")
    assert call.function in TOOLS
    arguments = call.arguments
    if call.name == "add":
        assert {name: type(value) for name, value in arguments.items()} == {"a": int, "b": int}
    else:
        assert isinstance(arguments["city"], str)
        assert arguments.get("unit", "c") in ("c", "f")
        assert isinstance(arguments.get("days", 1), int)


@each_line("stop", ["{", "get_", "Paris", "tool_call"])
def test_what_a_call_had_begun_with_when_a_stop_string_came_is_no_text(
    ember: akunu.Model, stop: str
) -> None:
    reply = ember.chat(QUESTION, tools=TOOLS, tool_choice="required", stop=stop)
    assert (reply, reply.tool_calls, reply.finish_reason) == ("", (), "stop")
    stream = ember.chat(QUESTION, tools=TOOLS, tool_choice="required", stop=stop, stream=True)
    assert "".join(stream) == ""


def test_the_name_of_a_tool_makes_that_one_be_called(ember: akunu.Model) -> None:
    for name in ("get_weather", "add"):
        reply = ember.chat(QUESTION, tools=TOOLS, tool_choice=name, max_tokens=60)
        assert {call.name for call in reply.tool_calls} == {name}


def test_a_conversation_goes_on_with_what_a_tool_returned(ember: akunu.Model) -> None:
    reply = ember.chat(QUESTION, tools=[get_weather], max_tokens=60)
    (call,) = reply.tool_calls
    assert call.function is get_weather
    messages = [
        *QUESTION,
        {"role": "assistant", "content": reply.text, "tool_calls": [call.message]},
        {"role": "tool", "tool_call_id": call.id, "content": get_weather(**call.arguments)},
    ]
    answer = ember.chat(messages, tools=[get_weather], max_tokens=60)
    assert answer.tool_calls == ()
    assert answer.prompt_tokens > reply.prompt_tokens + reply.completion_tokens


def test_no_tools_are_told_where_none_may_be_called(ember: akunu.Model) -> None:
    plain = ember.chat(QUESTION, max_tokens=20)
    assert ember.chat(QUESTION, tools=TOOLS, tool_choice="none", max_tokens=20) == plain


def test_streams_and_coroutines_have_the_same_calls(ember: akunu.Model) -> None:
    given: dict[str, Any] = {"tools": [get_weather], "max_tokens": 60}
    (call,) = ember.chat(QUESTION, **given).tool_calls
    stream = ember.chat(QUESTION, stream=True, **given)
    start, *middle, end = stream.deltas()
    assert isinstance(start, ToolCallStart)
    assert isinstance(end, ToolCallEnd)
    fragments = [delta.text for delta in middle if isinstance(delta, ToolCallArguments)]
    assert len(fragments) == len(middle) > 1
    assert "".join(fragments) == call.arguments_text
    again = asyncio.run(ember.chat_async(QUESTION, **given))
    assert again.tool_calls[0].arguments_text == call.arguments_text


ANSWER = {
    "type": "object",
    "properties": {"answer": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["answer"],
    "additionalProperties": False,
}


def test_beside_a_schema_the_model_calls_or_answers_in_it(ember: akunu.Model) -> None:
    given: dict[str, Any] = {"tools": [get_weather], "schema": ANSWER, "max_tokens": 80}
    called = ember.chat(QUESTION, **given)
    assert [call.name for call in called.tool_calls] == ["get_weather"]
    assert (called, called.finish_reason) == ("", "tool_calls")
    assert (called.parsed, called.mistakes) == (None, ())
    # Who cannot begin a call answers.
    spelled = map(ember.tokenizer.token_bytes, range(ember.tokenizer.vocab_size))
    tags = {token: -math.inf for token, text in enumerate(spelled) if text.startswith(b"<")}
    answered = ember.chat(QUESTION, logit_bias=tags, **given)
    assert (answered.tool_calls, answered.finish_reason) == ((), "stop")
    assert answered.parsed.keys() == {"answer"}
    assert asyncio.run(ember.chat_async(QUESTION, logit_bias=tags, **given)) == answered
    assert ember.chat([QUESTION], logit_bias=tags, **given) == [answered]
    assert ember.chat(QUESTION, tool_choice="required", **given).tool_calls
    assert ember.chat(QUESTION, tool_choice="none", **given).parsed.keys() == {"answer"}


@each_line("seed", range(4))
def test_beside_a_schema_a_hot_model_writes_nothing_else(ember: akunu.Model, seed: int) -> None:
    reply = ember.chat(QUESTION, tools=TOOLS, schema=ANSWER, seed=seed, **HOT)
    if reply.finish_reason == "stop":
        assert reply.parsed.keys() == {"answer"}
    elif reply.finish_reason == "tool_calls":
        assert {call.name for call in reply.tool_calls} <= {"get_weather", "add"}


def test_a_choice_that_is_no_tool_is_refused(ember: akunu.Model) -> None:
    with pytest.raises(akunu.ArgumentError, match="tool_choice is 'any'"):
        ember.chat(QUESTION, tools=TOOLS, tool_choice="any")


def test_control_tokens_that_a_notation_is_written_with_are_not_skipped(
    ember: akunu.Model,
) -> None:
    tokens = ember.tokenizer.control_tokens()
    ids = [tokens["<|im_start|>"], *ember.tokenizer.encode("find"), tokens["<|im_end|>"]]
    for keep, expected in (((), "find"), (("<|im_start|>name",), "<|im_start|>find")):
        stream = ember.tokenizer.stream(skip_special=True, keep=keep)
        assert "".join(map(stream.push, ids)) + stream.finish() == expected
