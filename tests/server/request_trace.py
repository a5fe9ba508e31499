"""What of the package one chat request passes through: its files, functions and calls.

Run as a script, it prints them: `python tests/server/request_trace.py`.
"""

from __future__ import annotations

import json
import sys
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import akunu

ROOT = str(Path(akunu.__file__).parent)
FIVE_WORDS = {
    "messages": [{"role": "user", "content": "What colour is the sky?"}],
    "max_tokens": 8,
    "temperature": 0,
}


class Trace:
    """Counts calls of the package's functions, in all threads."""

    def __init__(self) -> None:
        """Nothing is counted before `is_on`."""
        self.is_on = False
        self.calls: Counter[CodeType] = Counter()

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        """Be what `threading.setprofile` calls; a generator that goes on counts as a call."""
        if self.is_on and event == "call" and frame.f_code.co_filename.startswith(ROOT):
            self.calls[frame.f_code] += 1

    @property
    def files(self) -> Counter[str]:
        """Calls by file, relative to the package."""
        found: Counter[str] = Counter()
        for code, n in self.calls.items():
            found[code.co_filename[len(ROOT) + 1 :]] += n
        return found

    def calls_of(self, name: str) -> int:
        """Return the calls of functions of this name."""
        return sum(n for code, n in self.calls.items() if code.co_name == name)


@contextmanager
def traced() -> Iterator[Trace]:
    """Trace this thread, and those that begin within."""
    trace = Trace()
    threading.setprofile(trace)
    sys.setprofile(trace)
    try:
        yield trace
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]


def chat(address: str, body: object) -> bytes:
    """Return the answer to a chat request."""
    request = urllib.request.Request(
        f"{address}/v1/chat/completions",
        json.dumps(body).encode(),
        {"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        found: bytes = answer.read()
    return found


def trace_of_chat(**more: object) -> Trace:
    """Return the trace of a chat of five words to a server that has answered some already.

    Of three, it is the one with the fewest calls. `more`: other fields of the request.
    """
    from akunu.server import ServedModels, ServerSettings, create_app
    from akunu.server.run import serve_in_thread

    settings = ServerSettings(port=0)
    with traced() as trace:
        app = create_app(settings, ServedModels(["ember"]))
        with serve_in_thread(app, settings) as address:
            for _ in range(3):
                chat(address, {**FIVE_WORDS, **more})
            traces = []
            for _ in range(3):  # what waits on the engine is woken more or less often
                trace.calls.clear()
                trace.is_on = True
                chat(address, {**FIVE_WORDS, **more})
                trace.is_on = False
                traces.append(trace.calls.copy())
    trace.calls = min(traces, key=Counter.total)
    return trace


def main() -> None:
    """Print the calls of the request, by file."""
    trace = trace_of_chat()
    files = trace.files
    print(f"{len(files)} files, {len(trace.calls)} functions, {files.total()} calls")
    for file, n in files.most_common():
        print(f"{n:6} {file}")
        here = {c: n for c, n in trace.calls.items() if c.co_filename == f"{ROOT}/{file}"}
        for code, k in sorted(here.items(), key=lambda each: -each[1]):
            print(f"       {k:6} {code.co_name}:{code.co_firstlineno}")


if __name__ == "__main__":
    main()
