"""What each token of a chunk costs under an engine's logits, computed where the logits are.

Those of a vocabulary of 262,144 would be half a gigabyte of file for each chunk of 512 tokens.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def costs(logits: Any, tokens: list[int]) -> list[float]:
    """Nats of the tokens that llama.cpp's `perplexity` counts: those in the second half.

    `logits` `[n, vocab_size]` in float32, row i after token i. Exponentials are of float32 and are
    summed in double: the result is right to 1e-6.
    """
    n = len(tokens)
    rows = logits[n // 2 : n - 1]
    following = tokens[n // 2 + 1 :]
    largest = rows.max(axis=1)
    total = np.exp(rows - largest[:, None]).sum(axis=1, dtype=np.float64)
    chosen = rows[np.arange(len(rows)), following].astype(np.float64)
    result: list[float] = (largest + np.log(total) - chosen).tolist()
    return result
