"""The process that compiles grammars for `separate_process.py`, within a budget that holds."""

from __future__ import annotations

import os
import pickle
import resource
import select
import struct
import sys
from typing import Any, BinaryIO, Final

from akunu.grammar.limits import tell_engine_numbers
from akunu.grammar.separate_process import function_of

_MAXRSS_UNIT: Final = 1 if sys.platform == "darwin" else 1024


def run_jobs(seconds: float, n_bytes: int, numbers: tuple[int, int, int], idle: float) -> None:
    """Answer jobs from stdin at stdout, until none has come for `idle` seconds or no one asks."""
    tell_engine_numbers(numbers)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    jobs = os.fdopen(os.dup(0), "rb", buffering=0)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing else may be written there
    function_of("schema.compile:compile_schema")({})  # imports what jobs need
    answers.write(b"+")  # ready
    answers.flush()
    most_left = n_bytes // 4  # memory that jobs may leave in use; then this process ends
    if virtual := _virtual_bytes():
        _limit(resource.RLIMIT_AS, virtual + n_bytes + most_left)
    first = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    while select.select([jobs], [], [], idle)[0]:
        if (head := _read(jobs, 8)) is None:
            return
        job = _read(jobs, *struct.unpack("<Q", head))
        if job is None:
            return
        answer = _answer(job, seconds)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - first) * _MAXRSS_UNIT
        takes_more = grown < most_left
        written = pickle.dumps((answer, takes_more))
        answers.write(struct.pack("<Q", len(written)) + written)
        answers.flush()
        if not takes_more:
            return


def _answer(job: bytes, seconds: float) -> Any:
    # The parent process kills it in time; this is for when no one is there any more.
    usage = resource.getrusage(resource.RUSAGE_SELF)
    _limit(resource.RLIMIT_CPU, int(usage.ru_utime + usage.ru_stime + 2 * seconds) + 2)
    try:
        function, source, options = pickle.loads(job)
        return function_of(function)(source, **options)
    except MemoryError:
        return MemoryError()
    except Exception as error:
        return error


def _limit(kind: int, most: int) -> None:
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(kind, (most, hard))


def _virtual_bytes() -> int:
    """Return this process's memory as RLIMIT_AS counts it; 0 elsewhere than on Linux."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[0]) * resource.getpagesize()
    except FileNotFoundError:
        return 0


def _read(file: BinaryIO, size: int) -> bytes | None:
    found = bytearray()
    while len(found) < size:
        part = file.read(min(size - len(found), 1 << 20))
        if not part:
            return None
        found += part
    return bytes(found)
