"""Fields with very many values: bounded by a clear error, and off the event loop.

While such a request is read, the server answers others.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from running_server import running

import akunu
from akunu.errors import ArgumentError
from lines import each_line

EMPTY = [{"type": "text", "text": ""}] * 300_000
CALL = {"type": "function", "function": {"name": "f", "arguments": "{}"}}
CALLS = {"role": "assistant", "content": "", "tool_calls": [CALL] * 20_000}


def said(content: object) -> list[dict[str, Any]]:
    return [{"role": "user", "content": content}]


@pytest.fixture(scope="module")
def roomy() -> Iterator[httpx.Client]:
    """A client of a server that takes long bodies; its model is loaded."""
    with running(max_body=64 << 20) as client:
        client.post("/v1/chat/completions", json={"messages": said("a"), "max_tokens": 1})
        yield client


def longest_wait(
    client: httpx.Client, path: str, body: dict[str, Any]
) -> tuple[float, float, httpx.Response]:
    """Seconds that another request had to wait meanwhile, those of this request, and its answer."""
    waits = [0.0]
    content = json.dumps(body).encode()
    is_over = threading.Event()

    def watch() -> None:
        with httpx.Client(base_url=client.base_url, timeout=60) as other:
            while not is_over.is_set():
                began = time.monotonic()
                assert other.get("/health").status_code == 200
                waits.append(time.monotonic() - began)
                time.sleep(0.01)

    watching = threading.Thread(target=watch)
    watching.start()
    began = time.monotonic()
    answer = client.post(path, content=content, headers={"content-type": "application/json"})
    seconds = time.monotonic() - began
    is_over.set()
    watching.join()
    return max(waits), seconds, answer


@each_line(
    ("path", "body", "why"),
    [
        ("/v1/detokenize", {"tokens": [5] * 1_000_000}, "tokens has 1000000 ids; at most 262144"),
        (
            "/v1/tokenize",
            {"content": "a b " * 150_000, "with_pieces": True},
            "at most 262144 are converted",
        ),
        (
            "/v1/chat/completions",
            {"messages": said(EMPTY)},
            "messages[0].content has 300000 parts; at most 10000",
        ),
        (
            "/v1/messages",
            {"messages": said(EMPTY), "max_tokens": 1},
            "messages[0].content has 300000 parts; at most 10000",
        ),
        ("/completion", {"prompt": ["a", 5] * 5_000}, "prompt has 5000 texts among its ids"),
        (
            "/v1/chat/completions",
            {"messages": said("a"), "logit_bias": {str(n): 1 for n in range(50_000)}},
            "logit_bias has 50000 tokens; at most 2048",
        ),
        ("/v1/chat/completions", {"messages": [CALLS, *said("a")]}, "maximum context length"),
    ],
)
def test_very_many_values_are_refused_and_others_do_not_wait(
    roomy: httpx.Client, path: str, body: dict[str, Any], why: str
) -> None:
    waited, seconds, answer = longest_wait(roomy, path, body)
    assert answer.status_code == 400, answer.text[:300]
    assert why in answer.text
    # With json.loads, which holds all threads, others wait as long as this request. (On a busy
    # machine both take longer.)
    assert waited < max(1.0, 0.7 * seconds)


def test_python_has_the_same_bound() -> None:
    with akunu.load() as model, pytest.raises(ArgumentError, match=r"300000 parts; at most 10000"):
        model.chat(said(EMPTY), max_tokens=1)


def test_what_is_within_the_bounds_is_answered(roomy: httpx.Client) -> None:
    ids = [5, 6] * 1000
    text = roomy.post("/v1/detokenize", json={"tokens": ids}).json()["content"]
    assert roomy.post("/v1/tokenize", json={"content": text}).status_code == 200
    body = {"prompt": ["a", 5, "b"], "n_predict": 1}
    assert roomy.post("/completion", json=body).status_code == 200
    many = {f"k{n}": 1 for n in range(1_000)}
    answer = roomy.post(
        "/v1/chat/completions", json={"messages": said("a"), "max_tokens": 1, **many}
    )
    assert answer.status_code == 200
    assert answer.headers["x-akunu-ignored"].startswith("k0, k1, k2")
