"""Runs under an interpreter that has llama-cpp-python; test_peer.py starts it.

peer.py logits MODEL        JSON on standard output: the tokens of a text, and logits
peer.py quantise IN OUT N   writes IN as OUT in the recipe with llama.cpp's number N
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


def quantise(source: str, target: str, recipe: str) -> None:
    options = llama_cpp.llama_model_quantize_default_params()
    options.ftype = int(recipe)
    options.nthread = 1
    code = llama_cpp.llama_model_quantize(source.encode(), target.encode(), options)
    if code != 0:
        sys.exit(f"llama_model_quantize returned {code}")


{"logits": logits, "quantise": quantise}[sys.argv[1]](*sys.argv[2:])
