"""Tools are described to the model from dicts and from Python functions."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import pytest

from akunu.errors import ArgumentError
from akunu.tools.definitions import checked_tools, definition_of, described_parameters, schema_of
from lines import each_line


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Place:
    name: str
    height: float = 0.0


class Size(TypedDict):
    width: int


def find(
    text: str,
    count: int = 3,
    *,
    place: Place | None = None,
    tags: list[str] | None = None,
    unit: Literal["km", "mi"] = "km",
    note: Annotated[str, "What to remember."] = "",
) -> str:
    """Find a text.

    It looks everywhere.

    Args:
        text (str): What to find,
            however long.
        count: How many.

    Returns:
        What was found: a text.
    """
    return text * count


def test_a_function_is_described_by_its_name_docstring_and_annotations() -> None:
    assert definition_of(find) == {
        "type": "function",
        "function": {
            "name": "find",
            "description": "Find a text.\n\nIt looks everywhere.",
            "parameters": {
                "type": "object",
                "properties": {
                    "text": {"type": "string", "description": "What to find, however long."},
                    "count": {"type": "integer", "description": "How many."},
                    "place": {
                        "anyOf": [
                            {
                                "type": "object",
                                "properties": {
                                    "name": {"type": "string"},
                                    "height": {"type": "number"},
                                },
                                "required": ["name"],
                                "additionalProperties": False,
                            },
                            {"type": "null"},
                        ]
                    },
                    "tags": {
                        "anyOf": [
                            {"type": "array", "items": {"type": "string"}},
                            {"type": "null"},
                        ]
                    },
                    "unit": {"enum": ["km", "mi"]},
                    "note": {"type": "string", "description": "What to remember."},
                },
                "required": ["text"],
                "additionalProperties": False,
            },
        },
    }


@pytest.mark.parametrize(
    "docstring",
    [
        "Do.\n\nArgs:\n    a: The first,\n        and so on.\n    b (int): The second.\n",
        "Do.\n\nParameters\n----------\na : str\n    The first, and so on.\nb : int\n"
        "    The second.\n\nReturns\n-------\nint\n    A number.\n",
        "Do.\n\n:param a: The first,\n    and so on.\n:param int b: The second.\n"
        ":returns: A number.\n",
    ],
    ids=["google", "numpy", "sphinx"],
)
def test_parameters_are_described_in_three_styles(docstring: str) -> None:
    expected = {"a": "The first, and so on.", "b": "The second."}
    assert described_parameters(docstring) == expected


@each_line(
    ("annotation", "schema"),
    [
        (bool, {"type": "boolean"}),
        (Any, {}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (Colour, {"enum": ["red", "blue"]}),
        (
            Size,
            {
                "type": "object",
                "properties": {"width": {"type": "integer"}},
                "required": ["width"],
                "additionalProperties": False,
            },
        ),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
    ],
)
def test_annotations_become_schemas(annotation: Any, schema: dict[str, Any]) -> None:
    assert schema_of(annotation, "it") == schema


def test_dicts_are_taken_with_and_without_openais_wrapping() -> None:
    bare = {"name": "now", "description": "The time."}
    filled = {**bare, "parameters": {"type": "object", "properties": {}}}
    for tool in (bare, {"type": "function", "function": bare}):
        assert checked_tools([tool]).definitions == ({"type": "function", "function": filled},)


@pytest.mark.parametrize(
    ("key", "more"),
    [
        ("input_schema", {}),
        ("input_schema", {"type": "custom", "cache_control": {"type": "ephemeral"}}),
        ("inputSchema", {}),
    ],
)
def test_tools_of_anthropic_and_of_mcp_keep_their_schema(key: str, more: dict[str, Any]) -> None:
    """https://docs.anthropic.com/en/api/messages#body-tools has this one."""
    schema = {
        "type": "object",
        "properties": {"ticker": {"type": "string", "description": "The symbol."}},
        "required": ["ticker"],
    }
    tool = {"name": "get_stock_price", "description": "The price.", key: schema, **more}
    function = {"name": "get_stock_price", "description": "The price.", "parameters": schema}
    assert checked_tools([tool]).definitions == ({"type": "function", "function": function},)
    assert checked_tools([tool]).schemas == {"get_stock_price": schema}


def test_a_tool_that_describes_no_parameters_has_none() -> None:
    open_ended = {"name": "b", "parameters": {"type": "object"}}
    schemas = checked_tools([{"name": "a"}, open_ended]).schemas
    assert schemas["a"] == {"type": "object", "properties": {}, "additionalProperties": False}
    assert schemas["b"] == {"type": "object"}


def test_functions_can_be_found_again() -> None:
    tools = checked_tools([find, {"name": "now"}])
    assert tools.functions == {"find": find}
    assert list(tools.schemas) == ["find", "now"]


def positional(a: int, /) -> None: ...
def several(*values: int) -> None: ...
def foreign(value: Callable[[], int]) -> None: ...


@each_line(
    ("tools", "message"),
    [
        ("find", "tools must be a list of dicts or functions, got str"),
        ([3], r"tools\[0\] must be a dict or a function, got int"),
        ([{"type": "web_search"}], "'web_search'; only 'function' is known"),
        ([{"function": {"name": "a b"}}], "must have a name of letters, .* got 'a b'"),
        ([{"name": "f", "parameters": []}], "'parameters' of 'f' must be a JSON schema"),
        ([{"name": "f", "input_schema": 5}], "'input_schema' of 'f' must be a JSON schema"),
        (
            [{"name": "f", "parameters": {}, "input_schema": {}}],
            "'f' has 'parameters' and 'input_schema', which mean the same",
        ),
        ([{"type": "custom", "custom": {"name": "f"}}], "'custom'; only 'function' is known"),
        ([{"name": "f", "description": "a\ud800"}], r"^tools\[0\]\['description'\] has a lone"),
        ([{"name": "f", "parameters": {"a": {"b"}}}], r"^tools\[0\]\['parameters'\]\['a'\] must"),
        ([{"name": "f"}, {"name": "f"}], r"tools\[1\] has the name 'f' of an earlier tool"),
        ([lambda a: a], "no name for the model to call"),
        ([positional], "'positional' has the parameter 'a' without a name"),
        ([several], r"'several' takes \*values; a tool has a fixed list of parameters"),
        ([foreign], "the parameter 'value' of 'foreign' is annotated Callable"),
    ],
)
def test_what_is_no_tool_is_refused_by_its_place(tools: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        checked_tools(tools)


@pytest.mark.parametrize("kind", ["string", "array", ["array", "null"]])
def test_arguments_of_a_call_are_an_object(kind: Any) -> None:
    with pytest.raises(
        ArgumentError, match=r"tools\[0\]: 'parameters' of 'f' has type .*an object"
    ):
        checked_tools([{"name": "f", "parameters": {"type": kind}}])
    for fine in ("object", ["object", "null"]):
        assert checked_tools([{"name": "f", "parameters": {"type": fine}}])


def test_null_in_a_tool_is_absent() -> None:
    given: dict[str, Any] = {
        "type": "object",
        "required": None,
        "properties": {"a": {"type": "string", "enum": None, "default": None}, "b": None},
        "$defs": None,
    }
    tool = {"name": "look", "description": None, "strict": None, "parameters": given}
    (definition,) = checked_tools([{"type": "function", "function": tool}]).definitions
    assert definition["function"] == {
        "name": "look",
        "description": "",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "string", "default": None}},
        },
    }
    nothing = {"type": "object", "properties": None}
    tools = checked_tools([{"name": "now", "parameters": nothing}])
    assert tools.definitions[0]["function"]["parameters"] == {"type": "object", "properties": {}}
