"""ChatML: the template that travels in the model file, and the same text with its loss mask."""

import json
from collections.abc import Iterator
from typing import Any

from .dialogue import Message

CHAT_TEMPLATE = """\
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\\n\\n' }}
    {%- endif %}
    {{- '# Tools\\n<tools>' }}
    {%- for tool in tools %}
        {{- '\\n' }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- '\\n</tools>\\nTo call a tool: <tool_call>{"name": ..., "arguments": {...}}</tool_call>' }}
    {{- '<|im_end|>\\n' }}
{%- elif messages[0].role == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'system' and loop.first %}
    {%- elif message.role == 'tool' %}
        {{- '<|im_start|>user\\n<tool_response>\\n' + message.content }}
        {{- '\\n</tool_response><|im_end|>\\n' }}
    {%- elif message.role == 'assistant' and message.tool_calls %}
        {{- '<|im_start|>assistant\\n' }}
        {%- if message.content %}
            {{- message.content + '\\n' }}
        {%- endif %}
        {%- for call in message.tool_calls %}
            {%- set function = call.function if call.function else call %}
            {{- '<tool_call>\\n{"name": "' + function.name + '", "arguments": ' }}
            {%- if function.arguments is string %}
                {{- function.arguments }}
            {%- else %}
                {{- function.arguments | tojson }}
            {%- endif %}
            {{- '}\\n</tool_call>' }}
            {%- if not loop.last %}
                {{- '\\n' }}
            {%- endif %}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""
_TOOLS_END = (
    '\n</tools>\nTo call a tool: <tool_call>{"name": ..., "arguments": {...}}</tool_call>'
    "<|im_end|>\n"
)


def pieces(messages: list[Message], tools: list[dict[str, Any]]) -> Iterator[tuple[str, bool]]:
    """The template's text in pieces; true where a piece is a reply that is learned."""
    first = messages[0] if messages[0]["role"] == "system" else None
    if tools:
        system = first["content"] + "\n\n" if first else ""
        described = "".join("\n" + json.dumps(tool, ensure_ascii=False) for tool in tools)
        yield f"<|im_start|>system\n{system}# Tools\n<tools>{described}{_TOOLS_END}", False
    elif first:
        yield f"<|im_start|>system\n{first['content']}<|im_end|>\n", False
    for message in messages[1:] if first else messages:
        role, content = message["role"], message["content"]
        if role == "assistant":
            yield "<|im_start|>assistant\n", False
            yield f"{content}<|im_end|>", True
            yield "\n", False
        elif role == "tool":
            response = f"<tool_response>\n{content}\n</tool_response>"
            yield f"<|im_start|>user\n{response}<|im_end|>\n", False
        else:
            yield f"<|im_start|>{role}\n{content}<|im_end|>\n", False


def prompt(messages: list[Message], tools: list[dict[str, Any]]) -> str:
    """What the model is given before it replies."""
    return "".join(text for text, _ in pieces(messages, tools)) + "<|im_start|>assistant\n"
