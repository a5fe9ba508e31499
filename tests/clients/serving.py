"""`akunu serve` as a process on loopback, for clients that others wrote."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def serving(work: Path, *arguments: str, **environment: str) -> Iterator[str]:
    """The address of a server, without /v1, which is ended afterwards.

    `arguments`: of `akunu serve`; without a model it is the packaged one. The port is any that is
    free. `environment`: variables; AKUNU_PYTHON is the Python that has akunu, where the one that
    runs this has not. Raises AssertionError where it does not start, does not end when
    it is told to, or failed at anything (a traceback in its log, `work/server.log`).

        with serving(work, "gpt-4o=ember", "--context", "4096") as address: ...
    """
    log = work / "server.log"
    with log.open("w", encoding="utf-8") as sink:
        process = subprocess.Popen(
            [os.environ.get("AKUNU_PYTHON", sys.executable), "-m", "akunu", "serve", *arguments],
            stderr=sink,
            cwd=work,
            env={
                **os.environ,
                "AKUNU_SERVE_PORT": "0",
                "XDG_STATE_HOME": str(work / "state"),
                **environment,
            },
        )
    try:
        yield _address(process, log)
    finally:
        process.terminate()
        try:
            code = process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"akunu serve did not end: {_text(log)}") from None
    assert code == 0, f"akunu serve ended with {code}: {_text(log)}"
    assert "Traceback" not in _text(log), _text(log)


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    while process.poll() is None:
        if found := re.search(r"akunu: serving .* at (\S+)/v1\n", _text(log)):
            return found[1]
        time.sleep(0.05)
    raise AssertionError(f"akunu serve ended with {process.returncode}: {_text(log)}")


def _text(log: Path) -> str:
    return log.read_text(encoding="utf-8")
