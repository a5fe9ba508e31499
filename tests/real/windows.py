"""A text in windows, and what each engine predicts in the second half of each."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tools.compare import divergence
from tools.compare.accuracy import engine_logits
from tools.compare.texts import read_text

import akunu

# Nobody edits it.
LICENSE = Path(__file__).parents[2] / "LICENSE"
LENGTH = 512


@dataclass(frozen=True, slots=True)
class Windows:
    """Tokens `[n_windows][LENGTH]` and logits `[n_windows, LENGTH / 2, vocab_size]`."""

    tokens: list[list[int]]
    akunu: NDArray[np.float32]
    llama_cpp: NDArray[np.float32]

    def costs(self, logits: NDArray[np.float32]) -> NDArray[np.float64]:
        """Nats for each token of the second halves but its first, which nothing here predicts."""
        found = []
        for tokens, after in zip(self.tokens, logits, strict=True):
            scored = divergence.log_probabilities(after[:-1])
            found.append(-scored[np.arange(len(scored)), tokens[-len(scored) :]])
        return np.concatenate(found)


def read_windows(model: Path, n_windows: int) -> Windows:
    """Both engines with a cache in F16, each in a process of its own."""
    tokenizer = akunu.Tokenizer.from_gguf(model)
    text = read_text(tokenizer, str(LICENSE), length=LENGTH, n_chunks=n_windows)
    ours, theirs = (
        engine_logits(sys.executable, worker, model, text.chunks, kv_type="f16", threads=1)
        for worker in ("akunu_logits", "llama_cpp_logits")
    )
    half = LENGTH // 2
    return Windows(text.chunks, ours[:, half:].copy(), theirs[:, half:].copy())
