"""Calling a described tool with at most three parameters, and answering from what it returns."""

import json
import re
from typing import Any

from . import arithmetic, letters, small_talk, tables
from .dialogue import Dialogue, Draw, Message
from .noise import ask
from .tools import TOOLS, Tool, number, title, word
from .word_lists import lines
from .words import COMMON, place, pseudo_word

FAMILY = "tool calls"
_INVENTED_REQUESTS = lines("tool_calls", "invented_requests")
_INVENTED_MORE = [
    " with {key} {value}",
    ", {key} {value}",
    " and {key} {value}",
    ", {key}: {value}",
    " at {key} {value}",
    " with a {key} of {value}",
    ", the {key} is {value}",
]
_INVENTED_ABOUT = [
    "{verb} a {noun}",
    "{verb}s the {noun}",
    "Use this to {verb} a {noun}",
    "{verb} the {noun} that is named",
    "To {verb} one {noun}",
    "{verb} any {noun}",
]


def _either(rng, longest: int) -> str:
    return rng.choice(COMMON) if rng.random() < 0.35 else pseudo_word(rng, longest)


def _invented(rng) -> Tool:
    """A tool nobody has seen: its name must be copied from the description."""
    verb, noun = pseudo_word(rng, 7), _either(rng, 7)
    first = (_either(rng, 6), "id", "name", noun)
    parameters: list = [(first, "string", f"The {noun}", rng.choice((word, word, title, place)))]
    request = rng.choice(_INVENTED_REQUESTS).replace("{verb}", verb).replace("{noun}", noun)
    request, ending = re.fullmatch(r"(.*?)([.?]?)", request).groups()
    for field in rng.choice(((), (), ("b",), ("b",), ("b", "c"))):
        key = _either(rng, 6)
        kind, make = rng.choice((("integer", number), ("integer", number), ("string", word)))
        parameters.append(((key,), kind, f"The {key}", make))
        if rng.random() < 0.9:  # else it is optional
            more = rng.choice(_INVENTED_MORE).replace("{key}", key)
            request += more.replace("{value}", f"{{{field}}}")
    name = rng.choice(
        (
            f"{verb}_{noun}",
            f"{verb}_{noun}",
            f"{verb}{noun.capitalize()}",
            verb,
            f"{noun}_{verb}",
            f"{verb}-{noun}",
        )
    )
    about = rng.choice(_INVENTED_ABOUT).replace("{verb}", verb).replace("{noun}", noun)
    return Tool((name,), (about[0].upper() + about[1:],), tuple(parameters), (request + ending,))


def describe(rng, tool: Tool, request: str = "{a}{b}{c}") -> tuple[dict[str, Any], list[str]]:
    """The tool as an OpenAI function, with names chosen for this dialogue."""
    names: list[str] = []
    for choices, *_ in tool.parameters:
        left = [name for name in choices if name not in names]
        names.append(rng.choice(left or [f"{choices[0]}_2"]))
    properties: dict[str, Any] = {}
    described = rng.choice((0.0, 0.5, 1.0))
    for name, (_, kind, description, _) in zip(names, tool.parameters, strict=True):
        properties[name] = {"type": kind}
        if rng.random() < described:
            properties[name]["description"] = description
    required = [
        name for name, field in zip(names, "abc", strict=False) if f"{{{field}}}" in request
    ]
    function = {
        "name": rng.choice(tool.names),
        "description": rng.choice(tool.descriptions),
        "parameters": {"type": "object", "properties": properties, "required": required},
    }
    if rng.random() < 0.15:  # as a template engine that sorts keys shows it
        function = json.loads(json.dumps(function, sort_keys=True))
    return {"type": "function", "function": function}, names


def _offer(
    draw: Draw, wanted: Tool | None, request: str = ""
) -> tuple[list[dict[str, Any]], int, list[str]]:
    """Described tools in any order, the place of the wanted one, its parameters' names."""
    rng = draw.rng
    tools = [wanted] if wanted else []
    for other in rng.sample(TOOLS, rng.choice((0, 0, 1, 1, 2)) + (0 if wanted else 1)):
        if wanted is None or not set(other.names) & set(wanted.names):
            tools.append(other)
    rng.shuffle(tools)
    described = [
        describe(rng, tool, request) if tool is wanted else describe(rng, tool) for tool in tools
    ]
    at = tools.index(wanted) if wanted else -1
    return [tool for tool, _ in described], at, described[at][1]


def call_text(name: str, arguments: dict[str, object]) -> str:
    call = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    return f"<tool_call>\n{call}\n</tool_call>"


def _request(draw: Draw) -> tuple[Dialogue, Tool, dict[str, object]]:
    rng = draw.rng
    tool = _invented(rng) if rng.random() < 0.35 else rng.choice(TOOLS)
    values: list[object] = []
    if tool.parameters:
        values = draw.operands(
            lambda rng: [make(rng) for *_, make in tool.parameters],
            lambda values: ("tool", *values),
        )
    request = rng.choice(tool.requests)
    tools, at, names = _offer(draw, tool, request)
    fields = dict(zip("abc", values, strict=False))
    given = {
        name: value
        for field, name, value in zip("abc", names, values, strict=False)
        if f"{{{field}}}" in request
    }
    function = tools[at]["function"]
    arguments = {
        name: given[name] for name in function["parameters"]["properties"] if name in given
    }
    question = ask(rng, request, keep_case=True, **fields)
    messages: list[Message] = [
        {"role": "user", "content": question},
        {"role": "assistant", "content": call_text(function["name"], arguments)},
    ]
    return Dialogue(FAMILY, "call", messages, tools), tool, fields


def call(draw: Draw) -> Dialogue:
    return _request(draw)[0]


def _plain_result(rng) -> tuple[str, str]:
    """What a tool without an answer of its own gives back."""
    chance = rng.random()
    if chance < 0.6:
        key, value = rng.choice(
            (
                ("ok", True),
                ("success", True),
                ("status", "ok"),
                ("done", True),
                ("status", "done"),
                ("result", "ok"),
            )
        )
        return json.dumps({key: value}), "Done."
    if chance < 0.8:
        value = rng.choice((number(rng), word(rng)))
        return json.dumps({"result": value}), f"The result is {value}."
    reason = rng.choice(
        (
            "not found",
            "no connection",
            "not allowed",
            "busy",
            "unknown name",
            f"no {word(rng)}",
            "time out",
            "failed",
        )
    )
    return json.dumps({"error": reason}), f"That did not work: {reason}."


def answer_from_result(draw: Draw) -> Dialogue:
    while True:
        dialogue, tool, fields = _request(draw)
        if tool.result is not None and draw.rng.random() < 0.85:
            key, make, form = tool.result
            value = make(draw.rng)
            result, reply = json.dumps({key: value}), form.format(r=value, **fields)
            break
        if draw.rng.random() < 0.5:
            result, reply = _plain_result(draw.rng)
            break
    dialogue.messages += [
        {"role": "tool", "content": result},
        {"role": "assistant", "content": reply},
    ]
    dialogue.task = "answer from a tool"
    return dialogue


def no_tool_needed(draw: Draw) -> Dialogue:
    """Tools are there, but the question is one that Ember answers itself."""
    makers = (
        tables.fact,
        tables.fact,
        arithmetic.addition,
        arithmetic.subtraction,
        arithmetic.times_table,
        letters.spell,
        letters.backwards,
        small_talk.talk,
    )
    inner = draw.rng.choice(makers)(draw)
    tools, _, _ = _offer(draw, None)
    return Dialogue(FAMILY, "no tool needed", inner.messages, tools)


TASKS = [(call, 6), (answer_from_result, 2), (no_tool_needed, 1.5)]
