"""llama.cpp in a process of its own: `llama_cpp_worker.py MODEL CONTEXT THREADS`.

Speaks `protocol`. Times what `llama-bench` times, through the same functions of llama.cpp's C API,
with llama-bench's defaults: batches of up to 512 tokens with logits for the last, or single tokens;
F16 keys and values; flash attention "auto"; repacked weights; memory-mapped files; no sampling.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from llama_cpp_api import PEER, api, load_model
from protocol import serve

BATCH = 512


def main(path: str, context: int, threads: int) -> None:
    model = load_model(path)
    params = api.llama_context_default_params()
    params.n_ctx = context
    params.n_batch = params.n_ubatch = BATCH
    params.n_threads = params.n_threads_batch = threads
    params.type_k = params.type_v = api.GGML_TYPE_F16
    params.flash_attn_type = api.LLAMA_FLASH_ATTN_TYPE_AUTO
    running = api.llama_init_from_model(model, params)
    if not running:
        sys.exit("llama.cpp cannot make a context")
    vocab_size = api.llama_vocab_n_tokens(api.llama_model_get_vocab(model))

    def decode(tokens: list[int]) -> None:
        array = (api.llama_token * len(tokens))(*tokens)
        code = api.llama_decode(running, api.llama_batch_get_one(array, len(tokens)))
        if code != 0:
            sys.exit(f"llama_decode returned {code}")

    def prefill(tokens: list[int]) -> None:
        for first in range(0, len(tokens), BATCH):
            decode(tokens[first : first + BATCH])
        api.llama_synchronize(running)

    def measure(request: dict[str, Any]) -> dict[str, Any]:
        """Time `n` tokens of a kind; `tokens` are the prompt, or what is there before."""
        api.llama_memory_clear(api.llama_get_memory(running), False)
        tokens = request["tokens"]
        if request["kind"] == "pp":
            started = time.perf_counter()
            prefill(tokens)
        else:
            prefill(tokens)
            started = time.perf_counter()
            for i in range(int(request["n"])):
                # Any token will do: what it is does not change what is computed.
                decode([(tokens[-1] + 7919 * (i + 1)) % vocab_size])
                api.llama_synchronize(running)
        return {"seconds": time.perf_counter() - started, "complete": True}

    system = (api.llama_print_system_info() or b"").decode()
    serve(
        {
            "engine": "llama.cpp",
            "version": PEER,
            "system": system.strip(" |\n"),
            "vocab_size": vocab_size,
        },
        measure,
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
