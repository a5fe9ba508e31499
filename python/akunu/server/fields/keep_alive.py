"""How long a model stays loaded after a request: Ollama's `keep_alive`, LM Studio's `ttl`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final

from akunu.server.fields.common import integer_in
from akunu.server.fields.table import honoured
from akunu.server.http.errors import invalid
from akunu.server.http.json_words import as_json

_UNITS: Final = {
    **{"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3},
    **{"s": 1.0, "m": 60.0, "h": 3600.0},
}
_MOST_SECONDS: Final = 10**9
_NUMBER: Final = r"(\d+\.?\d*|\.\d+)"
_PART: Final = re.compile(rf"{_NUMBER}(ns|us|µs|ms|s|m|h)")
_DURATION: Final = re.compile(rf"[-+]?({_NUMBER}(ns|us|µs|ms|s|m|h)?|({_PART.pattern})+)")


def seconds_of(value: Any) -> float:
    """Return the seconds of a `keep_alive`, infinity for a negative one and for 31 years.

    A number is in seconds; a text is a duration as Go writes it, or a number. ApiError for others.

    >>> seconds_of("1h30m"), seconds_of(-1), seconds_of("0")
    (5400.0, inf, 0.0)
    """
    is_nan = isinstance(value, float) and math.isnan(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and not is_nan:
        return float(value) if 0 <= value <= _MOST_SECONDS else math.inf
    if not isinstance(value, str) or not _DURATION.fullmatch(value):
        raise invalid(
            "keep_alive",
            f'keep_alive is {as_json(value)}; it must be a duration such as "5m" or "1h30m", or a '
            f"number of seconds; a negative one keeps the model loaded",
        )
    if value.startswith("-"):
        return math.inf
    parts = [(found[1], found[2]) for found in _PART.finditer(value)] or [(value, "s")]
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    return seconds if seconds <= _MOST_SECONDS else math.inf


def _keep_alive(name: str, value: Any) -> Mapping[str, Any]:
    return {"keep_seconds": seconds_of(value)}


def _ttl(name: str, value: Any) -> Mapping[str, Any]:
    return {"keep_seconds": float(integer_in(name, value, 0, _MOST_SECONDS))}


KEEP_ALIVE: Final = honoured("keep_alive", {"type": ["string", "number", "null"]}, _keep_alive)
TTL: Final = honoured("ttl", "integer", _ttl)
