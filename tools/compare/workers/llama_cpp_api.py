"""llama.cpp's C API for the workers, and what they do with it, without a word on stderr.

Of llama-cpp-python where that is installed (it has been built for this machine), or of the wheel
xllamacpp, which is enough for what does not measure time.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from typing import Any

try:
    import llama_cpp as api
except ImportError as error:
    try:
        import xllamacpp_api as api
    except ImportError as other:
        sys.exit(
            f"{sys.executable} has no llama-cpp-python ({error}) and no xllamacpp that fits "
            f"({other}); see docs/reference/benchmarks.md"
        )

__all__ = ["PEER", "api", "every_logit", "load_model", "new_context", "tokenise"]

PEER = f"{'xllamacpp' if api.__name__ == 'xllamacpp_api' else 'llama-cpp-python'} {api.__version__}"

_silent = api.llama_log_callback(lambda level, text, data: None)  # llama.cpp keeps the pointer


def load_model(path: str) -> Any:
    """The model of a GGUF file, on the CPU; ends the process where llama.cpp cannot load it."""
    api.llama_log_set(_silent, ctypes.c_void_p(0))
    api.llama_backend_init()
    params = api.llama_model_default_params()
    params.n_gpu_layers = 0
    model = api.llama_model_load_from_file(path.encode(), params)
    if not model:
        sys.exit(f"llama.cpp cannot load {path}")
    return model


def new_context(model: Any, n: int, *, kv_type: str, threads: int) -> Any:
    """A context for one batch of up to `n` tokens, with a cache in "f16", "f32", "q8_0" or "q4_0".

    All else has llama.cpp's defaults, but for flash attention where the cache has F32.
    """
    params = api.llama_context_default_params()
    params.n_ctx = params.n_batch = params.n_ubatch = n
    params.n_threads = params.n_threads_batch = threads
    params.type_k = params.type_v = getattr(api, f"GGML_TYPE_{kv_type.upper()}")
    if kv_type == "q4_0":
        params.type_k = api.GGML_TYPE_Q8_0  # as akunu's "q4_0" has it
    if kv_type == "f32":
        # Flash attention rounds keys and values to F16 even where the cache has F32.
        params.flash_attn_type = api.LLAMA_FLASH_ATTN_TYPE_DISABLED
    context = api.llama_init_from_model(model, params)
    if not context:
        sys.exit("llama.cpp cannot make a context")
    return context


def every_logit(context: Any, vocab_size: int, tokens: Sequence[int]) -> Any:
    """Logits, float32 `[n, vocab_size]`, of one batch, from an empty cache."""
    import numpy as np  # here: an interpreter without anything is told that it lacks llama.cpp

    n = len(tokens)
    api.llama_memory_clear(api.llama_get_memory(context), True)
    batch = api.llama_batch_init(n, 0, 1)
    batch.n_tokens = n
    for i, token in enumerate(tokens):
        batch.token[i] = token
        batch.pos[i] = i
        batch.n_seq_id[i] = 1
        batch.seq_id[i][0] = 0
        batch.logits[i] = 1
    code = api.llama_decode(context, batch)
    api.llama_batch_free(batch)
    if code != 0:
        sys.exit(f"llama_decode returned {code}")
    found = np.ctypeslib.as_array(api.llama_get_logits(context), (n, vocab_size))
    return found.copy()


def tokenise(model: Any, text: str, *, add_special: bool, parse_special: bool) -> list[int]:
    """The text's tokens."""
    encoded = text.encode()
    room = len(encoded) + 8  # no token is empty; what is added at the ends
    tokens = (api.llama_token * room)()
    vocabulary = api.llama_model_get_vocab(model)
    n = api.llama_tokenize(
        vocabulary, encoded, len(encoded), tokens, room, add_special, parse_special
    )
    if n < 0:
        sys.exit(f"llama_tokenize returned {n} for {len(encoded)} bytes")
    return list(tokens[:n])
