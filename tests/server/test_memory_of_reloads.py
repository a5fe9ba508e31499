"""The memory of a server that loads and unloads a model over and over."""

from __future__ import annotations

import gc
import multiprocessing
import re
from pathlib import Path

import pytest
from running_server import running

from akunu.server import ServedModels, ServerSettings

N_BEFORE = 20  # until the allocator's arenas have their size
N_CYCLES = 200


def resident_kib() -> int:
    gc.collect()
    found = re.search(r"VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1])


def reload_often() -> None:
    models = ServedModels.of(ServerSettings(port=0), ["ember"])
    with running(models) as client:

        def cycle(number: int) -> None:
            for path, body in (
                ("models/load", {}),
                ("completions", {"prompt": f"{number}", "max_tokens": 2}),
                ("models/unload", {}),
            ):
                named = {"model": "ember", **body}
                client.post(f"/v1/{path}", json=named).raise_for_status()

        for number in range(N_BEFORE):
            cycle(number)
        before = resident_kib()
        for number in range(N_CYCLES):
            cycle(number)
        after = resident_kib()
    print(f"{before} KiB, then {after} KiB")
    assert after <= 1.02 * before, (before, after)


@pytest.mark.slow
def test_loading_and_unloading_keeps_no_memory() -> None:
    process = multiprocessing.get_context("spawn").Process(target=reload_often)
    process.start()
    process.join(1200)
    process.kill()
    process.join()
    assert process.exitcode == 0
