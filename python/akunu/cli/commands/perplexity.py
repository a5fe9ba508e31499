"""`akunu perplexity`: how well a model predicts a text, by llama.cpp's definition."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from akunu.cli.loading import load_model
from akunu.cli.terminal import console
from akunu.cli.terminal.progress import Progress
from akunu.cli.text_input import text_of
from akunu.errors import ArgumentError
from akunu.model import Model
from akunu.options.text_options import LoadOptions

_LEAST_CONTEXT = 8
_ROWS_AT_ONCE = 16  # of logits, so that a large vocabulary takes little memory


@dataclass(frozen=True, slots=True)
class Perplexity:
    """exp of the mean of -log p over all scored tokens, and the error of that estimate."""

    perplexity: float
    error: float
    """Standard error; 0 where there are fewer than two tokens."""
    scored_tokens: int
    chunks: int


def show_perplexity(
    model_name: str, path: Path | None, load: LoadOptions, *, chunks: int | None, as_json: bool
) -> int:
    """Write the perplexity of a file, or of standard input, to stdout."""
    n_context = load.context or 0
    if n_context < _LEAST_CONTEXT:
        raise console.UsageError(f"--context is {n_context}; it must be {_LEAST_CONTEXT} or more")
    if chunks is not None and chunks < 1:
        raise console.UsageError(f"--chunks is {chunks}; it must be 1 or more")
    text = text_of(None, path, command="perplexity", options="--file").removesuffix("\n")
    with load_model(model_name, load) as model:
        tokens = np.array(model.tokenizer.encode(text), dtype=np.int64)
        result = perplexity(model, tokens, n_context, chunks)
    if as_json:
        json.dump(
            {
                "model": str(model.path),
                "file": None if path is None else str(path),
                "context": n_context,
                "tokens": len(tokens),
                "chunks": result.chunks,
                "scored_tokens": result.scored_tokens,
                "perplexity": result.perplexity,
                "error": result.error,
            },
            sys.stdout,
            ensure_ascii=False,
            indent=2,
        )
        print()
    else:
        print(
            f"perplexity {result.perplexity:.4f} {console.plus_minus()} {result.error:.5f}  "
            f"({result.chunks} chunks of {n_context} tokens, {result.scored_tokens} tokens scored)"
        )
    return 0


def perplexity(
    model: Model, tokens: NDArray[np.int64], n_context: int, most_chunks: int | None = None
) -> Perplexity:
    """Return the perplexity of a tokenised text as llama.cpp computes it.

    The text is cut into chunks of `n_context` tokens, what is left over is dropped. The first token
    of each chunk is replaced by BOS where the model wants one. Scored are the tokens of the second
    half, so that each has at least half a context before it. Raises ArgumentError for a text with
    less than two chunks.
    """
    if len(tokens) < 2 * n_context:
        raise ArgumentError(
            f"the text has {len(tokens)} tokens; two chunks of {n_context} are needed "
            "(set a smaller --context)"
        )
    n_chunks = min(len(tokens) // n_context, most_chunks or len(tokens))
    first = n_context // 2
    tokenizer = model.tokenizer
    scores = []
    done = 0
    with Progress(lambda: f"chunk {done + 1} of {n_chunks}"):
        for done in range(n_chunks):
            chunk = tokens[done * n_context : (done + 1) * n_context].copy()
            if tokenizer.add_bos and tokenizer.bos_id is not None:
                chunk[0] = tokenizer.bos_id
            logits = model.logits(chunk.tolist(), last=n_context - first)
            scores.append(_scores(logits, chunk[first + 1 :]))
    negative = np.concatenate(scores)
    mean = float(negative.mean())
    spread = float((negative * negative).mean()) - mean * mean
    value = math.exp(mean) if mean < 700 else math.inf
    count = len(negative)
    error = math.sqrt(spread / (count - 1)) * value if spread > 0 and count > 1 else 0.0
    return Perplexity(value, error, count, n_chunks)


def _scores(logits: NDArray[np.float32], targets: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return -log p of each target; logits [len(targets) + 1, vocab_size], the last is unused."""
    parts = []
    for begin in range(0, len(targets), _ROWS_AT_ONCE):
        expected = targets[begin : begin + _ROWS_AT_ONCE]
        rows = logits[begin : begin + len(expected)].astype(np.float64)
        highest = rows.max(axis=1)
        sums = np.exp(rows - highest[:, None]).sum(axis=1)
        parts.append(np.log(sums) + highest - rows[np.arange(len(expected)), expected])
    return np.concatenate(parts)
