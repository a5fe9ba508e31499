"""llama.cpp's embeddings: `embed_llama_cpp.py FILE LONGEST THREADS`; speaks `protocol`.

Texts are packed into batches of llama.cpp's default size, as its own `llama-embedding` does it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from embedding_requests import serve_embeddings
from llama_cpp_api import PEER, api, load_model, tokenise

BATCH_TOKENS = 512  # n_ubatch of llama.h: an encoder's batch is one pass
BATCH_TEXTS = 64


def packed(texts: list[list[int]]) -> Iterator[list[list[int]]]:
    """Texts, in their order, as many as a batch has room for."""
    batch: list[list[int]] = []
    for text in texts:
        full = len(batch) == BATCH_TEXTS or sum(map(len, batch)) + len(text) > BATCH_TOKENS
        if batch and full:
            yield batch
            batch = []
        batch.append(text)
    if batch:
        yield batch


class Embedder:
    """A context that embeds, with pooling as the file says it."""

    def __init__(self, path: str, threads: int) -> None:
        self._model = load_model(path)
        self._dim = api.llama_model_n_embd(self._model)
        params = api.llama_context_default_params()
        params.n_ctx = params.n_batch = params.n_ubatch = BATCH_TOKENS
        params.n_seq_max = BATCH_TEXTS
        params.n_threads = params.n_threads_batch = threads
        params.embeddings = True
        params.kv_unified = True  # a text may have all of the batch
        self._context = api.llama_init_from_model(self._model, params)
        if not self._context:
            sys.exit("llama.cpp cannot make a context")
        self._batch = api.llama_batch_init(BATCH_TOKENS, 0, 1)

    def embed(self, texts: list[str]) -> Any:
        tokens = [
            tokenise(self._model, text, add_special=True, parse_special=False) for text in texts
        ]
        vectors = np.concatenate([self._run(batch) for batch in packed(tokens)])
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def _run(self, texts: list[list[int]]) -> Any:
        batch, row = self._batch, 0
        for sequence, text in enumerate(texts):
            for position, token in enumerate(text):
                batch.token[row] = token
                batch.pos[row] = position
                batch.n_seq_id[row] = 1
                batch.seq_id[row][0] = sequence
                batch.logits[row] = 1
                row += 1
        batch.n_tokens = row
        if (code := api.llama_encode(self._context, batch)) != 0:
            sys.exit(f"llama_encode returned {code}")
        vectors = [
            np.ctypeslib.as_array(api.llama_get_embeddings_seq(self._context, s), (self._dim,))
            for s in range(len(texts))
        ]
        return np.stack(vectors)


def main(path: str, threads: int) -> None:
    serve_embeddings(PEER, Embedder(path, threads).embed)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[3]))
