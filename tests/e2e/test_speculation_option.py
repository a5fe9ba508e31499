"""What `speculation` takes, and that forms, calls and streams are the same with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import akunu
from akunu import ArgumentError, SamplingOptions
from lines import each_line

PROMPT = "user\nSay it again: one two three four five, one two three four five.\nassistant\n"


@pytest.fixture(scope="module")
def model() -> Iterator[Any]:
    with akunu.load("ember", context=512, threads=1) as model:
        yield model


@each_line("value", ["auto", "off", 1, 15, "7"])
def test_what_it_may_be(value: Any) -> None:
    kept = SamplingOptions(speculation=value).speculation
    assert kept == (int(value) if value == "7" else value)


@each_line("value", [0, 16, -1, 2.5, "on", True, ""])
def test_what_it_may_not_be(value: Any) -> None:
    with pytest.raises(ArgumentError, match="speculation is"):
        SamplingOptions(speculation=value)


FORMS: list[dict[str, Any]] = [
    {},
    {"json": True},
    {"regex": "(one |two |three ){10,30}"},
    {"schema": {"type": "array", "items": {"enum": ["one", "two"]}, "maxItems": 9}},
    {"choice": ["one two three four five", "one two"]},
    {"stop": ["four"]},
]


@each_line("form", FORMS, ids=lambda form: next(iter(form), "free"))
@each_line("temperature", [0.0, 0.8])
def test_forms_are_the_same(model: Any, form: dict[str, Any], temperature: float) -> None:
    options = {**form, "max_tokens": 60, "temperature": temperature, "seed": 4}
    expected = model.generate(PROMPT, speculation="off", **options)
    for speculation in ("auto", 3, 15):
        found = model.generate(PROMPT, speculation=speculation, **options)
        assert (found, found.token_ids) == (expected, expected.token_ids)
    assert "".join(model.generate(PROMPT, stream=True, speculation=15, **options)) == expected


def test_conversations_with_tools_are_the_same(model: Any) -> None:
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    messages = [{"role": "user", "content": "What is 12 + 7?"}]
    for tool_choice in ("auto", "required"):
        replies = [
            model.chat(
                messages,
                tools=[add],
                tool_choice=tool_choice,
                max_tokens=60,
                speculation=speculation,
            )
            for speculation in ("off", "auto", 15)
        ]
        assert replies[0] == replies[1] == replies[2]
        assert replies[0].token_ids == replies[1].token_ids == replies[2].token_ids
