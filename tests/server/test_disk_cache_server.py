"""A server with `--cache-dir` finds its prefixes when it is started again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from test_load import serving_process
from test_metrics import samples

SYSTEM = "You answer in one short sentence. " * 60


def ask(client: httpx.Client, question: str, **more: Any) -> dict[str, Any]:
    body = {
        "messages": [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": question},
        ],
        "max_tokens": 24,
        "temperature": 0.9,
        "seed": 4,
        **more,
    }
    found: dict[str, Any] = client.post("/v1/chat/completions", json=body).raise_for_status().json()
    return found


def cached(reply: dict[str, Any]) -> int:
    return int(reply["usage"]["prompt_tokens_details"]["cached_tokens"])


@contextmanager
def serving(folder: Path) -> Iterator[httpx.Client]:
    """A client of a server in a process of its own, which keeps prefixes in this folder."""
    arguments = ("--context", "2048", "--cache-dir", str(folder / "cache"))
    with (
        serving_process(*arguments, folder=folder) as (_, address),
        httpx.Client(base_url=address, timeout=60) as client,
    ):
        yield client


def test_a_server_that_starts_again_has_its_prefixes(tmp_path: Path) -> None:
    with serving(tmp_path) as client:
        first = ask(client, "What is a cat?")
        assert cached(first) == 0
        assert first["timings"]["prefix_end"] == "unknown"
    with serving(tmp_path) as client:
        other = ask(client, "Why is the sky blue?")
        again = ask(client, "What is a cat?")
        for _ in range(100):  # between the two, a piece of the text may have been written
            engine = client.get("/v1/metrics").json()["models"]["ember"]["engine"]
            counted = samples(client)
            if counted["akunu_disk_cache_bytes,ember,in_use"] == engine["disk"]["bytes"]:
                break
    n_prompt = first["usage"]["prompt_tokens"]
    assert n_prompt > 300
    n_system = cached(other)
    assert 300 < n_system < n_prompt
    assert other["timings"]["prefix_end"] == "differs"
    assert n_prompt - 17 < cached(again) < n_prompt  # fewer than 16 are computed as fast
    assert again["choices"][0]["message"] == first["choices"][0]["message"]
    assert engine["disk"]["restored"] >= n_system
    assert engine["disk"]["damaged"] == 0
    assert counted["akunu_disk_cache_tokens_total,ember,restored"] == engine["disk"]["restored"]
    assert counted["akunu_disk_cache_bytes,ember,in_use"] == engine["disk"]["bytes"]
    assert counted["akunu_disk_cache_damaged_total,ember"] == 0
