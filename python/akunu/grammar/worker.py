"""The process that compiles grammars for `apart.py`, within a budget that the system enforces."""

from __future__ import annotations

import os
import pickle
import resource
import select
import struct
import sys
from typing import Any, BinaryIO, Final

from akunu.grammar.apart import function_of
from akunu.grammar.limits import tell_engine_numbers

_IDLE_SECONDS: Final = 60.0
_MOST_LEFT: Final = 128 << 20
"""Memory that jobs may leave behind before another process takes over."""


def work(seconds: float, n_bytes: int, numbers: tuple[int, int, int]) -> None:
    """Answer jobs from stdin at stdout, until none has come for a minute or nobody asks."""
    tell_engine_numbers(numbers)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    jobs = os.fdopen(os.dup(0), "rb", buffering=0)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing else may be written there
    function_of("schema:compile_schema")({})  # imports what jobs need
    answers.write(b"+")
    answers.flush()
    first = _virtual_bytes()
    while select.select([jobs], [], [], _IDLE_SECONDS)[0]:
        if (head := _read(jobs, 8)) is None:
            return
        job = _read(jobs, *struct.unpack("<Q", head))
        if job is None:
            return
        answer = _answer(job, seconds, n_bytes)
        takes_more = _virtual_bytes() - first < _MOST_LEFT
        written = pickle.dumps((answer, takes_more))
        answers.write(struct.pack("<Q", len(written)) + written)
        answers.flush()
        if not takes_more:
            return


def _answer(job: bytes, seconds: float, n_bytes: int) -> Any:
    _limit(resource.RLIMIT_AS, _virtual_bytes() + n_bytes)
    # Whoever asked kills it in time; this is for when nobody is there any more.
    usage = resource.getrusage(resource.RUSAGE_SELF)
    _limit(resource.RLIMIT_CPU, int(usage.ru_utime + usage.ru_stime + 2 * seconds) + 2)
    try:
        function, source, options = pickle.loads(job)
        return function_of(function)(source, **options)
    except MemoryError:
        return MemoryError()
    except Exception as error:
        return error
    finally:
        _limit(resource.RLIMIT_AS, resource.RLIM_INFINITY)


def _limit(kind: int, most: int) -> None:
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        most = hard if most == resource.RLIM_INFINITY else min(most, hard)
    try:
        resource.setrlimit(kind, (most, hard))
    except (OSError, ValueError):  # macOS knows no limit of memory
        if sys.platform != "darwin":
            raise


def _virtual_bytes() -> int:
    """Return this process's memory as RLIMIT_AS counts it; elsewhere than on Linux the peak."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[0]) * resource.getpagesize()
    except FileNotFoundError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _read(file: BinaryIO, size: int) -> bytes | None:
    found = bytearray()
    while len(found) < size:
        part = file.read(min(size - len(found), 1 << 20))
        if not part:
            return None
        found += part
    return bytes(found)
