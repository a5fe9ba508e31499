"""Schemas of Python's own types that JSON has no word for, and objects of them again."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import json
import re
import sys
import threading
import uuid
from types import MappingProxyType
from typing import Annotated, Any

import pytest
from grammar_support import accepts

from akunu.errors import ArgumentError
from akunu.grammar import from_regex, from_schema
from akunu.grammar.structure import reader_of
from lines import each_line

NEEDS_PYDANTIC = "pydantic says what they are in JSON, and is not installed"


@each_line(
    ("kind", "text", "value", "wrong"),
    [
        (datetime.date, '"2024-02-29"', datetime.date(2024, 2, 29), '"29.2.2024"'),
        (
            datetime.time,
            '"12:30:00Z"',
            datetime.time(12, 30, tzinfo=datetime.timezone.utc),
            '"noon"',
        ),
        (
            datetime.datetime,
            '"2024-02-29T12:30:00Z"',
            datetime.datetime(2024, 2, 29, 12, 30, tzinfo=datetime.timezone.utc),
            '"2024-02-29"',
        ),
        (datetime.timedelta, '"P1DT2H"', datetime.timedelta(days=1, hours=2), '"26 hours"'),
        (uuid.UUID, f'"{uuid.UUID(int=5)}"', uuid.UUID(int=5), '"5"'),
        (decimal.Decimal, "1.10", decimal.Decimal("1.10"), '"1.10"'),
        (list[datetime.date], '["2024-02-29"]', [datetime.date(2024, 2, 29)], "[1]"),
        (float | datetime.date, "2.5", 2.5, '"x"'),
        (float | datetime.date, '"2024-02-29"', datetime.date(2024, 2, 29), "null"),
    ],
    ids=str,
)
def test_what_pydantic_knows_is_a_schema_and_an_object(
    kind: Any, text: str, value: Any, wrong: str
) -> None:
    pytest.importorskip("pydantic", reason=NEEDS_PYDANTIC)

    grammar = from_schema(dataclasses.make_dataclass("Held", [("it", kind)]))
    assert accepts(grammar, f'{{"it": {text}}}')
    assert not accepts(grammar, f'{{"it": {wrong}}}')
    found = reader_of(kind)(text)
    assert (type(found), found) == (type(value), value)


def test_numbers_of_a_decimal_lose_no_digit_and_others_are_floats() -> None:
    digits = "0.1234567890123456789012345678901234567890"
    assert reader_of(list[decimal.Decimal])(f"[{digits}]") == [decimal.Decimal(digits)]
    assert repr(reader_of(dict[str, Any])('{"a": [0.5, {"b": 0.25}]}')) == repr(
        {"a": [0.5, {"b": 0.25}]}
    )


def test_limits_of_pydantic_hold_in_a_dataclass() -> None:
    pydantic = pytest.importorskip("pydantic", reason=NEEDS_PYDANTIC)

    kind = Annotated[int, pydantic.Field(ge=3, le=5)]
    grammar = from_schema(dataclasses.make_dataclass("Held", [("it", kind)]))
    assert [n for n in range(1, 8) if accepts(grammar, f'{{"it": {n}}}')] == [3, 4, 5]


def test_a_dataclass_may_hold_pydantic_models_that_hold_others() -> None:
    pydantic = pytest.importorskip("pydantic", reason=NEEDS_PYDANTIC)
    inner = pydantic.create_model("Inner", x=(int, ...))
    outer = pydantic.create_model("Outer", inner=(inner, ...))
    other = pydantic.create_model("Outer", inner=(str, ...))  # of the same name

    held = dataclasses.make_dataclass("Held", [("one", outer), ("two", other)])
    text = '{"one": {"inner": {"x": 4}}, "two": {"inner": "a"}}'
    assert accepts(from_schema(held), text)
    assert not accepts(from_schema(held), text.replace('"x": 4', '"x": 4, "y": 5'))
    assert reader_of(held)(text) == held(outer(inner=inner(x=4)), other(inner="a"))


def test_without_pydantic_it_is_said_what_knows_such_types(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pydantic", None)

    with pytest.raises(ArgumentError, match="known for date; the package pydantic may know one"):
        from_schema(list[datetime.date])
    assert accepts(from_schema(list[decimal.Decimal]), "[0.5]")


def test_a_type_that_nobody_knows_is_refused_by_name() -> None:
    with pytest.raises(ArgumentError, match="no JSON schema is known for Thread"):
        from_schema(list[threading.Thread])


def test_a_mapping_of_mappings_is_a_schema() -> None:
    plain = {"type": "object", "properties": {"a": {"const": 1}}, "additionalProperties": False}
    frozen = MappingProxyType({**plain, "properties": MappingProxyType(plain["properties"])})
    assert from_schema(frozen) == from_schema(plain)
    assert json.loads(from_schema(frozen).schema) == plain


@each_line(
    ("pattern", "right", "wrong"),
    [
        (re.compile("ab"), ["ab"], ["AB"]),
        (re.compile("ab", re.IGNORECASE), ["ab", "AB"], ["a"]),
        (re.compile("a.b", re.DOTALL), ["a\nb", "a-b"], ["ab"]),
        (re.compile("a.b"), ["a-b"], ["a\nb"]),
        (re.compile("a b # letters [\n [ #]\\ +c", re.VERBOSE), ["ab# c", "ab  c"], ["a b c"]),
        (re.compile("(?ix)a [^]# ] {2}"), ["Axy", "axy"], ["a]x", "a x"]),
    ],
    ids=str,
)
def test_a_compiled_expression_keeps_its_flags(
    pattern: re.Pattern[str], right: list[str], wrong: list[str]
) -> None:
    assert all(pattern.fullmatch(text) for text in right)
    assert not any(pattern.fullmatch(text) for text in wrong)

    grammar = from_regex(pattern)
    assert [text for text in right if not accepts(grammar, text)] == []
    assert [text for text in wrong if accepts(grammar, text)] == []


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (re.compile("^a$", re.MULTILINE), "the flag re.MULTILINE, which a grammar cannot express"),
        (re.compile(r"\d", re.ASCII), r"the flag re.ASCII.*write classes such as \[0-9\]"),
        (re.compile(b"a"), "not of bytes"),
    ],
    ids=str,
)
def test_flags_that_no_grammar_can_have_are_refused_by_name(
    pattern: re.Pattern[Any], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        from_regex(pattern)
