"""akunu's logits, in a process of its own: `akunu_logits.py MODEL CONTEXT THREADS`.

Speaks `protocol`: {"chunks": lists of tokens, "kv_type": "f16" or "f32", "output": a path} writes
the logits, float32 [n_chunks, n, vocab_size], each chunk with an empty cache. Without "output", the
answer has "costs", of each chunk those of `costs.costs`.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from costs import costs
from protocol import serve

import akunu


def main(path: str, context: int, threads: int) -> None:
    def answer(request: dict[str, Any]) -> dict[str, Any]:
        with akunu.load(
            path, context=context, threads=threads, kv_type=request["kv_type"]
        ) as model:
            if "output" not in request:
                return {"costs": [costs(model.logits(c), c) for c in request["chunks"]]}
            logits = [model.logits(chunk) for chunk in request["chunks"]]
        np.save(request["output"], np.stack(logits))
        return {}

    with akunu.load(path, context=context, threads=threads):
        pass  # a model that is refused is refused at once
    serve({"engine": "akunu", "version": akunu.__version__}, answer)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
