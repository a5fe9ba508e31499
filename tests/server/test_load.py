"""64 clients at once, for a while: all are answered, nobody waits for ever, nothing piles up.

On loopback, with a number of requests that is known beforehand; a client sends its next request
when it has the answer to the last one.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from test_metrics import samples, until

pytestmark = pytest.mark.slow

CLIENTS = 64
WARM_UP = 4  # requests of each client before memory is looked at
REQUESTS = 8  # and behind that
# Words of the prompt (about two tokens each), tokens of the reply.
SIZES = {"short": (5, 8), "medium": (60, 24), "long": (200, 64)}


@contextmanager
def serving_process(*arguments: str, folder: Path) -> Iterator[tuple[int, str]]:
    """A server in a process of its own: its id and its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "akunu", "serve", "--port", "0", "--access-log", "none", *arguments],
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, "XDG_STATE_HOME": str(folder / "state")},
    )
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if found := re.search(r"akunu: serving .* at (\S+)/v1", line):
                yield process.pid, found[1]
                break
        else:
            raise AssertionError(f"it ended with {process.wait()}")
    finally:
        process.terminate()
        _, log = process.communicate(timeout=60)
    assert process.returncode == 0, log
    assert "Traceback" not in log, log


def resident_bytes(process: int) -> int:
    """Memory of a process that is in use, as `ps` counts it."""
    told = subprocess.run(
        ["ps", "-o", "rss=", "-p", str(process)], capture_output=True, text=True, check=True
    )
    return int(told.stdout) * 1024


async def ask(client: httpx.AsyncClient, size: str, draw: random.Random) -> float:
    """Seconds that one request took; all of its tokens came."""
    n_words, n_tokens = SIZES[size]
    words = " ".join(draw.choices(("apple", "pear", "plum", "seven", "table"), k=n_words))
    body: dict[str, Any] = {
        "messages": [{"role": "user", "content": words}],
        "max_tokens": n_tokens,
        "ignore_eos": True,
        "temperature": draw.choice((0.0, 1.0)),
        "seed": 1,
        "stream": draw.random() < 0.5,
        "stream_options": {"include_usage": True},
    }
    if not body["stream"]:
        del body["stream_options"]
    began = time.monotonic()
    answer = await client.post("/v1/chat/completions", json=body)
    seconds = time.monotonic() - began
    assert answer.status_code == 200, answer.text
    assert f'"completion_tokens":{n_tokens},' in answer.text, answer.text
    assert '"error"' not in answer.text
    if body["stream"]:
        assert answer.text.endswith("data: [DONE]\n\n")
    return seconds


async def load(address: str, n_requests: int, seed: int) -> dict[str, list[float]]:
    """How long each request took, by its size; all clients begin at once."""
    took: dict[str, list[float]] = defaultdict(list)
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    async with httpx.AsyncClient(base_url=address, timeout=300, limits=limits) as client:

        async def ask_again_and_again(number: int) -> None:
            draw = random.Random(f"{seed} {number}")
            for _ in range(n_requests):
                size = draw.choice(list(SIZES))
                took[size].append(await ask(client, size, draw))

        await asyncio.gather(*map(ask_again_and_again, range(CLIENTS)))
    return took


# A cache with pages for all 64 requests at once, and one where most of them wait for pages.
@pytest.mark.parametrize("kv_memory", [400_000_000, 16_000_000], ids=["roomy", "tight"])
def test_64_clients_are_served_fairly_and_leave_nothing(tmp_path: Path, kv_memory: int) -> None:
    arguments = ["ember", "--kv-memory", str(kv_memory)]
    with serving_process(*arguments, folder=tmp_path) as (process, address):
        asyncio.run(load(address, WARM_UP, 1))
        warm = resident_bytes(process)
        took = asyncio.run(load(address, REQUESTS, 2))
        after = resident_bytes(process)
        with httpx.Client(base_url=address) as client:
            found = until(lambda: _at_rest(samples(client)))
    assert sum(map(len, took.values())) == CLIENTS * REQUESTS
    for size, seconds in took.items():
        assert max(seconds) <= 3 * statistics.median(seconds), size
    assert after - warm < 16 << 20, f"from {warm} to {after} bytes"
    n_requests = CLIENTS * (WARM_UP + REQUESTS)
    assert found["akunu_requests_total,200,/chat/completions"] == n_requests
    assert found["akunu_texts_total,ember,length"] == n_requests
    assert found["akunu_cache_pages,full,ember,in_use"] == 0


def _at_rest(found: dict[str, float]) -> dict[str, float]:
    """Samples of a server with nothing to do, or none."""
    gauges = ("engine_waiting", "engine_running", "texts_waiting", "texts_running")
    is_busy = any(found[f"akunu_{name},ember"] for name in gauges)
    reads = found["akunu_cache_pages,full,ember,in_use"]  # replies, as later prompts may need them
    return {} if is_busy or reads else found
