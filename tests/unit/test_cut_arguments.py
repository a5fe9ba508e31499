"""Arguments that were cut are read as Anthropic's and OpenAI's clients read them, by jiter."""

from __future__ import annotations

import pytest
from pydantic_core import from_json

from akunu.tools.calls import ToolCall
from akunu.tools.cut_arguments import arguments_of, arguments_so_far
from lines import each_line


@each_line(
    "text",
    [
        '{"a": [1, {"b": "c,\\" }"}, null], "d": {"e": -1.5e3, "f": true}, "g": "]{", "h": []}',
        '{"a,": "b\\\\", "c": {}, "ü": "\\u00fc", "": [[2, 3], 4]}',
        "{}",
    ],
)
def test_every_beginning_is_read(text: str) -> None:
    for end in range(1, len(text) + 1):
        assert arguments_so_far(text[:end]) == from_json(text[:end], allow_partial=True)


def test_what_begins_no_object_is_refused() -> None:
    assert arguments_so_far("") == {}
    for text in ("[1, 2", '"a', "hello", "{'a': 1", '{"a" = 1, "b": 2', "{" * 200):
        with pytest.raises(ValueError, match="does not begin an object"):
            arguments_so_far(text)


@each_line("is_cut", [False, True])
def test_numbers_that_nobody_can_hold_are_null(is_cut: bool) -> None:
    """As pydantic writes them; a whole answer of Anthropic's API, which is JSON, has them."""
    text = '{"a": -9e999, "b": ' + "1" * 5000 + ', "c": [1e400, 2]' + ("" if is_cut else "}")
    found = arguments_of(ToolCall("call_1", "f", text, is_cut=is_cut))
    assert found == {"a": None, "b": None, "c": [None, 2]}
