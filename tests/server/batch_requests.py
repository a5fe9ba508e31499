"""Files of requests for batches, and the answers to them."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

import httpx

OVER = ("completed", "failed", "cancelled")


def batch_file(url: str, bodies: Sequence[dict[str, Any]]) -> bytes:
    """A file with these requests, whose ids are their numbers."""
    lines = [
        {"custom_id": str(number), "method": "POST", "url": url, "body": body}
        for number, body in enumerate(bodies)
    ]
    return b"".join(json.dumps(each).encode() + b"\n" for each in lines)


def upload(client: httpx.Client, content: bytes, **headers: str) -> dict[str, Any]:
    """Upload a file for a batch."""
    answer = client.post(
        "/v1/files",
        data={"purpose": "batch"},
        files={"file": ("requests.jsonl", content)},
        headers=headers,
    )
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def begin(client: httpx.Client, url: str, content: bytes, **more: Any) -> dict[str, Any]:
    """Begin a batch."""
    asked = {"endpoint": url, "completion_window": "24h", **more}
    body = {"input_file_id": upload(client, content)["id"], **asked}
    answer = client.post("/v1/batches", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def state_of(client: httpx.Client, name: str) -> dict[str, Any]:
    """How far a batch is."""
    found: dict[str, Any] = client.get(f"/v1/batches/{name}").json()
    return found


def until_over(client: httpx.Client, name: str) -> dict[str, Any]:
    """Wait for the end of a batch."""
    end = time.monotonic() + 120
    while (batch := state_of(client, name))["status"] not in OVER:
        assert time.monotonic() < end, batch
        time.sleep(0.02)
    return batch


def answers_in(client: httpx.Client, file_id: str | None) -> dict[str, Any]:
    """The answers in a file of a batch by the ids of their requests, none is there twice."""
    if file_id is None:
        return {}
    content = client.get(f"/v1/files/{file_id}/content").text
    assert not content or content.endswith("\n")
    lines = [json.loads(each) for each in content.splitlines()]
    found = {each["custom_id"]: each["response"] for each in lines}
    assert len(found) == len(lines)
    return found
