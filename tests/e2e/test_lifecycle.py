"""Forks, threads, interrupts and exits: who frees what, and what goes on."""

from __future__ import annotations

import gc
import itertools
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cli_support import ENVIRONMENT

import akunu
from akunu import _core
from akunu.hub.packaged_models import PACKAGED_MODELS
from akunu.storage.native_load import begin_load

# So hot that the next token is nearly any: such a text goes on until the context is full.
LONG: dict[str, Any] = {"temperature": 50, "seed": 3}

PREAMBLE = """
import os, sys, threading, time
import akunu
LONG = {"temperature": 50, "seed": 3}
model = akunu.load(context=256)
"""


def run_program(program: str, tmp_path: Path, timeout: float = 60) -> str:
    """The output of a program that must end by itself, without a word on stderr."""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "ignore::DeprecationWarning", "-c", PREAMBLE + program],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=ENVIRONMENT,
        timeout=timeout,
    )
    assert done.stderr == ""
    assert done.returncode == 0
    return done.stdout


def wait_for_end(generation: Any) -> str:
    deadline = time.monotonic() + 10
    while generation.next(50) is not None:
        assert time.monotonic() < deadline
    return str(generation.finish_reason)


# --- fork ----------------------------------------------------------------------------------------

CHILD = """
stream = model.generate("The", **LONG, stream=True) if {running} else None
if stream: next(stream)
expected = model.generate("Hello", max_tokens=3)
pid = os.fork()
if pid == 0:
    {child}
    {leave}
_, status = os.waitpid(pid, 0)
assert status == 0, status
assert model.generate("Hello", max_tokens=3) == expected
if stream:
    assert "".join(stream)
    assert stream.finish_reason == "length"
print("parent goes on")
"""

USES = {
    "nothing": "pass",
    "close": "model.close(); stream and stream.close()",
    "drop": "del model, stream",
    "every method": """
    uses = [
        lambda: model.generate("Hello"), lambda: model.logits([1]), lambda: model.memory,
        lambda: model.chat([{{"role": "user", "content": "Hi"}}], stream=True),
    ]
    if stream: uses += [lambda: next(stream), lambda: stream.prompt_seconds]
    for use in uses:
        try:
            use()
        except akunu.DeviceError as error:
            assert "fork" in str(error)
        else:
            os._exit(3)
    assert model.tokenizer.decode(model.tokenizer.encode("x")) == "x"
    """,
    "a model of its own": """
    with akunu.load(context=256) as own:
        assert own.generate("Hello", max_tokens=3) == expected
    """,
}


@pytest.mark.parametrize("use", USES)
def test_a_model_works_in_the_parent_of_a_fork_only(tmp_path: Path, use: str) -> None:
    """One process has the four forks; its output says which of them went wrong."""
    program, expected = "", ""
    for running, leave in itertools.product([False, True], ["sys.exit(0)", "os._exit(0)"]):
        case = f"{'running' if running else 'idle'}, {leave}"
        child = USES[use].replace("{{", "{").replace("}}", "}")
        forked = CHILD.format(running=running, leave=leave, child="{child}")
        program += f"print({case!r}, flush=True)\n" + forked.replace("{child}", child)
        expected += f"{case}\nparent goes on\n"
    assert run_program(program, tmp_path) == expected


def test_processes_of_multiprocessing_come_and_go_beside_a_model(tmp_path: Path) -> None:
    program = """
import multiprocessing
context = multiprocessing.get_context("fork")
def work(n):
    try:
        model.generate("Hello")
    except akunu.DeviceError:
        return n
model.generate("Hello", max_tokens=3)
with context.Pool(2) as pool:
    print(pool.map(work, range(4)))
process = context.Process(target=work, args=(1,))
process.start()
process.join(20)
print(process.exitcode)
"""
    assert run_program(program, tmp_path) == "[0, 1, 2, 3]\n0\n"


# --- the end of the process ----------------------------------------------------------------------

EXITS = {
    "a stream that nobody takes": "stream = model.generate('The', **LONG, stream=True)",
    "a stream half taken": "stream = model.generate('The', **LONG, stream=True); next(stream)",
    "a stream without its model": """
stream = model.generate('The', **LONG, stream=True)
del model
next(stream)""",
    "a daemon thread that takes": """
def take():
    while True:
        for piece in model.generate('The', **LONG, stream=True): pass
threading.Thread(target=take, daemon=True).start()
time.sleep(0.3)""",
    "a daemon thread that waits": """
def take():
    while True: model.generate('The', **LONG)
for _ in range(3): threading.Thread(target=take, daemon=True).start()
time.sleep(0.3)""",
    "a daemon thread with logits": """
def take():
    while True: model.logits(range(250))
threading.Thread(target=take, daemon=True).start()
time.sleep(0.3)""",
    "a thread that is waited for": """
def take(): print(model.generate('The', **LONG, max_tokens=100).completion_tokens)
threading.Thread(target=take).start()""",
    "an exception": """
stream = model.generate('The', **LONG, stream=True)
try:
    for piece in stream: raise KeyError(piece)
except KeyError: pass""",
    "a load": "threading.Thread(target=akunu.load, daemon=True).start()",
    "a load under way": """
threading.Thread(target=akunu.load, daemon=True).start()
time.sleep(0.002)""",
}


@pytest.mark.parametrize("what", EXITS)
def test_a_process_ends_in_the_middle_of(tmp_path: Path, what: str) -> None:
    output = run_program(EXITS[what], tmp_path)
    assert output == ("100\n" if "waited" in what else "")


# --- streams that nobody takes any more ----------------------------------------------------------


def test_an_exception_in_the_loop_ends_the_generation(ember: akunu.Model) -> None:
    stream = ember.generate("The", **LONG, stream=True)

    def take() -> None:
        with stream:
            for _ in stream:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        take()
    assert stream.finish_reason == stream.completion.finish_reason == "cancelled"
    assert wait_for_end(stream._decoder.generation) == "cancelled"


def test_a_thread_that_dies_takes_its_stream_along(ember: akunu.Model) -> None:
    generations = []

    def take_one() -> None:
        stream = ember.generate("The", **LONG, stream=True)
        next(stream)
        generations.append(stream._decoder.generation)

    thread = threading.Thread(target=take_one)
    thread.start()
    thread.join()
    gc.collect()
    assert wait_for_end(generations[0]) == "cancelled"


def test_abandoned_streams_leave_room_for_others(ember: akunu.Model) -> None:
    expected = ember.generate("Hello", max_tokens=5)
    for turn in range(30):  # more than there are places
        stream = ember.generate("The", **LONG, stream=True)
        if turn % 3 == 0:
            next(stream)
        elif turn % 3 == 1:
            stream.close()
        del stream
    assert ember.generate("Hello", max_tokens=5) == expected


def test_another_thread_may_close_a_stream(ember: akunu.Model) -> None:
    for delay in (0.0, 0.01, 0.1):
        stream = ember.generate("The", **LONG, stream=True)
        closer = threading.Timer(delay, stream.close)
        closer.start()
        text = "".join(stream)
        closer.join()
        assert stream.completion == text
        assert stream.finish_reason in ("cancelled", "length")


# --- waiting -------------------------------------------------------------------------------------


def test_one_thread_waits_for_many_generations_at_a_file_descriptor(ember: akunu.Model) -> None:
    expected = ember.generate("The", **LONG, max_tokens=20)
    streams = [ember.generate("The", **LONG, max_tokens=20, stream=True) for _ in range(5)]
    generations = [stream._decoder.generation for stream in streams]
    waker = _core.Waker()
    for index, generation in enumerate(generations):
        generation.wake(waker, index)
    taken: dict[int, list[int]] = {index: [] for index in range(5)}
    done = []
    while taken:
        assert select.select([waker.fileno()], [], [], 60)[0]
        told = waker.take()
        assert len(told) == len(set(told))
        for index in told:
            while new := generations[index].next(timeout_ms=0):
                taken[index].extend(new)
            if new is None:
                generations[index].wake(None)  # and its id does not come again
                done.append(taken.pop(index))
    assert done == [list(expected.token_ids)] * 5
    assert waker.take() == []
    assert not select.select([waker.fileno()], [], [], 0)[0]


# --- Ctrl-C --------------------------------------------------------------------------------------


@contextmanager
def ctrl_c_after(seconds: float) -> Iterator[Callable[[], float]]:
    """Press Ctrl-C once; the value says how long ago that was."""
    pressed = 0.0

    def press() -> None:
        nonlocal pressed
        pressed = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)

    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(seconds, press)
    timer.start()
    try:
        yield lambda: time.monotonic() - pressed
    finally:
        timer.join()
        signal.signal(signal.SIGINT, previous)


@pytest.mark.parametrize("kind", ["generate", "stream", "logits"])
def test_ctrl_c_ends_a_long_prompt(kind: str) -> None:
    with akunu.load(threads=1, prefix_cache=False) as model:
        tokens = [token % model.tokenizer.vocab_size for token in range(model.context)]
        expected = model.generate("Hello", max_tokens=5)
        uses: dict[str, Callable[[], object]] = {
            "generate": lambda: model.generate(tokens, max_tokens=1),
            "stream": lambda: list(model.generate(tokens, max_tokens=1, stream=True)),
            "logits": lambda: model.logits(tokens),
        }

        def use_without_end() -> None:
            while True:
                uses[kind]()

        with ctrl_c_after(0.3) as seconds_ago, pytest.raises(KeyboardInterrupt):
            use_without_end()
        assert seconds_ago() < 2.0
        assert model.generate("Hello", max_tokens=5) == expected


# --- several models ------------------------------------------------------------------------------


def test_two_models_work_side_by_side() -> None:
    with akunu.load() as first:
        expected = first.generate("The sea", **LONG, max_tokens=100)
        stream = first.generate("The sea", **LONG, max_tokens=100, stream=True)
        with akunu.load(context=300, threads=1, kv_type="f32") as second:
            other = second.generate("Once", max_tokens=20)
            streams = [first.generate("The sea", **LONG, max_tokens=100, stream=True), stream]
            assert second.generate("Once", max_tokens=20) == other
        for each in streams:  # the second is closed
            assert "".join(each) == expected


def test_models_with_the_same_device_share_its_threads() -> None:
    with akunu.load(threads=2) as first:
        expected = first.generate("The sea", **LONG, max_tokens=60)
        alone = dict(first.memory)
        before = len(os.listdir("/proc/self/task")) if Path("/proc/self/task").is_dir() else None
        stream = first.generate("The sea", **LONG, max_tokens=60, stream=True)
        next(stream)
        with akunu.load(threads=2) as second:
            assert second.generate("The sea", **LONG, max_tokens=60) == expected
            assert dict(second.memory) == dict(first.memory) == alone
            if before is not None:  # one that submits, and none that computes
                assert len(os.listdir("/proc/self/task")) == before + 1
        list(stream)
        assert stream.completion == expected
        assert first.generate("The sea", **LONG, max_tokens=60) == expected


# --- threads of the engine -----------------------------------------------------------------------


@pytest.fixture
def n_threads() -> Callable[[], int]:
    tasks = Path("/proc/self/task")
    if not tasks.is_dir():
        pytest.skip("no /proc to count threads in")
    return lambda: len(os.listdir(tasks))


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_model_that_nobody_has_any_more_ends_its_threads(n_threads: Callable[[], int]) -> None:
    before = n_threads()
    model = akunu.load(threads=3)
    stream = model.generate("The", **LONG, stream=True)
    next(stream)
    assert n_threads() >= before + 3
    del model
    next(stream)  # it keeps what it needs
    del stream
    gc.collect()
    assert n_threads() == before


def test_a_failed_load_leaves_no_thread(tmp_path: Path, n_threads: Callable[[], int]) -> None:
    before = n_threads()
    path = tmp_path / "bad.gguf"
    path.write_bytes(b"GGUF" + bytes(100))
    for _ in range(3):
        with pytest.raises(akunu.AkunuError):
            akunu.load(path)
    wait_until(lambda: n_threads() == before)


@pytest.mark.parametrize("wait_first", [False, True], ids=["while loading", "when loaded"])
def test_a_load_that_nobody_waits_for_frees_its_model(
    wait_first: bool, n_threads: Callable[[], int]
) -> None:
    before = n_threads()
    loading = begin_load(PACKAGED_MODELS["ember"], akunu.LoadOptions(device="cpu", threads=3))
    if wait_first:
        wait_until(lambda: n_threads() >= before + 3)
    loading.abandon()
    wait_until(lambda: n_threads() == before)
    with pytest.raises(akunu.AkunuError, match="abandoned"):
        loading.result()
