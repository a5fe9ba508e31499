"""An engine in a process of its own, which stays loaded between measurements."""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

WORKERS = Path(__file__).parent / "workers"


class EngineProcess:
    """A worker with a loaded model.

    Raises RuntimeError, with what the worker last wrote, where it ends instead of answering.
    """

    def __init__(
        self, python: str, worker: str, model: Path, *, context: int, threads: int
    ) -> None:
        self._errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115, `close` does
        try:
            self._process = subprocess.Popen(
                [python, WORKERS / f"{worker}.py", model, str(context), str(threads)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                text=True,
            )
        except OSError:
            self._errors.close()
            raise
        try:
            self.hello = self._answer()
        except BaseException:
            self.close()
            raise

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended; reading its answer says so
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if line:
            return dict(json.loads(line))
        self._process.wait()
        self._errors.seek(0)
        last = self._errors.read().strip().splitlines()[-3:]
        raise RuntimeError("\n".join(last) or f"it ended with code {self._process.returncode}")

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # of a request that it did not read any more
            self._process.stdin.close()
        self._process.stdout.close()
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()

    def __enter__(self) -> EngineProcess:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
