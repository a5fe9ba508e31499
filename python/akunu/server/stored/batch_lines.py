"""The lines of a batch's files: requests, and their answers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from akunu.common.clock_and_ids import random_hex
from akunu.server.http.json_body import json_bytes

ENDPOINTS: Final = (
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/embeddings",
    "/v1/responses",
)
MOST_LINES: Final = 50_000
_MOST_ERRORS: Final = 100  # that a batch names


@dataclass(frozen=True, slots=True)
class BatchLine:
    """A request of a batch."""

    custom_id: str
    body: dict[str, Any]


def lines_of(path: Path) -> Iterator[BatchLine]:
    """Iterate over the requests of a file that was looked at."""
    with path.open("rb") as file:
        for line in file:
            if line.strip():
                found = json.loads(line)
                yield BatchLine(found["custom_id"], found["body"])


def look_at(path: Path, endpoint: str) -> tuple[int, list[dict[str, Any]]]:
    """Return how many requests a file has, and what is wrong with it; in a thread."""
    names: set[str] = set()
    errors: list[dict[str, Any]] = []
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            wrong = _wrong_with(line, endpoint, names)
            if wrong is None and len(names) > MOST_LINES:
                wrong = "too_many_requests", f"a batch has at most {MOST_LINES} requests", None
            if wrong is not None:
                code, message, param = wrong
                errors.append({"code": code, "message": message, "param": param, "line": number})
            if len(errors) == _MOST_ERRORS or len(names) > MOST_LINES:
                break
    if not names and not errors:
        message = "the input file has no requests"
        errors = [{"code": "empty_file", "message": message, "param": None, "line": None}]
    return len(names), errors


def _wrong_with(line: bytes, endpoint: str, names: set[str]) -> tuple[str, str, str | None] | None:
    """Return the code, the message and the field of an error; adds the line's id to `names`."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return "invalid_json_line", "the line is not JSON", None
    if not isinstance(found, dict):
        return "invalid_json_line", "the line must be a JSON object", None
    name = found.get("custom_id")
    if not isinstance(name, str) or not name:
        return "invalid_custom_id", "custom_id must be a text", "custom_id"
    if name in names:
        return "duplicate_custom_id", f"custom_id {name!r} is that of an earlier line", "custom_id"
    names.add(name)
    if found.get("method") != "POST":
        return "invalid_method", "method must be POST", "method"
    if found.get("url") != endpoint:
        return "mismatched_endpoint", f"url must be the batch's endpoint, {endpoint}", "url"
    body = found.get("body")
    if not isinstance(body, dict):
        return "invalid_body", "body must be a JSON object", "body"
    for field in ("stream", "background"):
        if body.get(field):
            return (
                "invalid_body",
                f"{field}: a batch's requests are answered whole",
                f"body.{field}",
            )
    return None


def answered_line(custom_id: str, status: int, request_id: str, body: Any) -> bytes:
    """Return the line of an answer."""
    response = {"status_code": status, "request_id": request_id, "body": body}
    told = {
        "id": f"batch_req_{random_hex(16)}",
        "custom_id": custom_id,
        "response": response,
        "error": None,
    }
    return json_bytes(told) + b"\n"


class AnswerFile:
    """A file of answers, which continues after a killed process: no line is half or twice there.

    What a client gets is the same file: each line is appended once, when its answer is complete.
    """

    def __init__(self, path: Path) -> None:
        """Open it, or make it; what follows the first line that is not whole is cut off."""
        self.path = path
        self.names: set[str] = set()
        """The requests that are answered in it."""
        self._number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._end = 0
        with open(self._number, "rb", closefd=False) as file:
            for line in file:
                name = _name_in(line)
                if name is None:
                    break
                self.names.add(name)
                self._end += len(line)
        os.ftruncate(self._number, self._end)

    def append(self, custom_id: str, line: bytes) -> None:
        """Write a line, or nothing; OSError for a disk that is full."""
        done = 0
        try:
            while done < len(line):
                done += os.pwrite(self._number, line[done:], self._end + done)
        except OSError:
            os.ftruncate(self._number, self._end)
            raise
        self._end += len(line)
        self.names.add(custom_id)

    def sync(self) -> None:
        """Return when it outlives the machine."""
        os.fsync(self._number)

    def close(self) -> None:
        """Close it; a file without lines is deleted."""
        os.close(self._number)
        if not self._end:
            self.path.unlink(missing_ok=True)


def _name_in(line: bytes) -> str | None:
    try:
        found: Mapping[str, Any] = json.loads(line)
        name = found["custom_id"]
    except (ValueError, KeyError, TypeError):
        return None
    return name if line.endswith(b"\n") and isinstance(name, str) else None
