"""WordLevel and WordPiece of a tokenizer.json, run by the `tokenizers` library as the file says.

The normalizer and the pre-tokenizer may be any that the library has. The decoder must be one with
which a token adds the same bytes to every text. `_wordpiece_json` reads WordPiece exactly as BERT
has it, under the keys of GGUF.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import numpy as np
from tokenizers import Tokenizer

from akunu.errors import ArgumentError, ModelFormatError, UnsupportedModelError
from akunu.tokenizers.later_tokens import LaterTokens, hidden_of
from akunu.tokenizers.library_steps import library_names, stop_prefixing
from akunu.tokenizers.pretokenizers import byte_alphabet
from akunu.tokenizers.vocabulary import UNKNOWN, Vocabulary

KINDS: Final = {"WordLevel": "wordlevel", "WordPiece": "wordpiece"}
"""The type of a tokenizer.json's model, and `Vocabulary.model`."""
_WHERE: Final = "tokenizer.json"
_OPTIONS: Final = ("unk_token", "continuing_subword_prefix", "max_input_chars_per_word")

# What the library's decoder of WordPiece changes within a word and the space before it, in order.
_CLEANED: Final = (
    (" .", "."),
    (" ?", "?"),
    (" !", "!"),
    (" ,", ","),
    (" ' ", "'"),
    (" n't", "n't"),
    (" 'm", "'m"),
    (" do not", " don't"),
    (" 's", "'s"),
    (" 've", "'ve"),
    (" 're", "'re"),
)
_LETTER_BYTES: Final = {letter: byte for byte, letter in enumerate(byte_alphabet())}


def steps_of_words(described: Mapping[str, Any]) -> str:
    """Return how such a tokenizer makes ids of a text and a text of ids, as JSON.

    Raises UnsupportedModelError for a step that the library does not have, and for a decoder in
    which what a token adds depends on other tokens.
    """
    model = described["model"]
    steps: dict[str, Any] = {
        "normalizer": described.get("normalizer"),
        "pre_tokenizer": described.get("pre_tokenizer"),
        "decoder": described.get("decoder"),
        "model": {"type": model["type"], **{key: model[key] for key in _OPTIONS if key in model}},
    }
    spell(steps, "")
    for key in ("normalizer", "pre_tokenizer", "model"):
        alone = {"normalizer": None, "pre_tokenizer": None, "model": {"type": "WordLevel"}}
        try:
            _library_tokenizer({**alone, key: steps[key]}, {})
        except Exception as error:
            told = json.dumps(steps[key], ensure_ascii=False)[:120]
            raise UnsupportedModelError(
                f"{_WHERE}: the library tokenizers cannot use {key} {told}: {error}"
            ) from None
    return json.dumps(steps)


def opens_without_space(steps: Mapping[str, Any]) -> bool:
    """Whether the first word of a text is written without the space that stands before others."""
    decoder = steps["decoder"]
    if decoder is None or decoder["type"] == "WordPiece":
        return True
    is_metaspace: bool = decoder["type"] == "Metaspace"
    return is_metaspace and decoder.get("prepend_scheme", "always") != "never"


def spell(steps: Mapping[str, Any], token: str) -> bytes:
    """Return what a token adds to a text that has others before.

    Raises UnsupportedModelError for a decoder that has no such thing.

    >>> spell({"decoder": None}, "hat")
    b' hat'
    """
    decoder = steps["decoder"]
    if decoder is None:
        return f" {token}".encode()
    kind = decoder.get("type") if isinstance(decoder, dict) else None
    if kind == "WordPiece":
        prefix = str(decoder.get("prefix", "##"))
        text = token.removeprefix(prefix) if token.startswith(prefix) else f" {token}"
        for found, clean in _CLEANED if decoder.get("cleanup", True) else ():
            text = text.replace(found, clean)
        return text.encode()
    if kind == "Metaspace":
        return token.replace(str(decoder.get("replacement", "\u2581")), " ").encode()
    if kind == "ByteLevel":
        letters = [_LETTER_BYTES.get(letter) for letter in token]
        return token.encode() if None in letters else bytes(cast("list[int]", letters))
    if kind == "Fuse":
        return token.encode()
    raise UnsupportedModelError(
        f"{_WHERE}: decoder {json.dumps(decoder, ensure_ascii=False)[:120]} is not supported for "
        "WordLevel and WordPiece; akunu has WordPiece, Metaspace, ByteLevel, Fuse and none"
    )


def build_words(vocabulary: Vocabulary, later: LaterTokens) -> Callable[[str, bool], list[int]]:
    """Return the encoder of ordinary text; words that are not tokens become unknown."""
    steps = json.loads(vocabulary.steps)
    hidden = hidden_of(vocabulary).tolist()
    names = {name: i for i, name in enumerate(library_names(vocabulary.tokens, hidden))}
    try:
        tokenizer = _library_tokenizer(steps, names)
        ids_of = later.added_to(tokenizer)
        stop_prefixing(steps)
        within = _library_tokenizer(steps, names)
        more_of = later.added_to(within)
    except Exception as error:
        raise ModelFormatError(f"{_WHERE}: the tokenizer cannot be used: {error}") from None
    knows_all = bool(np.any(vocabulary.types == UNKNOWN))

    def encode(text: str, opens: bool) -> list[int]:
        used = tokenizer if opens else within
        try:
            return ids_of(text) if opens else more_of(text)
        except Exception as error:
            if not knows_all:
                raise ArgumentError(
                    "the text has a word that this vocabulary has no token for, and it has no "
                    f"unknown token: {_first_unknown(used, text, names)!r}"
                ) from None
            raise ArgumentError(f"the text cannot be tokenized: {error}") from None

    return encode


def _first_unknown(tokenizer: Tokenizer, text: str, names: Mapping[str, int]) -> str:
    if tokenizer.normalizer is not None:
        text = tokenizer.normalizer.normalize_str(text)
    cut = tokenizer.pre_tokenizer
    words = [word for word, _ in cut.pre_tokenize_str(text)] if cut is not None else [text]
    return next((word for word in words if word not in names), text)


def _library_tokenizer(steps: Mapping[str, Any], names: Mapping[str, int]) -> Tokenizer:
    """Return the library's; it raises what it likes."""
    described = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": steps["normalizer"],
        "pre_tokenizer": steps["pre_tokenizer"],
        "post_processor": None,
        "decoder": None,
        "model": {"unk_token": "", **steps["model"], "vocab": dict(names)},
    }
    return Tokenizer.from_str(json.dumps(described))
