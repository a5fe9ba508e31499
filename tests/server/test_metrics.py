"""/metrics and /v1/metrics; and what a client that goes away leaves."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from running_server import Serving

HELLO = {"messages": [{"role": "user", "content": "Hello"}]}


def samples(client: httpx.Client) -> dict[str, float]:
    """Every sample by its name and labels."""
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return {
        sample.name + "".join(f",{value}" for value in sample.labels.values()): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def until(condition: Callable[[], Any], seconds: float = 30) -> Any:
    """What a condition gives as soon as it holds."""
    ends = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < ends
        time.sleep(0.005)
    return found


def test_requests_tokens_and_times_are_counted(serving: Serving) -> None:
    with serving() as client:
        usage = client.post("/v1/chat/completions", json=HELLO).json()["usage"]
        client.post("/v1/chat/completions", json=HELLO)
        client.post("/v1/chat/completions", json={})
        client.get("/nothing")
        found = samples(client)
        summary = client.get("/v1/metrics").json()
    assert found["akunu_requests_total,200,/chat/completions"] == 2
    assert found["akunu_requests_total,400,/chat/completions"] == 1
    assert found["akunu_requests_total,404,other"] == 1
    assert found["akunu_prompt_tokens_total,ember"] == 2 * usage["prompt_tokens"]
    assert found["akunu_prompt_tokens_cached_total,ember"] == usage["prompt_tokens"] - 1
    assert found["akunu_prefix_hits_total,ember"] == 1
    assert found["akunu_prefix_ends_total,ember,unknown"] == 1
    assert found["akunu_prefix_ends_total,ember,whole"] == 1
    assert found["akunu_completion_tokens_total,ember"] == 2 * usage["completion_tokens"]
    assert found["akunu_texts_total,ember,stop"] == 2
    for name in ("time_to_first_token_seconds", "time_between_tokens_seconds"):
        assert found[f"akunu_{name}_count,ember"] == 2
    assert found["akunu_request_seconds_count,/chat/completions"] == 3
    assert found["akunu_texts_waiting,ember"] == found["akunu_texts_running,ember"] == 0
    assert summary["total_requests"] == 5
    assert summary["total_completion_tokens"] == 2 * usage["completion_tokens"]
    assert summary["models"]["ember"]["cached_tokens"] == usage["prompt_tokens"] - 1
    assert summary["models"]["ember"]["prefix_ends"] == {"unknown": 1, "whole": 1}
    assert summary["uptime_seconds"] > 0


def test_what_the_engine_is_busy_with_is_told(serving: Serving) -> None:
    # Long enough that the first is not over while it is looked at.
    endless = {"messages": [{"role": "user", "content": "word " * 2400}], "ignore_eos": True}
    endless |= {"temperature": 50, "seed": 1, "stream": True}

    def states(found: dict[str, float]) -> list[float]:
        kinds = ("in_use", "cached", "free")
        return [found[f"akunu_cache_pages,full,ember,{kind}"] for kind in kinds]

    with serving(context=4096, warm_up=False) as client:  # which leaves a page in the cache
        assert not [name for name in samples(client) if "engine" in name]  # none is loaded
        client.post("/api/generate", json={"model": "ember"}).raise_for_status()  # loads it
        before = samples(client)
        assert before["akunu_engine_running,ember"] == before["akunu_engine_waiting,ember"] == 0
        assert states(before) == [0, 0, 16]  # 4096 positions, 256 in a page
        with ExitStack() as busy:
            for _ in range(2):  # which have no room beside each other
                request = client.build_request("POST", "/v1/chat/completions", json=endless)
                busy.callback(client.send(request, stream=True).close)
            until(lambda: samples(client)["akunu_engine_waiting,ember"] == 1)
            found = samples(client)
            assert found["akunu_engine_running,ember"] == 1
            assert sum(states(found)) == 16
            assert states(found)[0] >= 10
            engine = client.get("/v1/metrics").json()["models"]["ember"]["engine"]
            assert engine["waiting"] == 1
            assert sum(engine["cache"][0][kind] for kind in ("in_use", "cached", "free")) == 16
        until(lambda: samples(client)["akunu_engine_running,ember"] == 0)
        assert states(samples(client))[0] == 0


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("is_stream", [True, False])
def test_a_client_that_goes_away_cancels_its_texts(
    serving: Serving, is_stream: bool, n: int
) -> None:
    endless = {**HELLO, "ignore_eos": True, "stream": is_stream, "n": n}
    with serving(context_overflow="shift") as client:
        client.post("/v1/chat/completions", json={**HELLO, "max_tokens": 1})  # which loads it
        with httpx.Client(base_url=client.base_url, timeout=60) as other:
            request = other.build_request("POST", "/v1/chat/completions", json=endless)
            if is_stream:
                answer = other.send(request, stream=True)
                next(answer.iter_bytes())
                answer.close()
            else:
                request.extensions["timeout"] = dict.fromkeys(("connect", "read"), 0.1)
                with pytest.raises(httpx.ReadTimeout):
                    other.send(request)
        until(lambda: samples(client).get("akunu_texts_total,ember,cancelled") == n)
        found = samples(client)
        assert found["akunu_texts_running,ember"] == found["akunu_texts_waiting,ember"] == 0
        until(lambda: samples(client)["akunu_engine_running,ember"] == 0)


def test_a_full_queue_is_told_with_when_to_try_again(serving: Serving) -> None:
    body = {**HELLO, "n": 64, "ignore_eos": True, "temperature": 1, "stream": True}
    with serving(max_waiting=64) as client, ExitStack() as busy:
        for _ in range(4):
            request = client.build_request("POST", "/v1/chat/completions", json=body)
            answer = client.send(request, stream=True)
            busy.callback(answer.close)
            if answer.status_code != 200:
                break
        answer.read()
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "queue_full"
    assert int(answer.headers["retry-after"]) > 0


def test_a_silent_stream_gets_comments(serving: Serving) -> None:
    with serving(ping_seconds=0.0005) as client:
        body = {"messages": [{"role": "user", "content": "word " * 900}], "stream": True}
        with client.stream("POST", "/v1/chat/completions", json=body) as answer:
            lines = [line for line in answer.iter_lines() if line]
    assert ": ping" in lines
    assert lines[-1] == "data: [DONE]"
