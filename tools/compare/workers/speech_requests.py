"""What the workers that hear do: a file in, its text and the time that it took out."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from protocol import serve

HEARD = Callable[[str], str]


def serve_speech(version: str, modes: dict[str, HEARD]) -> None:
    """Answer requests `{"mode", "path"}` with `{"seconds", "text"}`; `path`: a WAV at 16 kHz.

    Reading the file, and detecting where there is speech, is in the time: it is a user's call.
    """

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        started = time.perf_counter()
        text = modes[request["mode"]](request["path"])
        return {"seconds": time.perf_counter() - started, "text": text}

    serve({"version": version, "modes": list(modes)}, answer)
