"""What `tools` and `tool_choice` make of a conversation, and what becomes of a reply with calls."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

import pytest
from template_support import template_source

from akunu import Completion
from akunu.errors import ArgumentError, UnsupportedModelError
from akunu.templates.chat_template import CHATML, ChatTemplate
from akunu.text.deltas import ToolCallArguments, ToolCallEnd, ToolCallStart
from akunu.text.reply_decoder import ReplyDecoder
from akunu.text.reply_splitter import ReplySplitter
from akunu.thinking.markers import markers_of
from akunu.tools import ToolCall
from akunu.tools.tool_choice import ChatTools as ToolUse
from akunu.tools.tool_choice import chat_tools as tool_use
from lines import each_line


def get_weather(city: str, days: int = 1) -> str:
    """The weather of a city."""
    return f"{city}: sunny for {days} days"


QUESTION = {"role": "user", "content": "How is the weather in Rome?"}
CALL = ToolCall("call_1", "get_weather", '{"city": "Rome"}')
QWEN = ChatTemplate(template_source("Qwen-Qwen2.5-7B-Instruct"))
UNTOLD = ChatTemplate(CHATML)
WRITTEN = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Rome"}}\n</tool_call>'


def use(template: ChatTemplate = QWEN, **arguments: Any) -> ToolUse:
    given: dict[str, Any] = {"tools": [get_weather], "choice": "auto", "parallel": True}
    given |= arguments
    messages = given.pop("messages", [QUESTION])
    return tool_use(template, messages, given["tools"], given["choice"], given["parallel"])


class Scripted:
    """A generation that brings what a test wrote, instead of what a model would say."""

    prompt_tokens = cached_tokens = drafted_tokens = held_tokens = 0
    prompt_seconds = 0.0
    finish_reason = "stop"
    prefix_end = ""
    kept: int | None = None

    def completion_seconds(self, n_tokens: int) -> float:
        return 0.0

    def cut(self, n_tokens: int) -> None:
        self.kept = n_tokens

    def cancel(self) -> None: ...


class Characters:
    """A vocabulary with a token for every character."""

    vocab_size = 0x110000

    class Stream:
        is_within_character = False

        def push(self, token: int) -> str:
            return chr(token)

        def finish(self) -> str:
            return ""

    def stream(self, **options: object) -> Stream:
        return self.Stream()


def reply(text: str, how: ToolUse, **more: Any) -> tuple[Completion, Scripted]:
    generation = Scripted()
    splitter = ReplySplitter(markers_of(None), calls=how.parser)
    decoder = ReplyDecoder(generation, Characters(), [], (), splitter, how.functions)  # type: ignore[arg-type]
    for character in text:
        if decoder.reason is None:
            decoder.take([ord(character)])
    if decoder.reason is None:
        decoder.take(None)
    return decoder.completion, generation


def test_a_reply_with_calls_has_them_beside_its_text() -> None:
    found, _ = reply(f"I look.\n{WRITTEN}", use())
    assert found == "I look."
    assert found.finish_reason == "tool_calls"
    (call,) = found.tool_calls
    assert (call.name, call.arguments) == ("get_weather", {"city": "Rome"})
    assert call.arguments_text == '{"city": "Rome"}'
    assert call.id.startswith("call_")
    assert call.function is get_weather
    assert call.function(**call.arguments) == "Rome: sunny for 1 days"


def test_a_reply_without_calls_ends_as_ever() -> None:
    found, _ = reply("It is sunny.", use())
    assert (found, found.finish_reason, found.tool_calls) == ("It is sunny.", "stop", ())


def test_one_call_ends_the_reply_where_there_may_be_only_one() -> None:
    text = f"{WRITTEN}\n{WRITTEN}"
    assert len(reply(text, use())[0].tool_calls) == 2
    found, generation = reply(text, use(parallel=False))
    assert len(found.tool_calls) == 1
    assert (found, found.finish_reason) == ("", "tool_calls")
    assert generation.kept == len(WRITTEN)


def test_replies_with_calls_can_be_copied_and_pickled() -> None:
    found, _ = reply(WRITTEN, use())
    copied = pickle.loads(pickle.dumps(found))
    assert copied.tool_calls == found.tool_calls
    assert copied.tool_calls[0].function is None  # a function may not be pickled


def test_a_call_is_a_message_as_openai_has_it() -> None:
    assert CALL.message == {
        "type": "function",
        "id": "call_1",
        "function": {"name": "get_weather", "arguments": '{"city": "Rome"}'},
    }
    conversation = [
        QUESTION,
        {"role": "assistant", "content": None, "tool_calls": [CALL.message]},
        {"role": "tool", "tool_call_id": "call_1", "content": "Sunny."},
    ]
    assert WRITTEN in QWEN.render(conversation)


def test_none_leaves_tools_out_of_the_prompt_and_reads_no_calls() -> None:
    how = use(choice="none")
    assert (how.definitions, how.parser) == (None, None)
    assert reply(WRITTEN, how)[0] == WRITTEN


def test_the_name_of_a_tool_lets_only_that_one_be_called() -> None:
    for choice in ("get_weather", {"type": "function", "function": {"name": "get_weather"}}):
        how = use(tools=[get_weather, {"name": "now"}], choice=choice)
        assert how.definitions is not None
        assert len(how.definitions) == 2
        assert reply('<tool_call>{"name": "now"}</tool_call>', how)[0].tool_calls == ()
        assert len(reply(WRITTEN, how)[0].tool_calls) == 1


@each_line(
    ("arguments", "message"),
    [
        ({"choice": "any"}, "tool_choice is 'any'; it must be one of 'auto', 'none', 'required', "),
        ({"choice": 3}, "tool_choice is 3"),
        ({"choice": "required", "tools": None}, "'required', but there are no tools"),
        ({"parallel": 1}, "parallel_tool_calls is 1; it must be True or False"),
    ],
)
def test_choices_that_make_no_sense_are_refused(arguments: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        use(**arguments)


def test_a_model_whose_notation_is_unknown_cannot_be_made_to_call() -> None:
    odd = ChatTemplate(
        "{{ tools }}{% for m in messages %}{% for c in m.tool_calls or [] %}"
        "CALL {{ c.function.name }} WITH {{ c.function.arguments | length }}{% endfor %}"
        "{{ m.content }}{% endfor %}"
    )
    assert use(odd).parser is None
    with pytest.raises(UnsupportedModelError, match="the notation of tool calls in this model"):
        use(odd, choice="required")


def test_a_template_without_tools_has_them_told_in_the_system_message() -> None:
    conversation = [
        {"role": "system", "content": "Be brief."},
        QUESTION,
        {"role": "assistant", "content": "I look.", "tool_calls": [CALL.message]},
        {"role": "tool", "tool_call_id": "call_1", "content": "Sunny."},
        {"role": "tool", "tool_call_id": "call_2", "content": "Warm."},
    ]
    how = use(UNTOLD, messages=conversation)
    assert how.definitions is None
    system, question, call, result = how.messages
    assert system["content"].startswith("Be brief.\n\nYou may call")
    assert '"name": "get_weather"' in system["content"]
    assert question["content"] == QUESTION["content"]
    assert call["content"] == f"I look.\n{WRITTEN}"
    responses = [f"<tool_response>\n{text}\n</tool_response>" for text in ("Sunny.", "Warm.")]
    assert (result["role"], result["content"]) == ("user", "\n".join(responses))
    assert reply(WRITTEN, how)[0].tool_calls[0].name == "get_weather"


def test_a_stream_says_what_a_call_is_before_it_is_complete() -> None:
    splitter = ReplySplitter(None, calls=use().parser)
    half = splitter.push('<tool_call>\n{"name": "get_weather", "arguments": {"city": "Ro')
    assert [type(delta) for delta in half] == [ToolCallStart, ToolCallArguments]
    rest = splitter.push('me"}}\n</tool_call>') + splitter.finish()
    assert [type(delta) for delta in rest] == [ToolCallArguments, ToolCallEnd]
