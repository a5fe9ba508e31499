"""Unigram vocabularies (T5, XLM-R): in tokenizer.json, in GGUF, and what makes ids of text.

How text is normalised and cut before pieces are looked for is kept as the `tokenizers` library
writes it, and done by that library.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from akunu.errors import ModelFormatError
from akunu.tokenizers.library_steps import library_names, metaspaces

_SPACE: Final = "\u2581"


def is_unigram(described: Mapping[str, Any]) -> bool:
    """Whether this tokenizer.json is one."""
    model = described.get("model")
    return isinstance(model, dict) and model.get("type") == "Unigram"


def steps_of(described: Mapping[str, Any]) -> str:
    """Return what happens to a text before pieces are looked for, as JSON."""
    return json.dumps(
        {
            "normalizer": described.get("normalizer"),
            "pre_tokenizer": described.get("pre_tokenizer"),
            "byte_fallback": bool(described["model"].get("byte_fallback")),
        }
    )


def steps_of_gguf(charsmap: bytes, *, collapses: bool, prefixes: bool) -> str:
    """Return the same of a GGUF file, which has SentencePiece's settings.

    `charsmap`: its table of characters; `collapses`: whether several spaces are one, and those at
    the ends none; `prefixes`: whether a word begins with a space.
    """
    normalizers: list[dict[str, Any]] = []
    if charsmap:
        table = base64.b64encode(charsmap).decode()
        normalizers.append({"type": "Precompiled", "precompiled_charsmap": table})
    scheme = "always" if prefixes else "never"
    cuts: list[dict[str, Any]] = [
        {"type": "Metaspace", "replacement": _SPACE, "prepend_scheme": scheme, "split": True}
    ]
    if collapses:
        cuts.insert(0, {"type": "WhitespaceSplit"})
    return json.dumps(
        {
            "normalizer": {"type": "Sequence", "normalizers": normalizers},
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": cuts},
            "byte_fallback": False,
        }
    )


def has_prefix(steps: Mapping[str, Any]) -> bool:
    """Whether words, or the first of them, have a space put in front."""
    return any(
        step.get("prepend_scheme", "always" if step.get("add_prefix_space", True) else "never")
        != "never"
        for step in metaspaces(steps)
    )


def pieces_of(model: Mapping[str, Any]) -> tuple[list[str], NDArray[np.floating[Any]]]:
    """Return the pieces of a tokenizer.json and their scores; ModelFormatError for others."""
    vocabulary = model.get("vocab")
    if not isinstance(vocabulary, list) or not vocabulary:
        raise ModelFormatError("tokenizer.json: model.vocab is not a list of pieces")
    pieces: list[str] = []
    scores: list[float] = []
    for index, entry in enumerate(vocabulary):
        is_pair = isinstance(entry, list) and len(entry) == 2
        if not is_pair or not isinstance(entry[0], str) or not isinstance(entry[1], (int, float)):
            raise ModelFormatError(
                f"tokenizer.json: model.vocab[{index}] is not a pair of a piece and its score"
            )
        pieces.append(entry[0])
        scores.append(float(entry[1]))
    return pieces, np.array(scores, np.float64)


def library_json(
    tokens: list[str],
    scores: NDArray[np.floating[Any]],
    hidden: NDArray[np.bool_],
    unknown: int,
    steps: Mapping[str, Any],
) -> str:
    """Return a tokenizer.json that makes ids of ordinary text."""
    names = library_names(tokens, hidden.tolist())
    vocabulary = list(zip(names, scores.astype(float).tolist(), strict=True))
    return json.dumps(
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [],
            "normalizer": steps["normalizer"],
            "pre_tokenizer": steps["pre_tokenizer"],
            "post_processor": None,
            "decoder": None,
            "model": {
                "type": "Unigram",
                "unk_id": unknown,
                "vocab": vocabulary,
                "byte_fallback": steps["byte_fallback"],
            },
        }
    )
