"""How long a file is to be stored, as OpenAI's requests say it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from akunu.server.http.errors import invalid
from akunu.server.http.json_words import as_json

_LEAST: Final = 3600
_MOST: Final = 2_592_000  # 30 days


def lifetime(name: str, value: Any) -> Mapping[str, Any]:
    """Read {"anchor": "created_at", "seconds": 3600}; forms have the number as a text."""
    anchor = value.get("anchor") if isinstance(value, dict) else None
    if anchor != "created_at":
        raise invalid(name, f"{name}.anchor is {as_json(anchor)}; it must be 'created_at'")
    seconds = value.get("seconds")
    if isinstance(seconds, str) and seconds.isascii() and seconds.isdigit():
        seconds = int(seconds[:10])
    if type(seconds) is not int or not _LEAST <= seconds <= _MOST:
        raise invalid(
            name,
            f"{name}.seconds is {as_json(seconds)}; it must be an integer from {_LEAST} to {_MOST}",
        )
    return {"seconds": seconds}
