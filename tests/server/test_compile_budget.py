"""Grammars of strangers: what takes too long to compile is refused, and holds up nothing."""

from __future__ import annotations

import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from test_metrics import until
from test_serve_command import Start, start  # noqa: F401  # a fixture

HELLO = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 2}
LARGE = {"type": "integer", "multipleOf": 399_989}
ENDLESS: list[tuple[str, dict[str, Any], str]] = [
    ("multiples", {"json_schema": {"properties": {"a": LARGE}}}, "/properties/a/multipleOf"),
    ("multiples in rules", {"grammar": 'start: %json {"multipleOf": 99999989}'}, "grammar"),
    (
        "multiples of a tool",
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"a": 1}}}]},
        "parameters of the tool 'f'",
    ),
    (
        "multiples of many",
        {"json_schema": {"anyOf": [{"multipleOf": 200_003 + i} for i in range(40)]}},
        "multipleOf",
    ),
]
ENDLESS[2][1]["tools"][0]["function"]["parameters"] = {"properties": {"a": LARGE}}
ENDLESS[2][1]["tool_choice"] = "required"

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="processes are looked at in /proc"
)


def children(pid: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found.append(int(path.parent.name))
    return found


def seconds_of(pid: int) -> float:
    """Processor time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_of(pid: int) -> int:
    """The most memory that a process had, in bytes; 0 of one that has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) << 10
    return 0


def post(address: str, body: dict[str, Any], seconds: float = 60) -> httpx.Response:
    return httpx.post(f"{address}/v1/chat/completions", json={**HELLO, **body}, timeout=seconds)


def test_what_takes_too_much_is_refused_by_name_while_others_are_answered(
    start: Start,  # noqa: F811
) -> None:
    process, address = start("--grammar-seconds", "1.5")
    before = peak_of(process.pid)
    with ThreadPoolExecutor(len(ENDLESS)) as threads:
        asked = [threads.submit(post, address, body) for _, body, _ in ENDLESS]
        while not all(each.done() for each in asked):
            begun = time.monotonic()
            assert httpx.get(f"{address}/health").status_code == 200
            assert time.monotonic() - begun < 1.0
            assert len(children(process.pid)) <= 2
            time.sleep(0.1)
    for (name, body, named), each in zip(ENDLESS, asked, strict=True):
        answer = each.result()
        if answer.status_code == 503:  # it waited for the others for too long
            assert answer.json()["error"]["code"] == "queue_full"
            answer = post(address, body)
        assert answer.status_code == 400, (name, answer.text)
        assert named in answer.json()["error"]["message"], (name, answer.text)
    assert peak_of(process.pid) - before < 256 << 20
    assert post(address, {"json_schema": {"enum": ["a"]}}).status_code == 200


def test_what_takes_too_much_memory_is_refused(start: Start) -> None:  # noqa: F811
    process, address = start("--grammar-seconds", "60", "--grammar-memory", str(64 << 20))
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(post, address, ENDLESS[0][1])
        peak = 0
        while not asked.done():
            peak = max([peak, *map(peak_of, children(process.pid))])
            time.sleep(0.05)
    assert asked.result().status_code == 400
    assert "/properties/a/multipleOf: compiling it takes more than 64 MB" in asked.result().text
    assert peak < 256 << 20


def test_a_client_that_goes_away_ends_what_compiles_for_it(start: Start) -> None:  # noqa: F811
    process, address = start()
    post(address, {"json_schema": {"enum": ["a"]}})  # so that a process is there
    with pytest.raises(httpx.ReadTimeout):
        post(address, ENDLESS[1][1], seconds=0.5)
    begun = time.monotonic()
    until(lambda: not children(process.pid))
    assert time.monotonic() - begun < 2.0


def test_compiling_does_not_hold_up_the_end_of_the_server(start: Start) -> None:  # noqa: F811
    process, address = start("--drain-seconds", "0")
    post(address, {"json_schema": {"enum": ["a"]}})
    (child,) = children(process.pid)
    with ThreadPoolExecutor(2) as threads:
        compiling = threads.submit(post, address, ENDLESS[1][1])
        spent = seconds_of(child)
        until(lambda: seconds_of(child) > spent + 0.2)
        begun = time.monotonic()
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=30)
        assert time.monotonic() - begun < 2.0
        assert compiling.result().status_code == 503
    assert process.returncode == 0, log
    assert "Traceback" not in log, log
    until(lambda: not Path(f"/proc/{child}").exists())
