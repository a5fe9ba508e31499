"""Calls of tools are read back in every notation, however they and the text are cut."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json
from tool_support import WAYS, examples, read, text_and_calls, written

from akunu.errors import AkunuError
from akunu.text.deltas import (
    TextDelta,
    ToolCallArguments,
    ToolCallDropped,
    ToolCallEnd,
    ToolCallStart,
)
from akunu.tools.calls import calls_of
from akunu.tools.families import FAMILIES
from akunu.tools.notation import Notation
from akunu.tools.values import json_types, value_as_json
from lines import each_line

HERMES = WAYS["hermes-1"]
CODER = WAYS["qwen3-coder-1"]

TOOLS: dict[str, dict[str, Any]] = {
    "find": {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "count": {"type": "integer"},
            "share": {"type": "number"},
            "deep": {"type": "boolean"},
            "where": {"type": "object"},
            "tags": {"type": "array"},
        },
    },
    "find_all": {"type": "object", "properties": {"text": {"type": "string"}}},
    "now": {"type": "object", "properties": {}},
}

# What a notation cannot say, whatever a template does: its own end within a string.
ODD_TEXTS = [
    *("", "a", "it's", '"quoted"', "two\nlines", "\n", "back\\slash", "tab\t", "ü → 漢字 🙂"),
    *("</tool_call>", "<tool_call>", "[TOOL_CALLS]", "{", "}", "]", ", ", "3", "true", "null", "="),
]
LETTERS = st.text(st.sampled_from("ab \n\"'\\{}[]<>/|:,=ü🙂"), max_size=8)
STRINGS = st.one_of(st.sampled_from(ODD_TEXTS), LETTERS)
NUMBERS = st.one_of(st.integers(-(10**9), 10**9), st.sampled_from([0.5, -1.25e-7, 1e20]))
KEYS = st.sampled_from(["a", "b_c", "d1"])
VALUES = st.recursive(
    st.one_of(STRINGS, NUMBERS, st.booleans(), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(KEYS, inner, max_size=2)),
    max_leaves=4,
)
ARGUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "text": STRINGS,
        "count": st.integers(-5, 10**12),
        "share": st.sampled_from([0.5, -2.0, 1e-9]),
        "deep": st.booleans(),
        "where": st.dictionaries(KEYS, VALUES, max_size=2),
        "tags": st.lists(VALUES, max_size=3),
    },
)
CALLS = st.one_of(
    st.tuples(st.just("find"), ARGUMENTS),
    st.tuples(st.just("find_all"), STRINGS.map(lambda text: {"text": text})),
    st.just(("now", {})),
)
TEXTS = st.sampled_from(["", "Well.", "a <", "{}", "[1]", "</tool_call", "<tool", "<|", "\n\nSo:"])


def cut(text: str, places: set[int]) -> list[str]:
    edges = [0, *sorted(place for place in places if place < len(text)), len(text)]
    return [text[a:b] for a, b in pairwise(edges)]


def strings_of(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for item in value.values() for text in strings_of(item)]
    if isinstance(value, list):
        return [text for item in value for text in strings_of(item)]
    return [value] if isinstance(value, str) else []


def can_say(way: Notation, calls: list[tuple[str, dict[str, Any]]]) -> bool:
    """Whether a notation can write these: strings that are not escaped must not look like tags."""
    texts = [text for _, arguments in calls for text in strings_of(arguments)]
    if "{parameters}" in way.call:
        return not any(mark in text for text in texts for mark in ("<", ">", "[", "]"))
    if "{words}" in way.call:
        return not any(mark in text for text in texts for mark in ('"', "<", ">", "|"))
    return True


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@examples(change=10, nightly=40)
@given(
    calls=st.lists(CALLS, min_size=1, max_size=3),
    before=TEXTS,
    after=TEXTS,
    places=st.sets(st.integers(0, 400), max_size=40),
)
def test_what_is_written_is_read_back_however_it_is_cut(
    way: Notation,
    calls: list[tuple[str, dict[str, Any]]],
    before: str,
    after: str,
    places: set[int],
) -> None:
    if not can_say(way, calls):
        return
    if way.at_start:
        before = ""
    text = before + written(way, calls) + after
    whole = read([way], [text], TOOLS)
    # Whitespace next to a call is not part of the text.
    assert text_and_calls(whole) == (before + after if before else after.lstrip(), calls)
    assert read([way], cut(text, places), TOOLS) == whole


@given(
    pieces=st.lists(
        st.sampled_from(
            [
                *("<tool_call>", "</tool_call>", '{"name": "now"', ', "arguments": {}', "}", "\n"),
                *('{"name": "find", "arguments": {"text": "', 'a"}}', "<function=find>", "{", "x"),
                *("<parameter=text>\n", "\n</parameter>\n", "</function>", "<think>", "</think>"),
                *("[TOOL_CALLS]", "[", "]", "now", "[ARGS]", ", ", '"'),
            ]
        ),
        max_size=12,
    ),
    way=st.sampled_from(list(WAYS.values())),
)
def test_nothing_is_lost_of_what_is_no_call(pieces: list[str], way: Notation) -> None:
    text = "".join(pieces)
    whole = read([way], [text], TOOLS)
    # A call that breaks off may have begun to be told already, where its pieces came one by one.
    assert text_and_calls(read([way], list(text), TOOLS)) == text_and_calls(whole)
    if not any(isinstance(delta, ToolCallEnd) for delta in whole) and "think" not in text:
        assert text_and_calls(whole)[0] == text


def test_a_call_comes_as_its_start_its_arguments_and_its_end() -> None:
    text = 'Let me see.\n<tool_call>\n{"name": "find", "arguments": {"text":  "a"}}\n</tool_call>'
    assert read([HERMES], list(text), TOOLS) == [
        TextDelta("Let me see."),
        ToolCallStart(0, "id0", "find"),
        ToolCallArguments(0, '{"text":  "a"}'),  # the model's own spelling
        ToolCallEnd(0),
    ]


def test_arguments_come_as_soon_as_they_are_there() -> None:
    pieces = ['<tool_call>{"name": "find", "arguments": {"te', 'xt": "on', 'e"}}</tool_call>']
    deltas = [read([HERMES], pieces[:end], TOOLS) for end in (1, 2)]
    assert deltas[0][:2] == [ToolCallStart(0, "id0", "find"), ToolCallArguments(0, '{"te')]
    assert deltas[1][:2] == [ToolCallStart(0, "id0", "find"), ToolCallArguments(0, '{"text": "on')]
    begun = "<tool_call>\n<function=find>\n<parameter=text>\nline one\nline"
    start = ToolCallStart(0, "id0", "find")
    assert read([CODER], [begun], TOOLS)[:2] == [
        start,
        ToolCallArguments(0, '{"text": "line one\\nline'),
    ]


@each_line(
    "text",
    [
        '<tool_call>{"name": "nothing", "arguments": {}}</tool_call>',  # no such tool
        '<tool_call>{"name": "find", "arguments": {"text": }}</tool_call>',
        '<tool_call>{"name": "find", "arguments": [1]}</tool_call>',
        '<tool_call>{"name": "find", "arguments": {}}</tool_calls>',
        '<tool_call>{"name": "find", "arguments": {"count": 01}}</tool_call>',
        '<tool_call>{"name": "find", "arguments": {"text": "\\ud800"}}</tool_call>',
        '<tool_call>{"name": "find", "arguments": {"text": "cut',
        '<tool_call>{"arguments": {}}</tool_call>',
        "<tool_call>find()</tool_call>",
        "<tool_call>",
    ],
)
def test_a_malformed_call_stays_text(text: str) -> None:
    deltas = read([HERMES], list(f"Before {text} after"), TOOLS)
    assert text_and_calls(deltas) == (f"Before {text} after", [])
    began = [d for d in deltas if isinstance(d, ToolCallStart)]
    assert len(began) == len([d for d in deltas if isinstance(d, ToolCallDropped)])


@each_line("name", WAYS)
def test_a_call_that_is_cut_is_told_as_far_as_it_came_and_is_no_text(name: str) -> None:
    way = WAYS[name]
    arguments = {"text": "a b", "count": 12}
    before = "" if way.at_start else "I look. "
    text = before + written(way, [("find", arguments)] * 2)
    has_marker = any(mark in opening for opening in way.openings for mark in ("<", "[T", "]<"))
    for end in range(len(text)):
        pieces = list(text[:end])
        deltas = read([way], pieces, TOOLS, is_cut=True)
        assert read([way], [text[:end]], TOOLS, is_cut=True) == deltas
        said = "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
        calls = calls_of(deltas)
        assert said == text[: len(said)]
        if has_marker:
            assert len(said) <= len(before) + 1  # one character may be anything
        if calls:
            assert said.strip() == before.strip()
        if text[:end].count('"count') + text[:end].count("count=") > 1:
            assert len(calls) == 2
        assert all(not call.is_cut for call in calls[:-1])
        for call in calls:
            assert call.name == "find"
            if call.is_cut:
                told = from_json(call.arguments_text or "{}", allow_partial=True)
                assert told.items() <= {**arguments, "count": told.get("count")}.items()
                assert str(arguments["count"]).startswith(str(told.get("count", "")))
                with pytest.raises(AkunuError, match=r"the call of find is cut: .*max_tokens"):
                    call.arguments  # noqa: B018
            else:
                assert call.arguments == arguments
    (first, *_) = calls_of(read([way], [text], TOOLS, is_cut=True))
    assert not first.is_cut


def test_a_name_that_may_be_another_one_is_not_told() -> None:
    deltas = read([CODER], ["<tool_call>\n<function=find"], TOOLS, is_cut=True)
    assert deltas == []
    deltas = read([CODER], ["<tool_call>\n<function=find_all"], TOOLS, is_cut=True)
    assert [call.name for call in calls_of(deltas)] == ["find_all"]


@each_line(
    "text", ["It is a <", "So: [1, 2", "a <tool_call> b", '<tool_call>{"name": "ask', "if x < 3"]
)
def test_a_text_that_is_cut_stays_text(text: str) -> None:
    deltas = read([HERMES], list(text), TOOLS, is_cut=True)
    assert text_and_calls(deltas) == ("" if "ask" in text else text, [])


def test_what_follows_a_malformed_call_is_read_all_the_same() -> None:
    good = '<tool_call>{"name": "now", "arguments": {}}</tool_call>'
    deltas = read([HERMES], list(f'<tool_call>{{"name": "find"\n{good}'), TOOLS)
    assert text_and_calls(deltas) == ('<tool_call>{"name": "find"', [("now", {})])


def test_some_liberties_of_models_are_understood() -> None:
    for text in (
        '<tool_call>{"arguments": {"text": "a"}, "name": "find"}</tool_call>',
        '<tool_call>{"name": "find", "arguments": "{\\"text\\": \\"a\\"}"}</tool_call>',
        '<tool_call>{"name":"find","arguments":{"text":"a"}}',  # its end was the text's end
        '<tool_call>{"name": "find", "parameters": {"text": "a"}}</tool_call>',
    ):
        assert text_and_calls(read([HERMES], [text], TOOLS)) == ("", [("find", {"text": "a"})])
    without = '<tool_call>{"name": "now"}</tool_call>'
    assert text_and_calls(read([HERMES], [without], TOOLS)) == ("", [("now", {})])


def test_an_answer_in_json_is_no_call_of_llama() -> None:
    bare = WAYS["llama-3-1"]
    for text in ('{"name": "Ann"}', '{"name": "find", "age": 3}', '{"name": "now"}', "{}", "[1]"):
        assert text_and_calls(read([bare], list(text), TOOLS)) == (text, [])
    call = '{"name": "find", "parameters": {"text": "a"}}'
    assert text_and_calls(read([bare], [f"So: {call}"], TOOLS)) == (f"So: {call}", [])


def test_a_string_between_tags_may_hold_the_closing_tag_where_no_other_follows() -> None:
    value = "a</parameter> b"
    text = written(CODER, [("find", {"text": value, "count": 1})])
    assert text_and_calls(read([CODER], list(text), TOOLS)) == (
        "",
        [("find", {"text": value, "count": 1})],
    )


@each_line(
    ("text", "types", "expected"),
    [
        ("3", {"string"}, "3"),
        ("3", {"integer"}, 3),
        ("3", set(), 3),
        ("True", {"boolean"}, True),
        ("None", {"integer", "null"}, None),
        ("null", {"string", "null"}, None),
        ("3", {"string", "null"}, "3"),
        ("[1, 2]", {"array"}, [1, 2]),
        ("three", {"integer"}, "three"),
        (" spaces ", set(), " spaces "),
        ("{'a': True, 'b': [None]}", {"object"}, {"a": True, "b": [None]}),
        ("{'a': f()}", {"object"}, "{'a': f()}"),
    ],
)
def test_values_between_tags_are_of_the_type_that_the_schema_says(
    text: str, types: set[str], expected: object
) -> None:
    assert json.loads(value_as_json(text, frozenset(types))) == expected


def test_a_default_of_null_lets_null_be_given_for_a_string() -> None:
    assert json_types({"type": "string", "default": None}) == {"string", "null"}
    assert json_types({"type": "string", "default": "a"}) == {"string"}


def test_ids_are_those_of_the_model_where_it_writes_some_and_new_ones_elsewhere() -> None:
    mistral = WAYS["mistral-id-1"]
    text = "[TOOL_CALLS]now[CALL_ID]abc123def[ARGS]{}[TOOL_CALLS]now[CALL_ID]abc123def[ARGS]{}"
    starts = [d for d in read([mistral], [text], TOOLS) if isinstance(d, ToolCallStart)]
    assert [start.id for start in starts] == ["abc123def", "id0"]  # never one twice


def test_every_family_has_a_name_signs_and_ways() -> None:
    for family in FAMILIES:
        assert family.name
        assert family.signs
        assert family.ways
        for way in family.ways:
            assert way.at_start or way.openings
