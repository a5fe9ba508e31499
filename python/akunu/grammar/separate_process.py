"""Compiling grammars in their own processes, which can be killed: for grammars of strangers.

What llguidance does cannot be interrupted, and its limits do not count all of it. A server
therefore compiles within `compiling_apart`: `from_schema`, `from_regex`, `from_rules` and
`from_choice` then go to a process with a budget of time and memory. Without it they run here.
"""

from __future__ import annotations

import os
import pickle
import select
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib import import_module
from typing import IO, Any, Final

from akunu.errors import ArgumentError, QueueFullError
from akunu.grammar.costs import over_budget
from akunu.grammar.errors import OverBudgetError
from akunu.grammar.grammar import Grammar
from akunu.grammar.limits import engine_numbers

_MOST_KEPT: Final = 256
_MOST_KEPT_BYTES: Final = 1 << 24  # of the sources of the grammars that are kept
_START_SECONDS: Final = 60.0  # a new process imports llguidance
_IDLE_SECONDS: Final = 60.0  # after which a process ends that no one asks


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileBudget:
    """What compiling all grammars of one request may take."""

    seconds: float = 5.0
    n_bytes: int = 512 << 20
    """What compiling may take beyond the memory that the process begins with. A process may keep a
    quarter as much from earlier jobs. Linux enforces this; macOS enforces only the time."""


class Attempt:
    """The compiling of one request: the rest of its budget, and how it is cancelled."""

    def __init__(self) -> None:
        """Begin with the whole budget."""
        self.seconds = 0.0  # spent in the processes
        self.seconds_here = 0.0  # spent here, where the engine compiles again for each text
        self.is_cancelled = False
        self._process: _Process | None = None
        self._lock = threading.Lock()

    def cancel(self) -> None:
        """End it, from any thread: a job under way fails, and so do later ones."""
        with self._lock:
            self.is_cancelled = True
            if self._process is not None:
                self._process.kill()

    def check(self) -> None:
        """Raise where it was cancelled."""
        if self.is_cancelled:
            raise ArgumentError("compiling the grammar was cancelled")

    @contextmanager
    def using(self, process: _Process) -> Iterator[None]:
        """Have `cancel` end this process meanwhile."""
        with self._lock:
            self.check()
            self._process = process
        try:
            yield
        finally:
            with self._lock:
                self._process = None


@dataclass(frozen=True, slots=True)
class _Apart:
    workers: Workers
    attempt: Attempt = field(default_factory=Attempt)


_APART: ContextVar[_Apart | None] = ContextVar("akunu_compiling_apart", default=None)


@contextmanager
def compiling_apart(workers: Workers) -> Iterator[Attempt]:
    """Compile the grammars of this context in these processes meanwhile, under one budget."""
    apart = _Apart(workers)
    token = _APART.set(apart)
    try:
        yield apart.attempt
    finally:
        _APART.reset(token)


def cancel_compiling() -> None:
    """End what compiles for this context; nothing where it compiles here."""
    if (apart := _APART.get()) is not None:
        apart.attempt.cancel()


@contextmanager
def compiling_here() -> Iterator[None]:
    """Count the time that the engine takes to compile a grammar which was compiled apart before.

    That has been seen to fit the budget; what is bounded here is how often it is done again.
    """
    apart = _APART.get()
    if apart is None:
        yield
        return
    attempt, seconds = apart.attempt, apart.workers.budget.seconds
    attempt.check()
    if attempt.seconds_here > seconds:
        raise OverBudgetError(
            f"the grammars of this request's texts take more than {seconds:g} s to compile: "
            "request fewer completions, or make the grammar smaller"
        )
    begun = time.thread_time()
    try:
        yield
    finally:
        attempt.seconds_here += time.thread_time() - begun


def compiled(function: str, source: object, **options: bool) -> Grammar:
    """Return what a function of this package makes of a source ("choice:compile_choice")."""
    apart = _APART.get()
    # Only this process knows a Python type.
    if apart is None or not isinstance(source, (str, dict, list, tuple, bool)):
        return function_of(function)(source, **options)
    return apart.workers.compile(apart.attempt, function, source, options)


def function_of(name: str) -> Callable[..., Grammar]:
    """Return the function of this package that `compiled` names."""
    module, _, attribute = name.partition(":")
    found: Callable[..., Grammar] = getattr(import_module(f"akunu.grammar.{module}"), attribute)
    return found


class Workers:
    """A few processes that compile, begun when they are needed; the grammars they made are kept."""

    def __init__(self, budget: CompileBudget | None = None, *, most: int = 2) -> None:
        """`most`: how many compile at once. A request that finds them busy waits for at most the
        seconds of the budget."""
        self.budget = budget or CompileBudget()
        self._places = threading.BoundedSemaphore(most)
        self._lock = threading.Lock()
        self._idle: list[_Process] = []
        self._busy: set[_Process] = set()
        self._is_closed = False
        self._kept: OrderedDict[bytes, Grammar] = OrderedDict()

    def compile(
        self, attempt: Attempt, function: str, source: object, options: dict[str, bool]
    ) -> Grammar:
        """Return the grammar; raises what the function raises, and OverBudgetError."""
        job = pickle.dumps((function, source, options))
        with self._lock:
            if (found := self._kept.get(job)) is not None:
                self._kept.move_to_end(job)
                return found
        attempt.check()
        left = self.budget.seconds - attempt.seconds
        answer = self._answer(attempt, job, left)
        if isinstance(answer, _Exceeded):
            raise over_budget(function, source, answer.what(self.budget))
        if isinstance(answer, BaseException):
            raise answer
        grammar: Grammar = answer
        with self._lock:
            self._kept[job] = grammar
            n_bytes = sum(map(len, self._kept))
            while len(self._kept) > _MOST_KEPT or n_bytes > _MOST_KEPT_BYTES:
                n_bytes -= len(self._kept.popitem(last=False)[0])
        return grammar

    def _answer(self, attempt: Attempt, job: bytes, seconds: float) -> Any:
        if not self._places.acquire(timeout=self.budget.seconds):
            raise QueueFullError("too many grammars are being compiled; try again later")
        try:
            answer: tuple[Any, bool] | _Exceeded | None = None
            while answer is None:  # again where the process had just ended since it was idle
                process = self._taken()
                try:
                    with attempt.using(process):
                        process.wait_until_ready()
                        begun = time.monotonic()
                        try:
                            answer = process.answer(job, seconds)
                        finally:
                            attempt.seconds += time.monotonic() - begun
                finally:
                    self._give_back(process, is_well=isinstance(answer, tuple) and answer[1])
                attempt.check()
            return answer[0] if isinstance(answer, tuple) else answer
        finally:
            self._places.release()

    def _taken(self) -> _Process:
        with self._lock:
            while self._idle:
                process = self._idle.pop()
                if process.is_alive():
                    self._busy.add(process)
                    return process
                process.close()
        try:
            process = _Process(self.budget)
        except OSError as error:
            raise QueueFullError(
                f"a process that compiles the grammar cannot be started ({error.strerror}); "
                "try again later"
            ) from error
        with self._lock:
            self._busy.add(process)
            if self._is_closed:
                process.kill()
        return process

    def _give_back(self, process: _Process, *, is_well: bool) -> None:
        with self._lock:
            self._busy.discard(process)
            if is_well and not self._is_closed:
                self._idle.append(process)
                return
        process.close()

    def close(self) -> None:
        """End all processes; jobs under way fail."""
        with self._lock:
            self._is_closed = True
            for process in self._busy:
                process.kill()
            while self._idle:
                self._idle.pop().close()


@dataclass(frozen=True, slots=True)
class _Exceeded:
    """Why a process did not answer."""

    reason: str

    def what(self, budget: CompileBudget) -> str:
        """Say what was too much."""
        if self.reason == "time":
            return f"more than {budget.seconds:g} s"
        if self.reason == "memory":
            return f"more than {budget.n_bytes >> 20} MB"
        return "more than the library can hold"


class _Process:
    """One process of `worker.py`: a job in, an answer out, each with its length before it."""

    def __init__(self, budget: CompileBudget) -> None:
        program = (
            f"import sys; sys.path[:] = {sys.path!r}; "
            f"from akunu.grammar.worker import run_jobs; "
            f"run_jobs({budget.seconds!r}, {budget.n_bytes}, {engine_numbers()!r}, "
            f"{_IDLE_SECONDS!r})"
        )
        self._is_ready = False
        self._log = _log_file()
        self._process = subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            bufsize=0,
            start_new_session=True,  # Ctrl-C is for the server, which ends it
        )

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        """End it at once; any thread may."""
        with suppress(ProcessLookupError):
            self._process.kill()

    def close(self) -> None:
        """End it and close its files. Only its owner may do so: another thread may be reading."""
        self.kill()
        self._process.wait()
        for file in (self._process.stdin, self._process.stdout, self._log):
            assert file is not None
            file.close()

    def wait_until_ready(self) -> None:
        """Wait for its first byte. If none comes, the first job fails."""
        assert self._process.stdout is not None
        if not self._is_ready:
            self._is_ready = True
            with suppress(EOFError, OSError):
                _read(self._process.stdout, 1, time.monotonic() + _START_SECONDS)

    def answer(self, job: bytes, seconds: float) -> tuple[Any, bool] | _Exceeded | None:
        """Return the result of a job, and whether the process takes another one.

        None: the process had ended by itself, because it had no job for long.
        """
        output = self._process.stdout
        assert self._process.stdin is not None
        assert output is not None
        try:
            left = memoryview(struct.pack("<Q", len(job)) + job)
            while left:
                left = left[self._process.stdin.write(left) :]
            ends = time.monotonic() + seconds
            (size,) = struct.unpack("<Q", _read(output, 8, ends))
            answer: tuple[Any, bool] = pickle.loads(_read(output, size, ends))
        except TimeoutError:
            return _Exceeded("time")
        except (EOFError, OSError):
            return self._why_it_ended()
        return _Exceeded("memory") if isinstance(answer[0], MemoryError) else answer

    def _why_it_ended(self) -> _Exceeded | None:
        if self._process.wait() == 0:
            return None
        self._log.seek(0)
        is_memory = b"memory allocation" in self._log.read()[-4000:]
        return _Exceeded("memory" if is_memory else "size")


def _log_file() -> IO[bytes]:
    """Return a file for what a process says: without a disk, which may be read-only or full."""
    if sys.platform == "linux":
        return os.fdopen(os.memfd_create("akunu-compiler-log"), "w+b")
    return tempfile.TemporaryFile()


def _read(file: IO[bytes], size: int, ends: float) -> bytes:
    """Read this many bytes; TimeoutError where they are not there in time, EOFError at the end."""
    found = bytearray()
    poll = select.poll()
    poll.register(file, select.POLLIN)
    while len(found) < size:
        left = ends - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            raise TimeoutError
        part = os.read(file.fileno(), min(size - len(found), 1 << 20))
        if not part:
            raise EOFError
        found += part
    return bytes(found)
