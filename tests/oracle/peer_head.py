"""What llama.cpp's prediction head says of tokens, in a process of its own; `asked` starts it.

peer_head.py MODEL TOKEN...   JSON on standard output: logits, a row for each token but the last
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

OF_HEAD = 1  # LLAMA_CONTEXT_TYPE_MTP
N = 512


def asked(python: str, model: Path, tokens: list[int]) -> NDArray[np.float32]:
    """Logits of the head, `[len(tokens) - 1, vocab_size]`, in the interpreter `python`."""
    command = [python, __file__, str(model), *map(str, tokens)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    return np.array(json.loads(done.stdout), np.float32)


def main(path: str, tokens: list[int]) -> None:
    sys.path.insert(0, str(Path(__file__).parents[2] / "tools" / "compare" / "workers"))
    import xllamacpp_api as api
    from llama_cpp_api import every_logit

    silent = api.llama_log_callback(lambda level, text, data: None)
    api.llama_log_set(silent, ctypes.c_void_p(0))
    api.llama_backend_init()
    params = api.llama_model_default_params()
    params.n_gpu_layers, params.load_mtp = 0, True
    model = api.llama_model_load_from_file(path.encode(), params)
    assert model, f"llama.cpp cannot load {path}"
    # Of llama-ext.h, whose functions are C++'s.
    keep_hidden = api._function(
        "_Z26llama_set_embeddings_nextnP13llama_contextbb",
        None,
        *(ctypes.c_void_p, ctypes.c_bool, ctypes.c_bool),
    )
    hidden_of = api._function(
        "_Z26llama_get_embeddings_nextnP13llama_context",
        ctypes.POINTER(ctypes.c_float),
        ctypes.c_void_p,
    )

    def context(kind: int = 0, of: Any = None) -> Any:
        params = api.llama_context_default_params()
        params.n_ctx = params.n_batch = params.n_ubatch = N
        params.n_threads = params.n_threads_batch = 1
        params.type_k = params.type_v = api.GGML_TYPE_F32
        params.flash_attn_type = api.LLAMA_FLASH_ATTN_TYPE_DISABLED
        params.ctx_type, params.ctx_other = kind, of
        made = api.llama_init_from_model(model, params)
        assert made, "llama.cpp cannot make a context"
        keep_hidden(made, True, False)
        return made

    n, width = len(tokens) - 1, api.llama_model_n_embd(model)
    vocab_size = api.llama_vocab_n_tokens(api.llama_model_get_vocab(model))
    of_model = context()
    every_logit(of_model, vocab_size, tokens[:-1])
    hidden = np.ctypeslib.as_array(hidden_of(of_model), (n, width)).copy()

    # A batch with both: rows of numbers are allocated, the tokens are ours.
    batch = api.llama_batch_init(n, width, 1)
    behind = (api.llama_token * n)(*tokens[1:])
    batch.token = ctypes.cast(behind, ctypes.POINTER(api.llama_token))
    batch.n_tokens = n
    ctypes.memmove(batch.embd, hidden.ctypes.data, hidden.nbytes)
    for i in range(n):
        batch.pos[i], batch.n_seq_id[i], batch.seq_id[i][0], batch.logits[i] = i, 1, 0, 1
    of_head = context(OF_HEAD, of_model)
    code = api.llama_decode(of_head, batch)
    assert code == 0, f"llama_decode returned {code}"
    logits = np.ctypeslib.as_array(api.llama_get_logits(of_head), (n, vocab_size))
    print(json.dumps(logits.tolist()))


if __name__ == "__main__":
    main(sys.argv[1], [int(each) for each in sys.argv[2:]])
