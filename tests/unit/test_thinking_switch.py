"""Thinking is switched as each model's template has it, and refused where it has no switch."""

from __future__ import annotations

import pytest
from template_support import template_source
from tokenizer_support import byte_level

from akunu.errors import ArgumentError
from akunu.templates.chat_template import CHATML, ChatTemplate
from akunu.text.encode import chat_prompt as prepared
from akunu.text.request import Request as ChatRequest
from akunu.thinking.switch import with_system
from akunu.tokenizers.tokenizer import Tokenizer
from lines import each_line

QUESTION = [{"role": "user", "content": "Hi"}]

# Each is written as its model's template has it, shortened to what matters.
ASKS = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:"
GENERAL_SWITCH = "{% if NAME is defined and NAME == OFF %}<think></think>{% endif %}"
NEMOTRON = (
    "{% set ns = namespace(on=true) %}{% for m in messages %}"
    "{% if '/no_think' in m.content %}{% set ns.on = false %}{% endif %}"
    "{{ m.role }}: {{ m.content.replace('/no_think', '').replace('/think', '') }}\n{% endfor %}"
    "assistant:<think>{% if not ns.on %}</think>{% endif %}"
)
HY3 = (
    "{% if reasoning_effort is defined and reasoning_effort not in ['high', 'low', 'no_think'] %}"
    "{{ raise_exception('no such effort') }}{% endif %}"
    + ASKS
    + "{% if reasoning_effort in ['low', 'high'] %}<think>{{ reasoning_effort }}"
    "{% elif reasoning_effort == 'no_think' %}<think></think>{% endif %}"
)


def switched(name: str, off: str) -> str:
    return ASKS + GENERAL_SWITCH.replace("NAME", name).replace("OFF", off)


@each_line(
    ("source", "on", "off"),
    [
        (
            switched("enable_thinking", "false"),
            {"enable_thinking": True},
            {"enable_thinking": False},
        ),
        (switched("thinking", "false"), {"thinking": True}, {"thinking": False}),
        (switched("thinking_budget", "0"), {"thinking_budget": -1}, {"thinking_budget": 0}),
        (
            switched("thinking_mode", "'disabled'"),
            {"thinking_mode": "enabled"},
            {"thinking_mode": "disabled"},
        ),
        (HY3, {"reasoning_effort": "high"}, {"reasoning_effort": "no_think"}),
    ],
)  # fmt: skip
def test_the_switch_is_the_variable_that_changes_the_prompt(
    source: str, on: dict[str, object], off: dict[str, object]
) -> None:
    switch = ChatTemplate(source).thinking_switch
    assert switch.setting(True).variables == on
    assert switch.setting(False).variables == off


@pytest.mark.parametrize(
    ("name", "off"),
    [
        ("Qwen-Qwen3-0.6B", "<think>\n\n</think>\n\n"),
        ("HuggingFaceTB-SmolLM3-3B", "<think>\n\n</think>\n"),
    ],
)
def test_thinking_off_closes_the_thoughts_in_the_prompt(name: str, off: str) -> None:
    template = ChatTemplate(template_source(name))
    variables = dict(template.thinking_switch.setting(False).variables)
    assert template.render(QUESTION, **variables).endswith(off)
    assert not template.thinking_switch.always_thinks


def test_a_switch_in_the_system_message_is_added_to_it() -> None:
    switch = ChatTemplate(NEMOTRON).thinking_switch
    assert switch.setting(False).system == "/no_think"
    system = {"role": "system", "content": "Be brief."}
    assert with_system([system, *QUESTION], "/no_think") == [
        {"role": "system", "content": "Be brief.\n/no_think"},
        *QUESTION,
    ]


def test_levels_are_those_that_the_template_has() -> None:
    harmony = ChatTemplate(template_source("openai-gpt-oss-120b"))
    assert harmony.thinking_switch.levels == ("low", "medium", "high")
    assert "Reasoning: low" in harmony.render(
        QUESTION, **harmony.thinking_switch.setting("low").variables
    )
    assert ChatTemplate(HY3).thinking_switch.levels == ("low", "high")


@each_line(
    ("source", "thinking", "words"),
    [
        (CHATML, True, "thinking is True; this model's chat template has no switch for it"),
        (CHATML, False, "has no switch for it"),
        (ASKS + "<think>", False, "knows True only: it has no switch"),
        (switched("thinking", "false"), "low", "thinking is 'low'; .* knows True and False"),
        (HY3, "medium", "knows True, False, 'low' and 'high'"),
    ],
)
def test_what_a_template_does_not_know_is_an_error(
    source: str, thinking: bool | str, words: str
) -> None:
    with pytest.raises(ArgumentError, match=words):
        ChatTemplate(source).thinking_switch.setting(thinking)


def test_a_model_that_always_thinks_may_be_told_to() -> None:
    assert ChatTemplate(ASKS + "<think>").thinking_switch.setting(True).variables == {}
    harmony = ChatTemplate(template_source("openai-gpt-oss-120b"))
    assert harmony.thinking_switch.setting(True).variables == {}
    with pytest.raises(ArgumentError, match="knows True, 'low', 'medium' and 'high'"):
        harmony.thinking_switch.setting(False)


def prompt(source: str, messages: list[dict[str, str]], **asked: object) -> str:
    tokenizer = Tokenizer.from_metadata(byte_level(merges=(), eos_token_id=1))
    request = ChatRequest(messages=messages, **asked)  # type: ignore[arg-type]
    return tokenizer.decode(prepared(request, tokenizer, ChatTemplate(source)).tokens)


def test_a_switch_that_changes_nothing_in_this_conversation_is_an_error() -> None:
    granite = (
        "{% if messages[0].role == 'system' %}{{ messages[0].content }}{% elif thinking %}Think."
        "{% endif %}{{ messages[-1].content }}"
    )
    assert prompt(granite, QUESTION, thinking=True) == "Think.Hi"
    with pytest.raises(ArgumentError, match="it has no effect"):
        prompt(granite, [{"role": "system", "content": "Be brief."}, *QUESTION], thinking=True)


def test_variables_reach_the_template_and_unknown_ones_are_refused() -> None:
    source = "{{ greeting | default('Hello') }} {{ messages[0].content }}"
    assert prompt(source, QUESTION, template_variables={"greeting": "Bye"}) == "Bye Hi"
    with pytest.raises(ArgumentError, match=r"has 'greting', .* it reads greeting"):
        prompt(source, QUESTION, template_variables={"greting": "Bye"})
    with pytest.raises(ArgumentError, match=r"has 'messages', .* does not read"):
        prompt(source, QUESTION, template_variables={"messages": []})
    with pytest.raises(ArgumentError, match="thinking is set twice"):
        prompt(
            switched("thinking", "false"),
            QUESTION,
            thinking=True,
            template_variables={"thinking": False},
        )


def test_arguments_of_other_types_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"thinking is 3; it must be True, False, or a level"):
        ChatRequest(messages=QUESTION, thinking=3)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="template_variables must be a dict, got list"):
        ChatRequest(messages=QUESTION, template_variables=[])  # type: ignore[arg-type]
