"""What the workers that embed do: texts in, the time that they took and their vectors out."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from protocol import serve


def serve_embeddings(version: str, embed: Callable[[list[str]], Any]) -> None:
    """Answer requests `{"texts", "vectors"}` with `{"seconds"}` and, where asked for, `vectors`.

    `embed` returns float32 `[n, dim]`, each vector of length 1. Its time includes the tokenizer's:
    it is a user's call.
    """

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        started = time.perf_counter()
        vectors = embed(request["texts"])
        seconds = time.perf_counter() - started
        return {"seconds": seconds, "vectors": vectors.tolist() if request["vectors"] else None}

    serve({"version": version}, answer)
