"""What callers ask of a text's form."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import enum
import json
import pickle
import re
from typing import Any

import pytest

import akunu
from akunu.grammar import from_lark, from_schema
from akunu.grammar.errors import SchemaError
from akunu.grammar.structure import StructureArguments, reader_of
from lines import each_line


class Colour(enum.Enum):
    red = "red"
    blue = "blue"


@dataclasses.dataclass
class Wheel:
    size: int


@dataclasses.dataclass
class Car:
    colour: Colour
    wheels: list[Wheel]
    owner: str | None = None


SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "integer", "minimum": 0, "maximum": 999}},
    "required": ["answer"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def model():
    with akunu.load() as model:
        yield model


@pytest.mark.parametrize("schema", [SCHEMA, json.dumps(SCHEMA)], ids=["dict", "text"])
def test_a_schema_gives_an_object(model, schema):
    reply = model.generate("The answer is ", schema=schema, max_tokens=200)
    assert reply.finish_reason == "stop"
    assert reply.parsed == json.loads(reply)
    assert list(reply.parsed) == ["answer"]
    assert 0 <= reply.parsed["answer"] <= 999


def test_a_dataclass_gives_one_of_its_objects(model):
    for seed in range(3):
        reply = model.generate("A car: ", schema=Car, max_tokens=400, temperature=0.7, seed=seed)
        if reply.finish_reason == "stop":
            assert isinstance(reply.parsed, Car)
            assert isinstance(reply.parsed.colour, Colour)
            assert all(isinstance(wheel, Wheel) for wheel in reply.parsed.wheels)


def test_an_object_is_made_of_what_json_has():
    text = '{"colour": "blue", "wheels": [{"size": 3}], "owner": null}'
    assert reader_of(Car)(text) == Car(Colour.blue, [Wheel(3)])
    assert reader_of(dict[str, tuple[int, float]])('{"a": [1, 2.5]}') == {"a": (1, 2.5)}
    assert repr(reader_of(list[float])("[1, 2.5]")) == "[1.0, 2.5]"


@pytest.mark.parametrize("text", ["1" + "0" * 400, "[", "x"], ids=["too large", "cut", "no JSON"])
def test_a_text_that_makes_no_object_is_an_error_of_akunu(text):
    reply = akunu.Completion(text, token_ids=(1,), finish_reason="stop", reader=reader_of(float))
    with pytest.raises(akunu.AkunuError, match="does not fit the requested type"):
        _ = reply.parsed


def test_a_pydantic_model_gives_one_of_its_objects(model):
    pydantic = pytest.importorskip("pydantic", reason="pydantic is not installed")

    class Answer(pydantic.BaseModel):
        answer: int = pydantic.Field(ge=0, le=99)

    reply = model.generate("The answer is ", schema=Answer, max_tokens=200)
    assert isinstance(reply.parsed, Answer)


@each_line(
    ("form", "fits"),
    [
        ({"regex": "[A-F]{3}-[0-9]{2}"}, lambda text: re.fullmatch("[A-F]{3}-[0-9]{2}", text)),
        ({"choice": ["red", "green", "blue, or so"]}, ["red", "green", "blue, or so"].__contains__),
        ({"grammar": 'root ::= "a" | "b" root'}, lambda text: re.fullmatch("b*a", text)),
        ({"grammar": 'start: "a" | "b" start'}, lambda text: re.fullmatch("b*a", text)),
        ({"grammar": from_lark('start: "x"')}, "x".__eq__),
    ],
    ids=["regex", "choice", "gbnf", "lark", "compiled"],
)
def test_each_form_holds(model, form, fits):
    for seed in range(3):
        reply = model.generate("Say it: ", **form, max_tokens=40, temperature=1.0, seed=seed)
        assert fits(reply) or reply.finish_reason == "length"
        assert reply.parsed is None


def test_json_is_an_object(model):
    reply = model.chat([{"role": "user", "content": "Hi"}], json=True, max_tokens=600)
    if reply.finish_reason == "stop":
        assert isinstance(reply.parsed, dict)


def test_a_text_that_was_cut_has_no_object(model):
    reply = model.generate("The answer is ", schema=SCHEMA, max_tokens=2)
    assert reply.finish_reason == "length"
    with pytest.raises(akunu.AkunuError, match=r"ended before its JSON was complete \(length\)"):
        _ = reply.parsed


def test_the_object_is_read_behind_an_echoed_prompt(model):
    plain = model.generate("The answer is ", schema=SCHEMA, max_tokens=200)
    reply = model.generate("The answer is ", schema=SCHEMA, max_tokens=200, echo=True)
    assert reply == "The answer is " + plain
    assert reply.parsed == plain.parsed
    assert reply.mistakes == ()
    assert pickle.loads(pickle.dumps(reply)).parsed == plain.parsed


def test_a_stream_has_the_same_text_and_stop_strings_end_it(model):
    whole = model.generate("The answer is ", schema=SCHEMA, max_tokens=200)
    with model.generate("The answer is ", schema=SCHEMA, max_tokens=200, stream=True) as stream:
        assert "".join(stream) == whole
    assert stream.completion.parsed == whole.parsed
    cut = model.generate("The answer is ", schema=SCHEMA, max_tokens=200, stop=":")
    assert cut == whole[: whole.index(":")]
    assert cut.stop == ":"
    with pytest.raises(akunu.AkunuError, match="ended before its JSON was complete"):
        _ = cut.parsed


def test_awaited_and_in_lists_the_text_is_the_same(model):
    whole = model.generate("The answer is ", schema=SCHEMA, max_tokens=200)

    async def awaited() -> Any:
        return await model.generate_async("The answer is ", schema=SCHEMA, max_tokens=200)

    reply = asyncio.run(awaited())
    assert (reply, reply.parsed) == (whole, whole.parsed)
    replies = model.generate(["The answer is "] * 3, schema=SCHEMA, max_tokens=200)
    assert [each.parsed for each in replies] == [whole.parsed] * 3


def test_of_hundreds_of_optional_properties_any_may_come(model):
    names = {f"property {i}": {"type": "boolean"} for i in range(600)}
    many = {"type": "object", "properties": names, "additionalProperties": False}
    for schema in (many, {"type": "array", "items": many, "minItems": 1}):
        reply = model.generate("Yes: ", schema=schema, max_tokens=20, temperature=1.0, seed=3)
        assert '{"property ' in reply


def test_a_brief_grammar_ends_where_the_model_alone_does_not(model):
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    # "a" is all that it would write.
    bias = {id: 30.0 for id in model.tokenizer.encode("a")}
    endless = model.generate("a", schema=schema, max_tokens=100, logit_bias=bias)
    assert endless.finish_reason == "length"
    grammar = from_schema(schema, brief=True)
    reply = model.generate("a", grammar=grammar, max_tokens=100, logit_bias=bias)
    assert reply.finish_reason == "stop"
    assert reply.parsed == {"name": "a" * 48}


def test_a_schema_that_is_weakened_is_looked_at_afterwards(model):
    seven = {"type": "integer", "minimum": 7, "maximum": 7}
    pair = {"type": "array", "items": seven, "minItems": 2, "maxItems": 2}
    distinct = {**pair, "uniqueItems": True}
    with pytest.raises(SchemaError, match="uniqueItems"):
        model.generate("Seven: ", schema=distinct)
    reply = model.generate("Seven: ", schema=distinct, weaken_schema=True, max_tokens=200)
    assert reply.parsed == [7, 7]
    assert reply.mistakes == (f"at its root: {reply.parsed} has non-unique elements",)
    assert pickle.loads(pickle.dumps(reply)).mistakes == reply.mistakes
    chat = [{"role": "user", "content": "Seven?"}]
    awaited = asyncio.run(
        model.chat_async(chat, schema=distinct, weaken_schema=True, max_tokens=200)
    )
    assert len(awaited.mistakes) == 1
    held = from_schema(distinct, weaken=True)
    assert len(model.generate("Seven: ", grammar=held, max_tokens=200).mistakes) == 1
    assert model.generate("Seven: ", schema=pair, max_tokens=200).mistakes == ()
    assert model.generate("Seven", max_tokens=2).mistakes == ()


def test_what_a_text_was_not_held_to_is_told_with_it(model):
    whole = model.generate("1, 1, 1: ", schema=SCHEMA, weaken_schema=True, max_tokens=8)
    assert whole.weakened == model.generate("Hi", max_tokens=1).weakened == ()
    digit = {"type": "integer", "minimum": 1, "maximum": 9}
    digits = {"type": "array", "items": digit, "maxItems": 4, "uniqueItems": True}
    for reply in (
        model.generate("1, 1, 1: ", schema=digits, weaken_schema=True),
        pickle.loads(pickle.dumps(model.generate("1: ", schema=digits, weaken_schema=True))),
        asyncio.run(model.generate_async("1: ", schema=digits, weaken_schema=True)),
        model.generate(["1: "], schema=digits, weaken_schema=True)[0],
    ):
        ((pointer, reason),) = [(each.pointer, each.reason) for each in reply.weakened]
        assert pointer == "/uniqueItems"
        assert reason == "no grammar can compare items with earlier ones"


def test_a_text_that_was_cut_does_not_fit_its_schema(model):
    cut = model.generate("The answer is ", schema=SCHEMA, max_tokens=2)
    assert cut.mistakes[0].startswith("the text is not JSON: ")


def test_a_pattern_that_python_cannot_read_is_said():
    reply = akunu.Completion('"x"', schema=r'{"pattern": "^\\p{L}$"}')
    with pytest.raises(akunu.AkunuError, match="cannot read a pattern of the schema"):
        _ = reply.mistakes


def test_a_reply_with_an_object_can_be_copied_and_pickled(model):
    reply = model.generate("A car: ", choice=["yes"])
    assert pickle.loads(pickle.dumps(reply)) == "yes"
    reply = model.generate("The answer is ", schema=SCHEMA, max_tokens=200)
    for other in (copy.deepcopy(reply), pickle.loads(pickle.dumps(reply))):
        assert other.parsed == reply.parsed


@each_line(
    ("form", "message"),
    [
        ({"json": True, "regex": "a"}, "json and regex are set: use only one of them"),
        ({"regex": 5}, "regex must be a text, not int"),
        ({"json": 1}, "json is 1; it must be True or False"),
        ({"json": True, "weaken_schema": True}, "weaken_schema is True, but schema is not set"),
        ({"schema": {}, "weaken_schema": 1}, "weaken_schema is 1; it must be True or False"),
        ({"choice": []}, "choice must have at least one text"),
        ({"schema": {"type": "strin"}}, "/type"),
        (
            {"schema": {"properties": {"a": {"pattern": "("}}}},
            "/properties/a/pattern: the pattern is not",
        ),
        ({"grammar": "start: nothing"}, "nothing"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused_before_anything_is_generated(model, form, message):
    with pytest.raises(akunu.ArgumentError, match=message):
        model.generate("Hi", **form)


def test_false_and_none_ask_for_nothing(model):
    plain = model.generate("Hello", max_tokens=5)
    nothing = dict.fromkeys(StructureArguments.__annotations__)
    assert model.generate("Hello", max_tokens=5, **nothing) == plain
    assert model.generate("Hello", max_tokens=5, json=False) == plain


def test_a_grammar_that_takes_too_much_work_ends_its_text_and_no_other(model):
    """A million repetitions: one derivative of them is the work of many masks."""
    with model.generate("Say: ", regex="(a{1000}){1000}", max_tokens=30, stream=True) as dear:
        assert model.generate("The answer is ", schema=SCHEMA, max_tokens=200).parsed
        with pytest.raises(akunu.GrammarLimitError, match="large repetitions smaller"):
            "".join(dear)
    assert len(model.generate("Hello", max_tokens=5).token_ids) == 5
