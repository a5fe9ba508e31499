"""What requests that run side by side begin with is computed once, while all of them run."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import httpx
from running_server import Serving

SYSTEM = "You answer in one short sentence. " * 60
N = 4


def streamed(client: httpx.Client, together: Barrier, i: int) -> dict[str, Any]:
    """When the first token came and when the last did, and what the answer says of its prompt."""
    body = {
        "messages": [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": f"{i} is a number. Tell me about it."},
        ],
        "max_tokens": 600,  # long enough that the last one begins before the first one ends
        "ignore_eos": True,
        "temperature": 2.0,
        "seed": i,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    together.wait()
    first, last, usage, timings = 0.0, 0.0, {}, {}
    with client.stream("POST", "/v1/chat/completions", json=body) as response:
        response.raise_for_status()
        for line in response.iter_lines():
            if not line.startswith("data: {"):
                continue
            chunk = json.loads(line[6:])
            if any(choice["delta"].get("content") for choice in chunk["choices"]):
                first = first or time.monotonic()
                last = time.monotonic()
            usage = chunk.get("usage") or usage
            timings = chunk.get("timings") or timings
    return {"first": first, "last": last, **usage, **timings}


def test_a_prefix_is_computed_once(serving: Serving) -> None:
    with serving(context=2048, kv_memory=2**28) as client:
        together = Barrier(N)
        with ThreadPoolExecutor(N) as pool:
            found = list(pool.map(lambda i: streamed(client, together, i), range(N)))
        totals = client.get("/v1/metrics").json()["models"]["ember"]
    cached = sorted(each["prompt_tokens_details"]["cached_tokens"] for each in found)
    n_shared = min(each["prompt_tokens"] for each in found) - 40  # what differs is behind these
    assert n_shared > 256  # below a page nobody waits
    assert cached[0] == 0
    assert all(each > n_shared for each in cached[1:])
    # All of them were under way at a time: none could take it over from one that had ended.
    assert max(each["first"] for each in found) < min(each["last"] for each in found)
    assert totals["prompt_tokens"] - totals["cached_tokens"] == sum(
        each["prompt_tokens"] - each["prompt_tokens_details"]["cached_tokens"] for each in found
    )
    assert totals["prefix_ends"] == {"unknown": 1, "differs": N - 1}
