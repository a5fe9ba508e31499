"""Tools of /v1/responses: functions, also those within a namespace, as Codex sends MCP servers'.

>>> weather = {"type": "function", "name": "get"}
>>> read = tools_of("tools", [{"type": "namespace", "name": "mcp__weather", "tools": [weather]}])
>>> [tool["function"]["name"] for tool in read["tools"]], read["namespaces"]
(['mcp__weather__get'], {'mcp__weather__get': ('mcp__weather', 'get')})
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from akunu.server.fields.common import WITHOUT_EFFECT
from akunu.server.fields.table import checked
from akunu.server.http.errors import invalid
from akunu.server.http.json_words import kind_of


def name_within(namespace: str, name: str) -> str:
    """Return the name by which the model knows a function of a namespace."""
    return f"{namespace}__{name}"


def tools_of(name: str, value: Any) -> Mapping[str, Any]:
    """Return functions, and for those of a namespace what they are called in an answer.

    Agents offer tools of OpenAI's own as well, of which the model hears nothing: they are named as
    fields without effect. ApiError for values that make no sense.
    """
    read = _Tools(name)
    for index, tool in enumerate(checked(name, value, list)):
        read.add(tool, f"tools[{index}]")
    found: dict[str, Any] = {"tools": read.functions} if read.functions or not read.others else {}
    if read.namespaces:
        found["namespaces"] = read.namespaces
    if read.others:
        found[WITHOUT_EFFECT + name] = read.others
    return found


class _Tools:
    def __init__(self, field: str) -> None:
        self._field = field
        self.functions: list[dict[str, Any]] = []
        self.namespaces: dict[str, tuple[str, str]] = {}
        self.others: list[str] = []

    def add(self, tool: Any, where: str, namespace: str | None = None) -> None:
        if not isinstance(tool, dict):
            raise invalid(self._field, f"{where} must be an object, got {kind_of(tool)}")
        kind = tool.get("type") or "function"
        if not isinstance(kind, str):
            raise invalid(self._field, f"{where}.type must be a text, got {kind_of(kind)}")
        if kind == "namespace" and namespace is None:
            self._add_namespace(tool, where)
        elif kind == "function":
            self._add_function(tool, where, namespace)
        else:
            self._lose(f"tools.{kind}")

    def _add_namespace(self, tool: Mapping[str, Any], where: str) -> None:
        namespace, inner = tool.get("name"), tool.get("tools")
        if not isinstance(namespace, str):
            raise invalid(self._field, f"{where}.name must be a text, got {kind_of(namespace)}")
        if not isinstance(inner, list):
            raise invalid(self._field, f"{where}.tools must be a list, got {kind_of(inner)}")
        if tool.get("description"):
            self._lose("tools.namespace.description")
        for index, each in enumerate(inner):
            self.add(each, f"{where}.tools[{index}]", namespace)

    def _add_function(self, tool: Mapping[str, Any], where: str, namespace: str | None) -> None:
        described = tool.get("function", tool)
        if not isinstance(described, dict):
            raise invalid(self._field, f"{where}.function must be an object")
        keys = ("name", "description", "parameters", "strict")
        function = {key: described[key] for key in keys if described.get(key) is not None}
        name = function.get("name")
        if namespace is not None and isinstance(name, str):
            function["name"] = name_within(namespace, name)
            self.namespaces[function["name"]] = (namespace, name)
        self.functions.append({"type": "function", "function": function})

    def _lose(self, name: str) -> None:
        if name not in self.others:
            self.others.append(name)
