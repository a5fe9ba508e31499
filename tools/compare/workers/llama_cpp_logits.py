"""llama.cpp's logits, in a process of its own: `llama_cpp_logits.py MODEL CONTEXT THREADS`.

Speaks `protocol`: {"chunks": lists of tokens, "kv_type": "f16" or "f32", "output": a path} writes
the logits, float32 [n_chunks, n, vocab_size], each chunk with an empty cache and as one batch that
asks for the logits of every token. All else has llama.cpp's defaults, but for flash attention where
the cache has F32.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from llama_cpp_api import api, load_model
from protocol import serve

KV_TYPES = {"f16": api.GGML_TYPE_F16, "f32": api.GGML_TYPE_F32}


def main(path: str, context: int, threads: int) -> None:
    model = load_model(path)
    vocab_size = api.llama_vocab_n_tokens(api.llama_model_get_vocab(model))

    def logits_of(running: Any, chunk: list[int]) -> Any:
        n = len(chunk)
        api.llama_memory_clear(api.llama_get_memory(running), True)
        batch = api.llama_batch_init(n, 0, 1)
        batch.n_tokens = n
        for i, token in enumerate(chunk):
            batch.token[i] = token
            batch.pos[i] = i
            batch.n_seq_id[i] = 1
            batch.seq_id[i][0] = 0
            batch.logits[i] = 1
        code = api.llama_decode(running, batch)
        api.llama_batch_free(batch)
        if code != 0:
            sys.exit(f"llama_decode returned {code}")
        found = np.ctypeslib.as_array(api.llama_get_logits(running), (n, vocab_size))
        return found.copy()

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        params = api.llama_context_default_params()
        params.n_ctx = params.n_batch = params.n_ubatch = context
        params.n_threads = params.n_threads_batch = threads
        params.type_k = params.type_v = KV_TYPES[request["kv_type"]]
        if request["kv_type"] == "f32":
            # Flash attention rounds keys and values to F16 even where the cache has F32.
            params.flash_attn_type = api.LLAMA_FLASH_ATTN_TYPE_DISABLED
        running = api.llama_init_from_model(model, params)
        if not running:
            sys.exit("llama.cpp cannot make a context")
        np.save(
            request["output"], np.stack([logits_of(running, chunk) for chunk in request["chunks"]])
        )
        api.llama_free(running)
        return {}

    serve({"engine": "llama.cpp", "version": f"llama-cpp-python {api.__version__}"}, answer)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
