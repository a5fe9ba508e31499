"""`akunu ray` on a cluster of this machine: caches, a replica that is killed, one that leaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from ray_cluster import Cluster
from test_metrics import samples, until

pytest.importorskip("ray", reason="the extra ray is not installed")
pytestmark = pytest.mark.slow

WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight")


def replicas(client: httpx.Client) -> set[str]:
    return set(client.get("/v1/metrics").json()["replicas"]) - {"front"}


def running(client: httpx.Client) -> dict[str, int]:
    """How many texts each replica is writing."""
    found = client.get("/v1/metrics").json()["replicas"].items()
    return {
        name: facts["models"].get("ember", {}).get("running", 0)
        for name, facts in found
        if name != "front"
    }


def test_it_speaks_as_one_server(client: httpx.Client) -> None:
    answer = client.post("/v1/chat/completions", json={"messages": [asking("What is 12 + 7?")]})
    assert answer.json()["choices"][0]["message"]["content"] == "12 + 7 = 19"
    assert client.get("/v1/models").json()["data"][0]["id"] == "ember"
    assert client.get("/ready").status_code == client.get("/health").status_code == 200
    assert client.get("/v1/nothing").json()["error"]["code"] == "unknown_url"
    body = {"messages": [asking("Hello")], "stream": True, "max_tokens": 3}
    with client.stream("POST", "/v1/chat/completions", json=body) as stream:
        lines = [line for line in stream.iter_lines() if line]
    assert lines[-1] == "data: [DONE]"
    assert len(lines) > 3
    chosen = client.get("/health", headers={"x-request-id": "mine"})
    assert chosen.headers.get_list("x-request-id") == ["mine"]


def asking(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def test_a_conversation_finds_its_cache(client: httpx.Client) -> None:
    def talk(word: str) -> None:
        messages = [asking(f"Tell me about the number {word}.")]
        n_before = 0
        for _ in range(3):
            body = {"messages": messages, "max_tokens": 8}
            answer = client.post("/v1/chat/completions", json=body).json()
            usage = answer["usage"]
            # Of a later turn, at least the prompt before it is found.
            assert usage["prompt_tokens_details"]["cached_tokens"] >= n_before
            n_before = usage["prompt_tokens"] - 1
            messages += [answer["choices"][0]["message"], asking("And then?")]

    for word in WORDS:
        talk(word)
    hits = {
        name: facts["models"].get("ember", {}).get("prefix_hits", 0)
        for name, facts in client.get("/v1/metrics").json()["replicas"].items()
    }
    assert sum(count > 0 for count in hits.values()) == 2, hits


def test_a_client_that_goes_away_cancels_its_text(client: httpx.Client) -> None:
    body = {"messages": [asking("Hello")], "ignore_eos": True, "stream": True}
    n_before = n_cancelled(client)
    with client.stream("POST", "/v1/chat/completions", json=body) as answer:
        next(answer.iter_lines())
    until(lambda: n_cancelled(client) == n_before + 1)
    assert set(running(client).values()) == {0}


def n_cancelled(client: httpx.Client) -> float:
    return sum(
        n
        for name, n in samples(client).items()
        if name.startswith("akunu_texts_total,ember,cancelled")
    )


def test_more_than_may_wait_is_told_by_name(client: httpx.Client) -> None:
    def ask(number: int) -> tuple[int, str]:
        body = {"messages": [asking(f"Hello {number}")], "ignore_eos": True, "max_tokens": 100}
        answer = client.post("/v1/chat/completions", json=body)
        if answer.status_code == 200:
            return 200, ""
        assert int(answer.headers["retry-after"]) > 0
        return answer.status_code, answer.json()["error"]["code"]

    client_limits = httpx.Limits(max_connections=200)
    with (
        httpx.Client(base_url=client.base_url, timeout=120, limits=client_limits) as client,
        ThreadPoolExecutor(200) as threads,
    ):
        results = Counter(threads.map(ask, range(200)))
    assert set(results) == {(200, ""), (503, "queue_full")}, results


def test_when_a_replica_is_killed_each_request_is_answered_or_fails_by_name(
    cluster: Cluster, client: httpx.Client
) -> None:
    before = replicas(client)
    assert len(before) == 2
    n_begun = threading.Semaphore(0)

    def ask(number: int) -> str:
        body = {"messages": [asking(f"Hello {number}")], "ignore_eos": True, "max_tokens": 150}
        if number % 2:
            n_begun.release()
            answer = client.post("/v1/chat/completions", json=body)
            return "answered" if answer.status_code == 200 else answer.json()["error"]["code"]
        with client.stream("POST", "/v1/chat/completions", json={**body, "stream": True}) as stream:
            if stream.status_code != 200:
                return str(json.loads(stream.read())["error"]["code"])
            lines = []
            for line in stream.iter_lines():
                if line and not lines:
                    n_begun.release()
                lines.append(line)
        last = [line for line in lines if line][-1]
        return "answered" if last == "data: [DONE]" else json.loads(last[6:])["error"]["code"]

    with ThreadPoolExecutor(12) as threads:
        asked = [threads.submit(ask, number) for number in range(48)]
        for _ in range(6):
            n_begun.acquire(timeout=60)
        os.kill(cluster.replica_pids()[0], signal.SIGKILL)
        results = Counter(each.result(timeout=180) for each in asked)
    assert set(results) <= {"answered", "replica_died"}, results
    assert results["answered"] >= 36, results  # at most the streams that were under way are lost

    def is_replaced() -> bool:
        now = replicas(client)
        return len(now) == 2 and now != before

    until(is_replaced, seconds=120)


SCALE = """
import ray
from ray import serve
from akunu.ray.application import built
from akunu.ray.settings import cluster_options as asked
ray.init(address="auto", log_to_driver=False)
wanted = asked([], None, {"replicas": 1, "processors": 1, "port": PORT, "drain_seconds": 60,
                          "max_waiting": 40})
serve.run(built(wanted), name="akunu", route_prefix="/")
"""


def test_a_replica_that_leaves_finishes_its_streams(
    cluster: Cluster, client: httpx.Client, tmp_path: Path
) -> None:
    assert len(replicas(client)) == 2
    port = cluster.address.rpartition(":")[2]
    scale = SCALE.replace("PORT", port)

    def read(word: str) -> list[str]:
        body = {"messages": [asking(word)], "ignore_eos": True, "stream": True, "n": 4}
        body["max_tokens"] = 450
        with client.stream("POST", "/v1/chat/completions", json=body) as answer:
            return [line for line in answer.iter_lines() if line]

    def both_write() -> bool:
        texts = running(client)
        return len(texts) == 2 and 0 not in texts.values()

    with ThreadPoolExecutor(len(WORDS)) as threads:
        streams = [threads.submit(read, word) for word in WORDS]
        until(lambda: both_write() or any(each.done() for each in streams))
        assert not any(each.done() for each in streams), [each.result()[-3:] for each in streams]
        scaled = subprocess.run(
            [sys.executable, "-c", scale],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=200,
        )
        assert scaled.returncode == 0, scaled.stderr
        for each in streams:
            lines = each.result(timeout=180)
            assert lines[-1] == "data: [DONE]"
            ended = [line for line in lines if '"finish_reason":"length"' in line]
            assert len(ended) == 4

    until(lambda: len(replicas(client)) == 1, seconds=60)
    answer = client.post("/v1/chat/completions", json={"messages": [asking("Hello")]})
    assert answer.status_code == 200


def test_it_ends_what_is_under_way_when_it_is_ended(cluster: Cluster, client: httpx.Client) -> None:
    body = {"messages": [asking("Hello")], "ignore_eos": True, "stream": True, "max_tokens": 400}
    with client.stream("POST", "/v1/chat/completions", json={**body, "n": 4}) as answer:
        lines = answer.iter_lines()
        next(lines)
        ending = threading.Thread(target=cluster.end)
        ending.start()
        rest = [line for line in lines if line]
    assert rest[-1] == "data: [DONE]"
    ending.join()
    assert cluster.process.returncode == 0, cluster.log.read_text()
