"""Ollama's Modelfiles: read as the fields of a request that creates a model, and written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from akunu.server.http.errors import invalid
from akunu.server.http.json_words import as_json

_QUOTES: Final = '"""'
_FIELDS: Final = {
    "FROM": "from",
    "SYSTEM": "system",
    "TEMPLATE": "template",
    "ADAPTER": "adapters",
    "LICENSE": "license",
    "PARAMETER": "parameters",
    "MESSAGE": "messages",
}
_OF_LISTS: Final = ("license", "adapters")


def read_modelfile(text: str) -> dict[str, Any]:
    """Return the fields that a Modelfile means; ApiError where it makes no sense.

    >>> read_modelfile("FROM ember\\nPARAMETER temperature 0.5\\nSYSTEM Be brief.")
    {'from': 'ember', 'parameters': {'temperature': 0.5}, 'system': 'Be brief.'}
    """
    found: dict[str, Any] = {}
    lines = iter(enumerate(text.splitlines(), 1))
    for number, line in lines:
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        word, _, rest = stripped.partition(" ")
        field = _FIELDS.get(word.upper())
        if field is None:
            raise _fault(number, f"{as_json(word)} is not one of {', '.join(_FIELDS)}")
        key = ""
        if field in ("parameters", "messages"):
            key, _, rest = rest.strip().partition(" ")
        value = _value(rest.strip(), number, lines)
        if not value or (field in ("parameters", "messages") and not key):
            raise _fault(number, f"{word} has no value")
        if field == "parameters":
            _add_parameter(found.setdefault(field, {}), key, value)
        elif field == "messages":
            found.setdefault(field, []).append({"role": key, "content": value})
        elif field in _OF_LISTS:
            found.setdefault(field, []).append(value)
        else:
            found[field] = value
    return found


def _value(rest: str, number: int, lines: Iterable[tuple[int, str]]) -> str:
    """Return a value: the rest of its line, or what is between quotes, over several lines."""
    if not rest.startswith(_QUOTES):
        is_quoted = len(rest) > 1 and rest[0] == rest[-1] == '"'
        return _unquoted(rest) if is_quoted else rest
    inner, closed, _ = rest.removeprefix(_QUOTES).partition(_QUOTES)
    parts = [inner]
    while not closed:
        following = next(iter(lines), None)
        if following is None:
            raise _fault(number, f"{_QUOTES} is not closed")
        inner, closed, _ = following[1].partition(_QUOTES)
        parts.append(inner)
    return "\n".join(parts)


def _unquoted(text: str) -> str:
    try:
        return str(json.loads(text))
    except ValueError:
        return text[1:-1]


def _add_parameter(parameters: dict[str, Any], name: str, text: str) -> None:
    if name == "stop":
        parameters.setdefault(name, []).append(text)
        return
    try:
        parameters[name] = json.loads(text)
    except ValueError:
        parameters[name] = text


def _fault(number: int, message: str) -> Exception:
    return invalid("modelfile", f"modelfile, line {number}: {message}")


def written_modelfile(
    base: str,
    *,
    template: str = "",
    system: str = "",
    adapter: str = "",
    parameters: str = "",
    messages: Iterable[Mapping[str, str]] = (),
    licenses: Iterable[str] = (),
) -> str:
    """Return a Modelfile; `parameters`: a line for each."""
    lines = [f"FROM {base}"]
    if adapter:
        lines.append(f"ADAPTER {adapter}")
    if template:
        lines.append(f"TEMPLATE {_quoted(template)}")
    if system:
        lines.append(f"SYSTEM {_quoted(system)}")
    lines += [f"PARAMETER {each}" for each in parameters.splitlines()]
    lines += [f"MESSAGE {each['role']} {_quoted(each['content'])}" for each in messages]
    lines += [f"LICENSE {_quoted(each)}" for each in licenses]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return f"{_QUOTES}{text}{_QUOTES}"
