"""The front of `akunu.ray`, with replicas in this process: errors, another try, cancellation."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from test_metrics import samples, until

from akunu.ray.exchange import Part, parts_of
from akunu.ray.forwarded import Forwarded
from akunu.ray.front import ReplicaDiedError, Replicas, front
from akunu.server import ServedModels, ServerSettings, create_app
from akunu.server.http.keys import Keys
from akunu.server.run import serve_in_thread

HELLO = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 3}
LONG = {**HELLO, "max_tokens": 200, "ignore_eos": True}


def first_event(part: bytes) -> bytes:
    """The first event of a stream's part, or its first line where each is an event."""
    end = b"\n\n" if b"\n\n" in part else b"\n"
    return part[: part.index(end) + len(end)]


class InProcess(Replicas):
    """Two replicas, "a" and "b", that are one application; they die when they are told to."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self.asked: list[Forwarded] = []
        self.deaths: list[int] = []
        """For each of the next requests, after how many parts its replica dies."""

    async def answer(self, request: Forwarded) -> AsyncGenerator[str | Part, None]:
        self.asked.append(request)
        name = "b" if "a" in request.avoided else "a"
        left = self.deaths.pop(0) if self.deaths else None
        yield name
        parts = parts_of(self._app, request)
        try:
            async for part in parts:
                if left == 0:
                    raise ReplicaDiedError(name)
                left = None if left is None else left - 1
                # A replica that waits for a processor may have all of its answer in one part.
                yield first_event(part) if left == 0 and isinstance(part, bytes) else part
            if left == 0:
                raise ReplicaDiedError(name)
        finally:
            await parts.aclose()

    async def ask_all(self, request: Forwarded) -> list[tuple[str, int, bytes]]:
        found = []
        for name in ("a", "b"):
            parts = [part async for part in parts_of(self._app, request)]
            status = next(part[0] for part in parts if isinstance(part, tuple))
            found.append((name, status, b"".join(p for p in parts if isinstance(p, bytes))))
        return found


@contextmanager
def fronted(**settings: Any) -> Iterator[tuple[httpx.Client, InProcess]]:
    """A client of a front, and its replicas."""
    chosen = ServerSettings(**{"port": 0, **settings})
    models = ServedModels()
    inner = create_app(chosen, models, is_guarded=False)
    replicas = InProcess(inner)
    outer: Any = front(chosen, Keys.of(chosen), replicas)
    inner.state.akunu.is_ready = True
    with (
        serve_in_thread(outer, chosen) as address,
        httpx.Client(base_url=address, timeout=60) as client,
    ):
        yield client, replicas
        client.post("/v1/models/unload", json={})
    asyncio.run(models.close())  # nobody runs the application's own end


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[httpx.Client, InProcess]]:
    with fronted() as found:
        yield found


def events(answer: httpx.Response) -> list[str]:
    return [line.removeprefix("data: ") for line in answer.text.split("\n") if line]


def test_answers_are_those_of_the_server(both: tuple[httpx.Client, InProcess]) -> None:
    client, _ = both
    answer = client.post("/v1/chat/completions", json=HELLO)
    assert answer.json()["usage"]["completion_tokens"] == 3
    assert len(answer.headers.get_list("x-request-id")) == 1
    streamed = client.post("/v1/chat/completions", json={**HELLO, "stream": True})
    assert events(streamed)[-1] == "[DONE]"
    assert client.get("/ready").json() == client.get("/health").json() == {"status": "ok"}
    assert client.get("/nothing").json()["error"]["code"] == "unknown_url"
    assert client.post("/v1/chat/completions", content=b"{").json()["error"]["code"] == (
        "invalid_json"
    )
    page = client.get("/", headers={"accept": "text/html"})
    assert page.headers["content-type"].startswith("text/html")


@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.parametrize("is_stream", [False, True])
def test_what_has_not_begun_to_be_answered_goes_to_another_replica(
    both: tuple[httpx.Client, InProcess], after: int, is_stream: bool
) -> None:
    client, replicas = both
    replicas.asked.clear()
    replicas.deaths = [after]
    answer = client.post("/v1/chat/completions", json={**HELLO, "stream": is_stream})
    assert answer.status_code == 200
    assert '"code"' not in answer.text
    assert [each.avoided for each in replicas.asked] == [(), ("a",)]


def test_a_request_that_two_replicas_died_of_gets_no_third(
    both: tuple[httpx.Client, InProcess],
) -> None:
    client, replicas = both
    replicas.asked.clear()
    replicas.deaths = [0, 0]
    answer = client.post("/v1/chat/completions", json=HELLO)
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "replica_died"
    assert answer.headers["x-should-retry"] == "false"
    assert len(replicas.asked) == 2


@pytest.mark.parametrize(
    ("path", "body", "error"),
    [
        ("/v1/chat/completions", LONG, ["error", "code"]),
        ("/v1/completions", {"prompt": "One", "max_tokens": 200}, ["error", "code"]),
        ("/v1/messages", LONG, ["error", "code"]),
        ("/v1/responses", {"input": "Hello"}, ["error", "code"]),
        ("/completion", {"prompt": "One", "n_predict": 200}, ["error", "code"]),
        (
            "/api/chat",
            {"model": "ember", "messages": HELLO["messages"], "options": {"num_predict": 200}},
            ["error"],
        ),
    ],
)
def test_a_stream_whose_replica_dies_ends_with_an_error_of_its_dialect(
    both: tuple[httpx.Client, InProcess], path: str, body: dict[str, Any], error: list[str]
) -> None:
    client, replicas = both
    replicas.deaths = [2]  # after its headers and something of its body
    answer = client.post(path, json={**body, "stream": True})
    assert answer.status_code == 200
    last = json.loads(events(answer)[-1])
    for key in error:
        last = last[key]
    assert last in ("replica_died", "the replica died while it wrote the answer")
    assert client.get("/health").status_code == 200


def test_a_client_that_goes_away_cancels_its_text(both: tuple[httpx.Client, InProcess]) -> None:
    client, _ = both
    endless = {**HELLO, "max_tokens": None, "ignore_eos": True, "stream": True}
    before = samples(client).get("akunu_texts_total,ember,cancelled,a", 0)
    with client.stream("POST", "/v1/chat/completions", json=endless) as answer:
        next(answer.iter_lines())
    until(lambda: samples(client).get("akunu_texts_total,ember,cancelled,a", 0) == before + 1)


def test_counters_of_all_replicas_are_on_one_page(both: tuple[httpx.Client, InProcess]) -> None:
    client, _ = both
    client.post("/v1/chat/completions", json=HELLO)
    found = samples(client)
    for name in ("a", "b"):
        assert found[f"akunu_completion_tokens_total,ember,{name}"] > 0
        assert found[f"akunu_request_seconds_count,{name},/chat/completions"] > 0
    assert set(client.get("/v1/metrics").json()["replicas"]) == {"a", "b", "front"}


def test_keys_limits_and_origins_are_judged_once_in_front() -> None:
    with fronted(api_keys=["secret"], rate_limit=2, max_body=1000) as (client, replicas):
        assert client.post("/v1/chat/completions", json=HELLO).status_code == 401
        client.headers["authorization"] = "Bearer secret"
        assert client.post("/v1/chat/completions", content=b"x" * 2000).status_code == 413
        assert client.post("/v1/chat/completions", json=HELLO).status_code == 200
        assert client.post("/v1/chat/completions", json=HELLO).status_code == 429
        (asked,) = replicas.asked
        assert asked.owner is not None
    with fronted() as (client, replicas):
        for headers in ({"origin": "https://evil.example"}, {"host": "evil.example"}):
            answer = client.post("/v1/chat/completions", json=HELLO, headers=headers)
            assert answer.status_code == 403
        assert replicas.asked == []


def test_parts_that_gathered_are_one_part() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(3):
            await send({"type": "http.response.body", "body": b"x", "more_body": True})

    async def gathered() -> list[Part]:
        return [part async for part in parts_of(app, Forwarded({"type": "http"}, b""))]

    assert asyncio.run(gathered()) == [(200, []), b"xxx"]
