"""`akunu inspect --template`: an example as a chat template writes it, and what it cannot do."""

from __future__ import annotations

import json
import sys
from typing import Any, Final

from akunu.cli.loading import model_path, refuse_encoder
from akunu.cli.terminal.tables import write_facts
from akunu.errors import ArgumentError, UnsupportedModelError
from akunu.options.text_options import LoadOptions
from akunu.storage.model_files import open_model_files, read_tokenizer
from akunu.templates.chat_template import ChatTemplate
from akunu.templates.chosen_template import template_text

_EXAMPLE: Final = (
    {"role": "system", "content": "Answer briefly."},
    {"role": "user", "content": "What is 2 + 2?"},
    {"role": "assistant", "content": "4"},
    {"role": "user", "content": "And 3 + 3?"},
)
_TOOL: Final = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Add two numbers.",
        "parameters": {"type": "object", "properties": {"a": {"type": "number"}}},
    },
}


def show_template(name: str, options: LoadOptions, *, as_json: bool) -> int:
    """Write an example conversation as the model's template renders it, and what it knows.

    Raises AkunuError where there is no such model or template.
    """
    path = model_path(name)
    tokenizer = read_tokenizer(open_model_files(path), template_text(options.chat_template))
    try:
        template = ChatTemplate.of(tokenizer)
    except UnsupportedModelError:  # which says that the model can continue a text
        refuse_encoder(path, options, "inspect --template")
        raise
    facts = _facts(template)
    if as_json:
        json.dump(facts, sys.stdout, ensure_ascii=False, indent=2)
        print()
        return 0
    print(facts["example"])
    print()
    write_facts("template", [(name, facts[name]) for name in facts if name != "example"])
    return 0


def _facts(template: ChatTemplate) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [dict(each) for each in _EXAMPLE]
    tools = [_TOOL] if template.knows_tools else None
    try:
        example = template.render(messages, tools=tools)
    except ArgumentError as error:
        example = f"({error})"
    return {
        "example": example,
        "tools": _tools(template),
        "thinking": _thinking(template),
        "variables": ", ".join(sorted(template.variables)) or "none",
    }


def _tools(template: ChatTemplate) -> str:
    notation = template.tool_notation
    if not template.knows_tools:
        return "no: the template does not show the model which tools there are"
    if notation is None:
        return "shown, but akunu does not know how the model writes calls: it cannot read them"
    left_out = "; calls of earlier turns are left out" if template.habits.leaves_calls_out else ""
    return f"yes, in the notation of {notation.family.name}{left_out}"


def _thinking(template: ChatTemplate) -> str:
    switch = template.thinking_switch
    if not switch.can_be_switched:
        return "always" if switch.always_thinks else "no"
    levels = f"; levels: {', '.join(switch.levels)}" if switch.levels else ""
    return f"can be switched on and off{levels}"
