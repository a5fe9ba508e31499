"""Runs under an interpreter that has llama-cpp-python; test_synthetic_peer.py starts it.

peer.py MODEL   JSON on standard output: the tokens of a text, and logits
"""

from __future__ import annotations

import json
import sys

import llama_cpp
import numpy as np

TEXT = "The sea is 12 miles away, não?\n"


def logits(path: str) -> None:
    model = llama_cpp.Llama(path, n_ctx=64, n_threads=1, logits_all=True, verbose=False)
    tokens = model.tokenize(TEXT.encode(), add_bos=False)
    model.eval(tokens)
    values = np.array(model.scores[: len(tokens)])
    text = model.detokenize(tokens).decode()
    print(json.dumps({"tokens": tokens, "text": text, "logits": values.tolist()}))


if __name__ == "__main__":
    logits(sys.argv[1])
