"""What the process is limited to: its address space (`ulimit -v`) and its processors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from cli_support import ENVIRONMENT

import akunu
from akunu import _core
from akunu.cli.commands.devices import show_devices

# What is refused while the process may take so many MiB more than it has.
REFUSED = """
import json
import resource
import sys

import akunu

def refused(mebibytes, action):
    with open("/proc/self/statm") as file:
        taken = int(file.read().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (taken + mebibytes * 2**20, before[1]))
    try:
        action()
    except akunu.OutOfMemoryError as error:
        return str(error)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    return "nothing was refused"

with akunu.load("ember", context=8192, threads=1) as model:
    model.generate("Hello", max_tokens=1)
    told = {
        # 8,000 rows of 4,096 float32.
        "logits": refused(100, lambda: model.logits([1] * 8000)),
        "mapping": refused(100, lambda: akunu.load(sys.argv[1], threads=1)),
        # Room for the weights and a thread's heap (64 MiB with glibc), not for 1.2 GiB of cache.
        "context": refused(400, lambda: akunu.load("ember", threads=1, context=200_000)),
    }
    told["rows"] = len(model.logits([1] * 8))  # the model goes on
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the messages say, by what was refused."""
    if not Path("/proc/self/statm").exists():
        pytest.skip("needs Linux's /proc")
    large = tmp_path_factory.mktemp("files") / "large.gguf"
    with open(large, "wb") as file:
        file.truncate(2**30)  # takes no room on the disk
    done = subprocess.run(
        [sys.executable, "-c", REFUSED, large],
        capture_output=True,
        text=True,
        timeout=300,
        env=ENVIRONMENT,
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, str] = json.loads(done.stdout)
    return told


def test_logits_that_do_not_fit_are_refused_before_they_are_computed(
    refused: dict[str, str],
) -> None:
    assert refused["logits"] == (
        "the logits of 8000 tokens need 125.0 MiB; the process may take 100.0 MiB more "
        "(ulimit -v or -d); ask for those of fewer tokens"
    )
    assert refused["rows"] == 8


def test_a_file_that_cannot_be_mapped_says_what_the_process_may_take(
    refused: dict[str, str],
) -> None:
    assert "large.gguf: 1024.0 MiB cannot be mapped: the process may take " in refused["mapping"]
    assert refused["mapping"].endswith(" MiB more (ulimit -v or -d)")


def test_a_context_is_refused_for_what_there_really_is_too_little_of(
    refused: dict[str, str],
) -> None:
    assert "a context of 200000 positions needs " in refused["context"]
    assert "MiB for scratch; the process may take " in refused["context"]
    assert "are available" not in refused["context"]


def test_more_threads_than_processors_are_noted() -> None:
    (usable,) = (device["workers"] for device in _core.devices() if device["backend"] == "cpu")
    with akunu.load("ember", device="cpu", context=256, threads=usable) as model:
        assert not model.notes
    with akunu.load("ember", device="cpu", context=256, threads=usable + 1) as model:
        (note,) = model.notes
    assert note.startswith(f"threads is {usable + 1}, and this process may use {usable} processor")


def test_memory_that_the_system_does_not_tell_is_unknown_and_not_0_bytes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        _core, "devices", lambda: [{"memory_bytes": None, "available_bytes": 2**31}]
    )
    show_devices()
    table = capsys.readouterr().out.split("\n\n")[0]  # without what is said of GPUs that are here
    assert table.split() == ["memory", "unknown", "available", "2.0", "GiB"]
