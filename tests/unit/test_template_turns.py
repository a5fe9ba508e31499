"""Orders of messages that coding agents send, and what templates that refuse them get instead."""

from __future__ import annotations

from typing import Any

from template_support import TEMPLATES, template_source, with_others

from akunu.templates.chat_template import CHATML, ChatTemplate
from lines import each_line

TOOL = {
    "type": "function",
    "function": {
        "name": "run",
        "description": "Run a command.",
        "parameters": {
            "type": "object",
            "properties": {"command": {"type": "string", "description": "The command."}},
            "required": ["command"],
        },
    },
}


def said(role: str, content: Any) -> dict[str, Any]:
    return {"role": role, "content": content}


CALL = {
    "role": "assistant",
    "content": "",
    "tool_calls": [
        {
            "id": "call_1",
            "type": "function",
            "function": {"name": "run", "arguments": '{"command": "ls"}'},
        }
    ],
}
# As Codex begins a conversation (two messages of the developer, two of the user), and Claude Code
# (a system message behind what the user says, in two parts).
CODEX = [
    *(said("developer", "You write code."), said("developer", "The sandbox is off.")),
    *(said("user", "The folder is src."), said("user", "List it.")),
]
CLAUDE_CODE = [
    said("system", "You write code."),
    said("user", [{"type": "text", "text": "It is May."}, {"type": "text", "text": "List src."}]),
    said("system", "There are agents."),
]


@each_line("messages", [CODEX, CLAUDE_CODE], ids=["codex", "claude-code"])
@each_line("name", with_others(*TEMPLATES))
def test_no_message_of_an_agent_is_refused_or_left_out(
    name: str, messages: list[dict[str, Any]]
) -> None:
    template = ChatTemplate(template_source(name), "<s>", "</s>")
    shown = template.render(messages, tools=[TOOL] if template.knows_tools else None)
    for message in messages:
        content = message["content"]
        texts = [content] if isinstance(content, str) else [part["text"] for part in content]
        for text in texts:
            assert shown.count(text) == 1, shown


# What Qwen3.5's template does with a system message that is not the first.
STRICT = (
    "{% for m in messages %}{% if m.role == 'system' and not loop.first %}"
    "{{ raise_exception('System message must be at the beginning.') }}{% endif %}"
    "[{{ m.role }}] {{ m.content }}\n{% endfor %}"
)


def test_later_instructions_are_the_user_s_where_the_template_has_no_place_for_them() -> None:
    template = ChatTemplate(STRICT)
    messages = [said("system", "A."), said("user", "B."), said("system", "C."), said("user", "D.")]
    assert template.render(messages) == "[system] A.\n[user] B.\n[user] C.\n[user] D.\n"


def test_instructions_at_the_beginning_are_one_message_where_a_second_is_refused() -> None:
    messages = [said("system", "A."), said("developer", "B."), said("user", "C.")]
    assert ChatTemplate(STRICT).render(messages) == "[system] A.\n\nB.\n[user] C.\n"


def test_orders_that_a_template_takes_stay_as_they_are() -> None:
    messages = [
        *(said("system", "A."), said("system", "B."), said("user", "C."), said("user", "D.")),
        *(said("assistant", "E."), said("system", "F."), said("user", "G.")),
    ]
    shown = ChatTemplate(CHATML).render(messages, add_generation_prompt=False)
    assert shown == "".join(
        f"<|im_start|>{message['role']}\n{message['content']}<|im_end|>\n" for message in messages
    )


def test_a_model_without_system_messages_is_told_in_front_of_the_first_question() -> None:
    template = ChatTemplate(template_source("like-gemma-2"), "<bos>")
    shown = template.render([said("system", "Be brief."), said("user", "Hello")])
    assert "<start_of_turn>user\nBe brief.\n\nHello<end_of_turn>" in shown
    alone = template.render([said("system", "Say something.")])
    assert "<start_of_turn>user\nSay something.<end_of_turn>" in alone


def test_what_a_user_says_in_a_row_is_one_message_where_turns_alternate() -> None:
    template = ChatTemplate(template_source("mistralai-Mistral-Nemo-Instruct-2407"), "<s>", "</s>")
    parts = [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}]
    shown = template.render([said("user", parts), said("user", "Three.")])
    assert shown == template.render([said("user", "One.\nTwo.\nThree.")])
    shown = template.render([said("user", "One."), said("user", "Two.")])
    assert shown == template.render([said("user", "One.\n\nTwo.")])


def test_what_a_user_adds_to_the_result_of_a_call_is_not_refused() -> None:
    result = {"role": "tool", "tool_call_id": "call_1", "content": "a.py"}
    messages = [said("user", "List."), CALL, result, said("user", "And then?")]
    nemo = ChatTemplate(template_source("mistralai-Mistral-Nemo-Instruct-2407"), "<s>", "</s>")
    shown = nemo.render(messages, tools=[TOOL])
    assert '[TOOL_RESULTS]{"content": a.py\n\nAnd then?, ' in shown
    qwen = ChatTemplate(template_source("Qwen-Qwen3-0.6B"))
    shown = qwen.render(messages, tools=[TOOL])
    assert "a.py\n</tool_response><|im_end|>\n<|im_start|>user\nAnd then?" in shown


def test_a_template_that_goes_through_its_tools_gets_an_empty_list_for_none() -> None:
    template = ChatTemplate(
        "{% for tool in tools %}{{ tool }}{% endfor %}{{ messages[0].content }}"
    )
    assert template.render([said("user", "Hello")]) == "Hello"
