"""Which notation a model writes its calls in, told from its chat template.

The template's own text names the family; then a call is rendered through the template and read
back, which is proof. A template that shows no calls is believed by its text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from akunu.errors import ArgumentError
from akunu.text.deltas import Delta, joined
from akunu.text.reply_splitter import ReplySplitter
from akunu.thinking.markers import markers_of
from akunu.tools.calls import ToolCall, calls_of
from akunu.tools.families import FAMILIES
from akunu.tools.notation import Family
from akunu.tools.parser import NotationParser
from akunu.tools.template import Recognised, ToolTemplate

_SCHEMA: Final = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "Name of the city."},
        "days": {"type": "integer", "description": "How many days."},
    },
    "required": ["city"],
}
_TOOL: Final = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city.",
        "parameters": _SCHEMA,
    },
}
_CALL: Final = ToolCall("abcdef123", "get_weather", '{"city": "Pa\\"ri s", "days": 3}')
_QUESTION: Final = {"role": "user", "content": "How is the weather?"}
_LONGEST_BEGINNING: Final = 24  # of a marker that both a call and the prompt begin with


def recognise(template: ToolTemplate) -> Recognised | None:
    """Return the notation of a template's model, None where it has none that is known."""
    source = template.source
    named = [each for each in FAMILIES if all(sign in source for sign in each.signs)]
    shown = _rendered_call(template)
    if shown is None:
        return Recognised(named[0], False) if named else None
    for family in (*named, *(each for each in FAMILIES if each not in named)):
        if _reads_back(family, template, *shown):
            return Recognised(family, True)
    return None


def shows_tools(template: ToolTemplate) -> bool:
    """Whether a template tells the model which tools there are."""
    if "tool" not in template.source and "functions" not in template.source:
        return False
    try:
        without = template.render([_QUESTION])
        return template.render([_QUESTION], tools=[_TOOL]) != without
    except ArgumentError:
        return True  # it says what it misses when it is used


def rendered_reply(
    template: ToolTemplate, message: Mapping[str, Any], tools: Sequence[Mapping[str, Any]]
) -> tuple[str, int] | None:
    """Return what a template writes for a reply, and where the reply may begin at the latest.

    None where it refuses the conversation, or leaves the reply out.
    """
    try:
        prompt = template.render([_QUESTION], tools=tools, add_generation_prompt=True)
        whole = template.render([_QUESTION, message], tools=tools, add_generation_prompt=False)
    except ArgumentError:
        return None
    pairs = enumerate(zip(prompt, whole, strict=False))
    shortest = min(len(prompt), len(whole))
    common = next((place for place, (one, other) in pairs if one != other), shortest)
    begin = max(0, common - _LONGEST_BEGINNING)
    return whole[begin:], common - begin


def read_reply(
    family: Family,
    template: ToolTemplate,
    text: str,
    tools: Mapping[str, Mapping[str, Any]],
    *,
    in_reasoning: bool = False,
) -> list[Delta]:
    """Return the parts of a reply."""
    calls = NotationParser(family.ways, tools)
    splitter = ReplySplitter(markers_of(template.source), calls=calls, in_reasoning=in_reasoning)
    return joined(splitter.push(text) + splitter.finish())


def _rendered_call(template: ToolTemplate) -> tuple[str, int] | None:
    if "tool" not in template.source or template.habits.leaves_calls_out:
        return None
    for content in (None, ""):
        message = {"role": "assistant", "content": content, "tool_calls": [_CALL.message]}
        found = rendered_reply(template, message, [_TOOL])
        if found is not None and _CALL.name in found[0][found[1] :]:
            return found
    return None


def _reads_back(family: Family, template: ToolTemplate, text: str, latest: int) -> bool:
    """Whether the call is in the reply, wherever that begins."""
    for begin in range(latest, -1, -1):
        calls = calls_of(read_reply(family, template, text[begin:], {_CALL.name: _SCHEMA}))
        if [(call.name, call.arguments) for call in calls] == [(_CALL.name, _CALL.arguments)]:
            return True
    return False
