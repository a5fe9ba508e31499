"""What both workers do: read requests from standard input, answer on standard output, as JSON."""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Callable
from typing import Any


def cpu_seconds() -> float:
    """Processor time of this process so far, all threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def serve(hello: dict[str, Any], answer: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Send `hello`, then the answer to each request, until standard input ends.

    To each answer it adds the processor time that it took.
    """
    # What libraries print goes to standard error.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    print(json.dumps(hello), file=out, flush=True)
    for line in sys.stdin:
        before = cpu_seconds()
        answered = answer(json.loads(line))
        print(json.dumps({**answered, "cpu_seconds": cpu_seconds() - before}), file=out, flush=True)
