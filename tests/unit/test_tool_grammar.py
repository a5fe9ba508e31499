"""Grammars of calls accept what the notation writes, and nothing that names no tool."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from llguidance import LLMatcher, LLTokenizer
from tool_support import WAYS, Call, examples, read, text_and_calls, written

from akunu.errors import ArgumentError
from akunu.grammar import FreeText, Grammar, from_choice, from_regex, from_rules, from_schema
from akunu.thinking.markers import markers_of
from akunu.tools.grammar import optional_calls, required_calls
from akunu.tools.notation import Notation
from lines import each_line

TOOLS: dict[str, dict[str, Any]] = {
    "find": {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "unit": {"type": "string", "enum": ["km", "mi"]},
            "count": {"type": "integer", "minimum": 0},
            "deep": {"type": "boolean"},
            "where": {
                "type": "object",
                "properties": {"lat": {"type": "number"}},
                "required": ["lat"],
                "additionalProperties": False,
            },
        },
        "required": ["text"],
        "additionalProperties": False,
    },
    "now": {"type": "object", "properties": {}, "additionalProperties": False},
}
BYTES = LLTokenizer("byte")

ARGUMENTS = st.fixed_dictionaries(
    {"text": st.sampled_from(["a", "two\nlines", "it's", "ü 漢", ""])},
    optional={
        "unit": st.sampled_from(["km", "mi"]),
        "count": st.integers(0, 99),
        "where": st.just({"lat": 1.5}),
    },
).map(lambda found: {key: found[key] for key in TOOLS["find"]["properties"] if key in found})
CALLS = st.one_of(st.tuples(st.just("find"), ARGUMENTS), st.just(("now", {})))


def accepts(grammar: Grammar, text: str) -> bool:
    """Whether a grammar allows exactly this text."""
    matcher = LLMatcher(BYTES, grammar.llguidance)
    assert not matcher.is_error(), matcher.get_error()
    tokens = BYTES.tokenize_str(text)
    return matcher.try_consume_tokens(tokens) == len(tokens) and matcher.is_accepting()


@cache
def calls_of_tools(way: Notation, most: int | None) -> Grammar:
    return required_calls(way, TOOLS, {}, most=most)


def python_like(way: Notation, calls: list[Call]) -> bool:
    """Python's own quotes are not what a grammar asks for: it takes JSON's."""
    return "{python}" in way.call and any(arguments for _, arguments in calls)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@examples(change=4, nightly=15)
@given(calls=st.lists(CALLS, min_size=1, max_size=2))
@example(calls=[("find", {"text": "it's ü", "count": 3, "where": {"lat": 1.5}})])
@example(calls=[("now", {}), ("find", {"text": "a"})])
def test_a_grammar_accepts_what_a_notation_writes(way: Notation, calls: list[Call]) -> None:
    if python_like(way, calls):
        return
    text = written(way, calls).strip()
    assert accepts(calls_of_tools(way, None), text)
    assert accepts(calls_of_tools(way, 1), text) == (len(calls) == 1)


@each_line(
    "way", [pytest.param(way, id=name) for name, way in WAYS.items() if "{python}" not in way.call]
)
def test_names_and_arguments_are_held(way: Notation) -> None:
    grammar = required_calls(way, TOOLS, {}, most=None)
    good: Call = ("find", {"text": "a", "count": 3})
    assert accepts(grammar, written(way, [good]).strip())
    for call in (
        ("found", {"text": "a"}),
        ("find", {"count": 3}),
        ("find", {"text": "a", "count": -3}),
        ("find", {"text": "a", "unit": "ft"}),
        ("find", {"text": "a", "other": 1}),
        ("find", {"text": "a", "where": {}}),
        ("now", {"text": "a"}),
    ):
        if "{words}" in way.call and ("where" in call[1] or "unit" in call[1]):
            continue  # what is within is any value
        if "{words}" in way.call and call[1].get("count") == -3:
            continue
        assert not accepts(grammar, written(way, [call]).strip()), call
    assert not accepts(grammar, "No.")
    assert not accepts(grammar, "")


FORMS = {
    "schema": (from_schema(TOOLS["now"] | {"properties": {"n": {"type": "integer"}}}), '{"n": 3}'),
    "choice": (from_choice(["yes", "no"]), "no"),
    "regex": (from_regex("[a-z]{3}"), "abc"),
    "rules": (from_rules('root ::= "(" root ")" | "x"'), "((x))"),
}


@each_line(
    ("way", "form"),
    [*((way, "schema") for way in WAYS), *(("hermes-1", form) for form in FORMS)],
)
def test_a_reply_may_be_calls_or_of_a_form(way: str, form: str) -> None:
    held, text = FORMS[form]
    grammar = required_calls(WAYS[way], TOOLS, {}, most=1, form=held)
    call = written(WAYS[way], [("now", {})]).strip()
    assert accepts(grammar, call)
    assert accepts(grammar, text)
    assert not accepts(grammar, text + call)
    assert not accepts(grammar, "Well.")
    assert not accepts(grammar, "")


def test_a_form_may_come_behind_thoughts_as_calls_may() -> None:
    way, think = WAYS["hermes-1"], markers_of(None)
    held = {"thinking": think, "most": 1, "form": from_choice(["yes"])}
    grammar = required_calls(way, TOOLS, {}, **held)
    assert accepts(grammar, "yes")
    assert accepts(grammar, "<think>No or yes?</think>\n\nyes")
    begun = required_calls(way, TOOLS, {}, in_reasoning=True, **held)
    assert begun.after == FreeText(until=("</think>",))
    assert accepts(begun, "\n\nyes")


def test_a_form_of_several_parts_or_with_free_text_is_refused() -> None:
    several = json.dumps({"grammars": [{"lark_grammar": "start: @a"}, {"name": "a"}]})
    choice = from_choice(["yes"])
    free = Grammar(llguidance=choice.llguidance, after=FreeText(until=("x",)))
    for form in (Grammar(llguidance=several), free):
        with pytest.raises(ArgumentError, match="with tools it may have neither"):
            required_calls(WAYS["hermes-1"], TOOLS, {}, most=1, form=form)


def test_a_schema_that_makes_no_sense_is_refused_with_the_name_of_its_tool() -> None:
    tools = {**TOOLS, "bad": {"properties": {"a": {"type": "text"}}}}
    for way in WAYS.values():
        with pytest.raises(ArgumentError, match=r"tool 'bad': .*\"text\" is not a type"):
            required_calls(way, tools, {}, most=None)


def test_python_calls_have_strings_as_json() -> None:
    way = WAYS["llama-4-1"]
    grammar = required_calls(way, TOOLS, {}, most=None)
    text = '[find(text="it\'s \\"a\\"", count=3, deep=true), now()]'
    assert accepts(grammar, text)
    expected = [("find", {"text": 'it\'s "a"', "count": 3, "deep": True}), ("now", {})]
    assert text_and_calls(read([way], [text], TOOLS)) == ("", expected)
    assert not accepts(grammar, "[find(count=3)]")
    assert not accepts(grammar, "[found()]")


@each_line("way", WAYS.values(), ids=WAYS)
def test_free_text_ends_with_the_opening_of_a_call(way: Notation) -> None:
    grammar = optional_calls(way, TOOLS, {}, most=None)
    if grammar is None:
        # This notation has no marker in front of a call, so there is nothing to wait for.
        assert way.at_start or way.openings[0].isalpha() or way.openings[0].endswith((":", ">"))
        return
    assert grammar.after is not None
    (opening,) = grammar.after.until
    assert isinstance(opening, str)
    text = written(
        way,
        [("find", {"text": "a"}), ("now", {})]
        if not python_like(way, [("find", {"text": "a"})])
        else [("now", {})],
    )
    before, _, rest = text.partition(opening)
    assert len(before) < 24
    assert accepts(grammar, rest.rstrip())


def test_control_tokens_are_tokens_in_a_grammar() -> None:
    way = WAYS["mistral-1"]
    tokens = {"[TOOL_CALLS]": 5}
    grammar = required_calls(way, TOOLS, tokens, most=None)
    (rules,) = json.loads(grammar.llguidance)["grammars"]
    assert rules["lark_grammar"].startswith("start: <[5]> ")
    free = optional_calls(way, TOOLS, tokens, most=None)
    assert free is not None
    assert free.after == FreeText(until=((5,),))


def test_reasoning_may_come_before_a_call_that_must_come() -> None:
    way, think = WAYS["hermes-1"], markers_of(None)
    call = written(way, [("now", {})])
    grammar = required_calls(way, TOOLS, {}, most=1, thinking=think)
    for text in (call, f"<think>Well, <tool_call> or not?</think>\n\n{call}"):
        assert accepts(grammar, text)
    assert not accepts(grammar, f"<think>Well.{call}")
    begun = required_calls(way, TOOLS, {}, most=1, thinking=think, in_reasoning=True)
    assert begun.after == FreeText(until=("</think>",))
    assert accepts(begun, f"\n\n{call}")
    budget = FreeText(until=("</think>",), most_tokens=9, then=(1,))
    limited = required_calls(way, TOOLS, {}, most=1, thinking=think, after=budget)
    assert limited.after == budget
    assert accepts(limited, f"\n{call}")
