"""akunu in a process of its own: `akunu_worker.py MODEL CONTEXT THREADS`; speaks `protocol`."""

from __future__ import annotations

import sys
import time
from typing import Any

from protocol import serve

import akunu
from akunu import _core


def main(path: str, context: int, threads: int) -> None:
    model = akunu.load(path, context=context, threads=threads)

    def measure(request: dict[str, Any]) -> dict[str, Any]:
        """Time `n` tokens of a kind; `tokens` are the prompt, or what is there before."""
        n = int(request["n"])
        is_prompt = request["kind"] == "pp"
        started = time.perf_counter()
        stream = model.generate(
            request["tokens"], max_tokens=1 if is_prompt else n + 1, stream=True
        )
        for _ in stream:
            pass
        seconds = time.perf_counter() - started
        if not is_prompt:
            # The first token comes with the prompt, the n others from a step each.
            seconds -= stream.prompt_seconds
        return {"seconds": seconds, "complete": stream.finish_reason == "length"}

    device = _core.devices()[0]
    serve(
        {
            "engine": "akunu",
            "version": akunu.__version__,
            "system": f"instruction set level {device['level']}: {device['reason']}",
            "vocab_size": model.config.vocab_size,
        },
        measure,
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
