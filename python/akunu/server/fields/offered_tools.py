"""Tools that a request offers: functions, which the client calls, and others.

Agents offer tools of a provider's own next to theirs (`web_search`, `code_interpreter`,
`computer`), whatever the server. Nothing is done by this server, so the model does not hear of
them: it would call what no one does. They are named as fields without effect, in every dialect.

>>> functions_among("tools", [{"type": "web_search"}, {"function": {"name": "get"}}])
([{'function': {'name': 'get'}}], ['tools.web_search'])
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from akunu.server.fields.common import WITHOUT_EFFECT
from akunu.server.fields.table import checked
from akunu.server.http.errors import invalid
from akunu.server.http.json_words import kind_of


def functions_among(
    name: str, tools: list[Any], kind: str = "function"
) -> tuple[list[Any], list[str]]:
    """Return the tools that are functions, and the names of the others, each once.

    `kind`: the type that a dialect gives to functions; a tool without a type is one, too.
    """
    functions: list[Any] = []
    others: dict[str, None] = {}  # in their order
    for index, tool in enumerate(tools):
        if not isinstance(tool, dict):
            raise invalid(name, f"{name}[{index}] must be an object, got {kind_of(tool)}")
        given = tool.get("type")
        if given is not None and not isinstance(given, str):
            raise invalid(name, f"{name}[{index}].type must be a text, got {kind_of(given)}")
        if given in (None, kind):
            functions.append(tool)
        else:
            others[f"{name}.{given}"] = None
    return functions, list(others)


def offered_functions(name: str, value: Any) -> Mapping[str, Any]:
    """Read tools as OpenAI and Ollama have them."""
    functions, others = functions_among(name, checked(name, value, list))
    return {**({"tools": functions} if functions else {}), WITHOUT_EFFECT + name: others}
