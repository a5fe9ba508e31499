"""Calls written by the patterns of a notation, as a template of that family would write them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import settings

from akunu.text.deltas import Delta, TextDelta, joined
from akunu.text.reply_splitter import ReplySplitter
from akunu.thinking.markers import markers_of
from akunu.tools.calls import calls_of
from akunu.tools.families import FAMILIES
from akunu.tools.notation import Notation, Optional, elements
from akunu.tools.notation import NotationField as Field
from akunu.tools.parser import NotationParser

Call = tuple[str, dict[str, Any]]

WAYS = {
    f"{family.name}-{number}": way
    for family in FAMILIES
    for number, way in enumerate(family.ways, 1)
}


def examples(change: int, nightly: int) -> settings:
    """So many examples of a test that has one round for each notation."""
    is_nightly = settings.default is not None and settings.default.max_examples > 50
    return settings(max_examples=nightly if is_nightly else change)


def json_text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def written(way: Notation, calls: Sequence[Call]) -> str:
    """Return these calls in a notation."""
    parts = [filled(way, way.call, name, args, index) for index, (name, args) in enumerate(calls)]
    between = way.between or ("\n" if way.call.startswith("<tool_call>") else "")
    return (
        filled(way, way.before, "", {}, 0) + between.join(parts) + filled(way, way.after, "", {}, 0)
    )


def filled(way: Notation, pattern: str, name: str, arguments: Mapping[str, Any], index: int) -> str:
    first, second = way.name_key, way.arguments_keys[0]
    fields = {
        "name": name,
        "id": f"abcdef{index:03d}",
        "index": str(index),
        "any": name,
        "arguments": json_text(arguments),
        "call": json_text({first: name, second: arguments}),
        "keyed": json_text({name: arguments}),
        "python": f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})",
        "words": as_words(arguments, way.quote),
    }
    text = ""
    for part in elements(pattern):
        if not isinstance(part, Field):
            text += part.text
        elif part.name == "parameters":
            text += "".join(parameter(way, key, value) for key, value in arguments.items())
        else:
            text += fields[part.name]
    return text


def parameter(way: Notation, key: str, value: object) -> str:
    kinds = {str: "string", bool: "boolean", dict: "object", list: "array", type(None): "null"}
    kind = kinds.get(type(value), "number")
    if "string=" in way.parameter:
        kind = "true" if isinstance(value, str) else "false"
    fields = {
        "key": key,
        "type": kind,
        "value": value if isinstance(value, str) else json_text(value),
    }
    parts = elements(way.parameter)
    return "".join(fields[p.name] if isinstance(p, Field) else p.text for p in parts)


def as_words(value: object, quote: str) -> str:
    if isinstance(value, str):
        return f"{quote}{value}{quote}"
    if isinstance(value, Mapping):
        items = [f"{key}:{as_words(item, quote)}" for key, item in value.items()]
        return "{" + ",".join(items) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(as_words(item, quote) for item in value) + "]"
    return json_text(value)


def read(
    ways: Sequence[Notation],
    pieces: Sequence[str],
    tools: Mapping[str, Mapping[str, Any]],
    template: str = "",
    *,
    is_cut: bool = False,
) -> list[Delta]:
    """Return the parts of a reply that comes in these pieces; ids are numbers."""
    ids = iter(range(1000))
    parser = NotationParser(ways, tools, new_id=lambda form, name, index: f"id{next(ids)}")
    splitter = ReplySplitter(markers_of(template), calls=parser)
    deltas = [delta for piece in pieces for delta in splitter.push(piece)]
    return joined(deltas + splitter.finish(is_cut=is_cut))


def text_and_calls(deltas: Sequence[Delta]) -> tuple[str, list[Call]]:
    text = "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
    return text, [(call.name, call.arguments) for call in calls_of(deltas)]


def is_optional(way: Notation) -> bool:
    return any(isinstance(part, Optional) for part in elements(way.call))
