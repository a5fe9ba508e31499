"""The adapters of a text by their numbers, as llama.cpp's server has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from akunu.common.checks import number
from akunu.errors import ArgumentError
from akunu.server.http.errors import invalid
from akunu.server.http.json_words import as_json

LORA_SCHEMA: Final[Mapping[str, Any]] = {
    "type": ["array", "null"],
    "items": {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "scale": {"type": "number"}},
        "required": ["id", "scale"],
    },
}


def lora(name: str, value: Any) -> Mapping[str, Any]:
    """Read scales by the numbers of adapters; each number once."""
    if not isinstance(value, list):
        raise invalid(name, f"{name} is {as_json(value)}; it must be a list")
    scales: dict[int, float] = {}
    for index, each in enumerate(value):
        found = each if isinstance(each, dict) and each.keys() == {"id", "scale"} else {}
        of = found.get("id")
        if not isinstance(of, int) or isinstance(of, bool):
            raise invalid(
                name, f"{name}[{index}] is {as_json(each)}; it must have an id and a scale"
            )
        if of in scales:
            raise invalid(name, f"{name} has the adapter {of} twice")
        try:
            scales[of] = number("scale", found["scale"], -1e4, 1e4)
        except ArgumentError as error:
            raise invalid(name, f"{name}[{index}].{error}") from None
    return {"lora": scales}


def by_name(name: str, scales: Mapping[int, float], names: Sequence[str]) -> dict[str, float]:
    """Return scales by the names of adapters.

    `names`: by their numbers, "" for a number that is free. ApiError for a number without a name.
    """
    found = {}
    for of, scale in scales.items():
        if not 0 <= of < len(names) or not names[of]:
            numbers = ", ".join(str(i) for i, each in enumerate(names) if each) or "none"
            raise invalid(
                name,
                f"{name} has the adapter {of}; the model has {numbers}: see GET /lora-adapters",
            )
        found[names[of]] = scale
    return found
