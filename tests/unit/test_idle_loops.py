"""Loops in which nothing can happen any more end, and no template renders differently for it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from jinja2.sandbox import ImmutableSandboxedEnvironment

from akunu.templates import engine as engine
from akunu.templates import limits as limits
from akunu.templates.chat_template import ChatTemplate
from lines import each_line

# For each message Gemma 4's template looks for the one before it that is not a tool's, in a loop
# over all before; and it writes the results of tools beside their call, in one over all behind.
LOOKS_BACK = """
{%- for message in messages -%}
    {%- set before = namespace(role=None, found=false) -%}
    {%- for j in range(loop.index0 - 1, -1, -1) -%}
        {%- if not before.found -%}
            {%- if messages[j]['role'] != 'tool' -%}
                {%- set before.role = messages[j]['role'] -%}
                {%- set before.found = true -%}
            {%- endif -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if message.role != before.role %}[{{ message.role }}]{% endif %}{{ message.content -}}
{%- endfor -%}"""
LOOKS_AHEAD = """
{%- for message in messages -%}
    {%- if message['role'] != 'tool' -%}
        {{- message['content'] -}}
        {%- set scan = namespace(stopped=false) -%}
        {%- for k in range(loop.index0 + 1, messages | length) -%}
            {%- if scan.stopped -%}
            {%- elif messages[k]['role'] != 'tool' -%}
                {%- set scan.stopped = true -%}
            {%- else -%}
                ({{ messages[k]['content'] }})
            {%- endif -%}
        {%- endfor -%}
    {%- endif -%}
{%- endfor -%}"""
LOOKS_BACK_IN_ONE_CONDITION = """
{%- for message in messages -%}
    {%- set before = namespace(role=None, found=false) -%}
    {%- for j in range(loop.index0 - 1, -1, -1) -%}
        {%- if not before.found and true and messages[j].role != 'tool' -%}
            {%- set before.role = messages[j].role -%}
            {%- set before.found = true -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if message.role != before.role %}[{{ message.role }}]{% endif %}{{ message.content -}}
{%- endfor -%}"""

# In these, a round that does nothing is followed by others that do something.
GO_ON = {
    "the item decides": "{% for i in [0, 1, 0, 2] %}{% if i %}{{ i }}{% endif %}{% endfor %}",
    "a part of the item decides": (
        "{% for i, j in [(0, 0), (1, 7)] %}{% if j %}{{ i }}{% endif %}{% endfor %}"
    ),
    "the place decides": (
        "{% for i in 'abcd' %}{% if loop.index > 2 %}{{ i }}{% endif %}{% endfor %}"
    ),
    "a call decides": (
        "{% set comma = joiner('x') %}"
        "{% for i in 'abc' %}{% if comma() %}{{ i }}{% endif %}{% endfor %}"
    ),
    "a macro decides": (
        "{% set n = namespace(i=0) %}"
        "{% macro next() %}{% set n.i = n.i + 1 %}{{ 'x' if n.i > 2 }}{% endmacro %}"
        "{% for i in 'abcd' %}{% if next() %}{{ i }}{% endif %}{% endfor %}"
    ),
    "there is something beside": (
        "{% set done = true %}{% for i in 'ab' %}{% if not done %}x{% endif %}{{ i }}{% endfor %}"
    ),
    "there is something otherwise": (
        "{% set done = true %}{% for i in 'ab' %}"
        "{% if not done %}x{% else %}y{% endif %}{% endfor %}"
    ),
    "an item is let through": (
        "{% set n = namespace(ok=true) %}{% for i in 'ab' %}{% if n.ok and i == 'b' %}{{ i }}"
        "{% endif %}{% endfor %}"
    ),
    "it happens at last": (
        "{% set n = namespace(ok=true) %}{% for i in 'abc' %}"
        "{% if n.ok %}{{ i }}{% set n.ok = i == 'a' %}{% endif %}{% endfor %}{{ n.ok }}"
    ),
    "there was nothing to go over": (
        "{% set no = false %}{% for i in [] %}{% if no %}x{% endif %}{% else %}y{% endfor %}"
        "{% for i in [1] %}{% if no %}x{% endif %}{% else %}y{% endfor %}"
    ),
    "it asks how long it is": (
        "{% set n = namespace(ok=true) %}{% for i in 'abc' %}"
        "{% if n.ok %}{{ loop.length }}{{ loop.last }}{% endif %}{% endfor %}"
    ),
}
ROLES = ["system", "user", "assistant", "tool", "tool", "assistant", "assistant", "tool", "user"]
MESSAGES = [{"role": role, "content": str(index)} for index, role in enumerate(ROLES)]


def render_in_plain_jinja(source: str, messages: list[dict[str, Any]]) -> str:
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(source).render(messages=messages)


@each_line(
    "source",
    [LOOKS_BACK, LOOKS_AHEAD, LOOKS_BACK_IN_ONE_CONDITION, *GO_ON.values()],
    ids=["looks back", "looks ahead", "looks back in one condition", *GO_ON],
)
def test_a_template_renders_as_in_plain_jinja(source: str) -> None:
    expected = render_in_plain_jinja(source, MESSAGES)
    assert expected
    # Not `render`, which writes results for a template that knows no tools.
    rendered = engine.run(ChatTemplate(source)._plain, {"messages": MESSAGES}, datetime.now())
    assert rendered == expected


@pytest.mark.parametrize(
    "source",
    [LOOKS_BACK, LOOKS_AHEAD, LOOKS_BACK_IN_ONE_CONDITION],
    ids=["looks back", "looks ahead", "looks back in one condition"],
)
def test_looking_for_a_message_takes_steps_for_those_in_between_only(
    source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = 0
    spend = limits.Budget.spend

    def count(budget: limits.Budget, steps: int) -> None:
        nonlocal taken
        taken += steps
        spend(budget, steps)

    monkeypatch.setattr(limits.Budget, "spend", count)
    talk = [{"role": ("user", "assistant")[n % 2], "content": "hi"} for n in range(300)]
    template = ChatTemplate(source)
    template.render(talk[:2])  # the habits of the template are found out once
    taken = 0
    template.render(talk)
    # One for the message, two for the one before or behind (a round finds it, the next one does
    # nothing), ten each for `namespace()` and `range()`. With all rounds it is 45,000 more.
    assert taken <= 300 * 23
