"""The tool that the tests of several APIs offer: add(a, b). Each file gives it its API's form."""

from __future__ import annotations

from typing import Any

PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
    "additionalProperties": False,
}
ABOUT = {"name": "add", "description": "Add two numbers."}
FUNCTION: dict[str, Any] = {**ABOUT, "parameters": PARAMETERS}
