"""Batches of a tokenizer's ids, and the mean of what an encoder makes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

BATCH = 32  # texts; sentence-transformers' default


@cache
def _tokenizer(path: Path) -> Any:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
    tokenizer.enable_truncation(256)
    tokenizer.enable_padding()
    return tokenizer


def batches(path: Path, texts: list[str]) -> Iterator[dict[str, Any]]:
    """The inputs of an encoder in `path`, padded to the longest text of each batch."""
    for first in range(0, len(texts), BATCH):
        found = _tokenizer(path).encode_batch(texts[first : first + BATCH])
        yield {
            "input_ids": np.array([each.ids for each in found], np.int64),
            "attention_mask": np.array([each.attention_mask for each in found], np.int64),
            "token_type_ids": np.array([each.type_ids for each in found], np.int64),
        }


def normalised_means(given: Iterator[dict[str, Any]], run: Callable[[dict[str, Any]], Any]) -> Any:
    """float32 `[n, dim]`: the mean of each text's rows, of length 1."""
    vectors = []
    for batch in given:
        seen = batch["attention_mask"][:, :, None].astype(np.float32)
        sums = (run(batch) * seen).sum(axis=1)
        vectors.append(sums / np.linalg.norm(sums, axis=1, keepdims=True))
    return np.concatenate(vectors)
