"""llama.cpp's logits, in a process of its own: `llama_cpp_logits.py MODEL CONTEXT THREADS`.

Speaks `protocol`: {"chunks": lists of tokens, "kv_type": "f16" or "f32", "output": a path} writes
the logits, float32 [n_chunks, n, vocab_size], each chunk with an empty cache and as one batch that
asks for the logits of every token. Without "output", the answer has "costs", of each chunk those of
`costs.costs`. All else has llama.cpp's defaults, but for flash attention where
the cache has F32.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from costs import costs
from llama_cpp_api import PEER, api, every_logit, load_model, new_context
from protocol import serve


def main(path: str, context: int, threads: int) -> None:
    model = load_model(path)
    vocab_size = api.llama_vocab_n_tokens(api.llama_model_get_vocab(model))

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        running = new_context(model, context, kv_type=request["kv_type"], threads=threads)
        logits = (every_logit(running, vocab_size, chunk) for chunk in request["chunks"])
        found: dict[str, Any] = {}
        if "output" in request:
            np.save(request["output"], np.stack(list(logits)))
        else:
            pairs = zip(logits, request["chunks"], strict=True)
            found["costs"] = [costs(after, chunk) for after, chunk in pairs]
        api.llama_free(running)
        return found

    serve({"engine": "llama.cpp", "version": PEER}, answer)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
