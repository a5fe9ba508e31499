"""A line for each request, on the logger `akunu.server.access`; prompts are in none."""

from __future__ import annotations

import json
import logging
import time
from dataclasses import dataclass
from typing import Any, Final

from starlette.types import Scope

LOG: Final = logging.getLogger("akunu.server.access")


@dataclass(slots=True)
class AccessEntry:
    """What is noted of a request while it continues."""

    scope: Scope
    request_id: str
    began: float
    status: int = 0
    """0: the client went away before an answer."""
    owner: str | None = None
    """The name of the key."""
    model: str = ""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    prefix_end: str = ""
    """Why they are no more."""
    completion_tokens: int = 0
    finish_reason: str = ""
    audio_seconds: float | None = None
    """Where the request had audio, how long it was."""
    error: str = ""
    body: str = ""
    """Where prompts are logged."""

    def facts(self) -> dict[str, Any]:
        """Return what the line has."""
        client = self.scope.get("client")
        found: dict[str, Any] = {
            "request_id": self.request_id,
            "client": client[0] if client else "",
            "key": self.owner,
            "method": self.scope["method"],
            "path": self.scope["path"],
            "status": self.status,
            "ms": round((time.monotonic() - self.began) * 1000, 1),
        }
        if self.model and self.audio_seconds is not None:
            found["model"] = self.model
            found["audio_seconds"] = round(self.audio_seconds, 2)
        elif self.model:
            found["model"] = self.model
            found["prompt_tokens"] = self.prompt_tokens
            found["cached_tokens"] = self.cached_tokens
            if self.prefix_end:
                found["prefix_end"] = self.prefix_end
            found["completion_tokens"] = self.completion_tokens
            found["finish_reason"] = self.finish_reason
        if self.error:
            found["error"] = self.error
        if self.body:
            found["body"] = self.body
        return found


class AccessLog:
    """Writes entries as text or JSON, or not at all."""

    def __init__(self, form: str) -> None:
        """`form`: "text", "json" or "none"."""
        self._form = form

    def write(self, entry: AccessEntry) -> None:
        """Write the line of a request that is over."""
        if self._form == "none" or not LOG.isEnabledFor(logging.INFO):
            return
        facts = {key: value for key, value in entry.facts().items() if value is not None}
        if self._form == "json":
            LOG.info("%s", json.dumps(facts))
            return
        head = " ".join(str(facts.pop(key)) for key in ("method", "path", "status"))
        rest = " ".join(f"{key}={_word(value)}" for key, value in facts.items())
        LOG.info("%s %s", _visible(head), rest)


def _word(value: object) -> str:
    """Return a value as one word, so that a client cannot add lines to the log."""
    text = str(value)
    return text if text.isprintable() and " " not in text and text else json.dumps(text)


def _visible(text: str) -> str:
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)
