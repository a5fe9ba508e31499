"""How long a model takes from its file to its first logits, beyond computing them.

    python -m tools.load_time measure MODEL.gguf ... -o load.json
    python -m tools.load_time report load.json --write docs/reference/benchmarks.md

Each run is a process of its own. Its file is read beforehand, so that it lies in the system's page
cache; a run that had to wait for the disk all the same is told by its major page faults and does
not count. What is left of the time to the first logits of one token id, less that of a second
forward pass, is the load: mapping, checking, allocating, touching every page for the first time.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from tools.measured_table import run_tool

BEGIN, END = "<!-- load: begin -->", "<!-- load: end -->"
RUNS = 7

# What a run says, in seconds; `started` is the clock of the process that started it.
_PROGRAM = """
import json, resource, sys, time
import akunu
path, started = sys.argv[1], float(sys.argv[2])
begun = time.perf_counter()
load = akunu.load  # NumPy and others are imported when a name is first used
imported = time.perf_counter()
model = load(path)
loaded = time.perf_counter()
model.logits([1], last=1)
first, at_first_logits = time.perf_counter(), time.time()
faults = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
model.logits([2], last=1)
second = time.perf_counter()
text = time.perf_counter()
model.tokenizer.encode("x")
encoded = time.perf_counter()
from akunu import _core
device = _core.devices()[0]
print(json.dumps({
    "imports": imported - begun, "load": loaded - imported, "first_logits": first - loaded,
    "forward": second - first, "first_text": encoded - text,
    "from_process_start": at_first_logits - started,
    "major_faults": faults, "cpu_info": device["name"], "n_threads": device["workers"],
}))
"""

_HEADER = (
    "| model | file | `load` | first logits | a second forward | beyond it | with imports"
    " | with the start of Python | first text |",
    "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
)


@contextmanager
def in_page_cache(model: Path) -> Iterator[None]:
    """Read the file, and keep the system from dropping it meanwhile where that is allowed."""
    with model.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        while file.read(1 << 24):
            pass
        data = np.frombuffer(mapped, np.uint8)
        ctypes.CDLL(None).mlock(ctypes.c_void_p(data.ctypes.data), ctypes.c_size_t(data.size))
        time.sleep(5)  # what the system does after that much reading
        yield
        del data  # the mapping ends, and with it what was locked


def measured(model: Path) -> dict[str, Any]:
    runs: list[dict[str, Any]] = []
    with in_page_cache(model):
        for _ in range(RUNS):
            command = [sys.executable, "-c", _PROGRAM, str(model), repr(time.time())]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            runs.append(json.loads(done.stdout))
    machine = {key: runs[0][key] for key in ("cpu_info", "n_threads")}
    for run in runs:
        for key in machine:
            del run[key]
    return {
        "model": model.name,
        "bytes": os.path.getsize(model),
        "test_time": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        **machine,
        "runs": runs,
    }


def rows(results: list[dict[str, Any]]) -> list[str]:
    lines = list(_HEADER)
    for result in results:
        warm = [run for run in result["runs"] if run["major_faults"] == 0]
        if not warm:
            raise SystemExit(f"{result['model']}: every run had to wait for the disk")

        def seconds(*keys: str, less: str = "", warm: list[dict[str, Any]] = warm) -> str:
            times = [sum(run[key] for key in keys) - (run[less] if less else 0) for run in warm]
            return f"{median(times):.2f} s"

        cells = [
            result["model"],
            f"{result['bytes'] / 1e9:.2f} GB",
            seconds("load"),
            seconds("first_logits"),
            seconds("forward"),
            seconds("load", "first_logits", less="forward"),
            seconds("imports", "load", "first_logits", less="forward"),
            seconds("from_process_start", less="forward"),
            seconds("first_text"),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    first = results[0]
    lines += [
        "",
        f"{first['cpu_info']}, {first['n_threads']} threads, {first['test_time'][:10]}; medians of "
        f"{RUNS} processes, without those that waited for the disk.",
    ]
    return lines


def main() -> int:
    return run_tool(
        __doc__,
        "load models and keep the times",
        lambda model: [measured(model)],
        rows,
        begin=BEGIN,
        end=END,
    )


if __name__ == "__main__":
    raise SystemExit(main())
