"""Turns ordinary text (no special tokens left in it) into ids, one function per tokenizer model.

Each `build_*` takes a checked `Vocabulary` and returns an `Encode`: text and "does this text open
a prompt or follow a special token" to ids. The merging itself is done by the `tokenizers` library.
Control tokens are not in the tables built here, so no text can become one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import numpy as np
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from akunu._pretokenizers import PreTokenizer
from akunu._vocabulary import (
    BYTE,
    CONTROL,
    MERGES,
    SPACE,
    TOKENS,
    UNKNOWN,
    USER_DEFINED,
    Vocabulary,
    byte_of,
)
from akunu.errors import ArgumentError, ModelFormatError

Encode = Callable[[str, bool], list[int]]

# Trying all splits of a piece is quadratic in its length; real pieces have a few dozen characters.
_LONGEST_PIECE: Final = 512


def byte_alphabet() -> list[str]:
    """Return GPT-2's printable character for each of the 256 bytes.

    >>> byte_alphabet()[ord(" ")], byte_alphabet()[0xAD]
    ('Ġ', 'Ń')
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    shifted = {byte: chr(0x100 + index) for index, byte in enumerate(others)}
    return [shifted.get(byte, chr(byte)) for byte in range(256)]


def build(vocabulary: Vocabulary) -> Encode:
    """Return the encoder of ordinary text for this vocabulary."""
    builders: dict[str, Callable[[Vocabulary], Encode]] = {
        "gpt2": build_byte_level,
        "llama": build_sentencepiece,
        "bert": build_wordpiece,
        "gemma4": build_gemma4,
    }
    encode = builders[vocabulary.model](vocabulary)
    if not vocabulary.nfc:
        return encode
    return lambda text, opens: encode(unicodedata.normalize("NFC", text), opens)


def cutter(family: PreTokenizer) -> pre_tokenizers.PreTokenizer:
    """Return what cuts text into this family's words.

    >>> from akunu._pretokenizers import BY_NAME
    >>> [word for word, _ in cutter(BY_NAME["qwen2"]).pre_tokenize_str("in 42!")]
    ['in', ' ', '4', '2', '!']
    """
    return pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(split), "isolated") for split in family.splits]
    )


def build_byte_level(vocabulary: Vocabulary) -> Encode:
    """Cut with the family's expressions, spell bytes as GPT-2 does, merge by rank."""
    family = vocabulary.pre
    tokenizer = Tokenizer(_bpe(vocabulary, ignore_merges=family.ignore_merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [cutter(family), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    missing = {byte for byte, letter in enumerate(byte_alphabet()) if letter not in vocabulary.ids}

    def encode(text: str, _opens: bool) -> list[int]:
        if missing:
            _refuse_bytes(text, missing)
        ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    return encode


def _refuse_bytes(text: str, missing: set[int]) -> None:
    """Refuse text with a byte that the vocabulary cannot spell: it would be dropped silently."""
    for index, character in enumerate(text):
        if missing.intersection(character.encode()):
            raise ArgumentError(
                f"this vocabulary has no token for {character!r} (character {index} of the text)"
            )


def build_sentencepiece(vocabulary: Vocabulary) -> Encode:
    """Merge characters into pieces, best score first; unknown characters become their bytes."""
    # User-defined tokens are cut out of the text before this; merging never makes one.
    ids = _ordinary_ids(vocabulary, USER_DEFINED)
    tokenizer = Tokenizer(
        models.BPE(
            {**ids, **_fallback_ids(vocabulary)},
            _merges_by_score(vocabulary, ids),
            byte_fallback=True,
            fuse_unk=True,
            unk_token=_unknown(vocabulary),
        )
    )

    def encode(text: str, opens: bool) -> list[int]:
        prefix = SPACE if opens and vocabulary.add_space_prefix else ""
        escaped = prefix + text.replace(" ", SPACE)
        ids: list[int] = tokenizer.encode(escaped, add_special_tokens=False).ids
        return ids

    return encode


def _merges_by_score(vocabulary: Vocabulary, ids: dict[str, int]) -> list[tuple[str, str]]:
    """Return every split of a piece into two pieces, in the order in which merging tries them.

    SentencePiece joins the neighbours whose union has the best score, and ranks of merges express
    the same: all splits of one piece share its score; ids decide between equal scores.
    """
    assert vocabulary.scores is not None
    scores = vocabulary.scores.tolist()
    ranked: list[tuple[float, int, int, str, str]] = []
    for piece, index in ids.items():
        if len(piece) > _LONGEST_PIECE:
            raise ModelFormatError(
                f"{TOKENS}[{index}] has {len(piece)} characters, at most {_LONGEST_PIECE} are "
                "supported in a tokenizer of model 'llama'"
            )
        for cut in range(1, len(piece)):
            left = ids.get(piece[:cut])
            if left is None:
                continue
            right = ids.get(piece[cut:])
            if right is not None:
                ranked.append((-scores[index], left, right, piece[:cut], piece[cut:]))
    ranked.sort()
    return [(left, right) for _, _, _, left, right in ranked]


def build_wordpiece(vocabulary: Vocabulary) -> Encode:
    """Normalise and split as BERT does, then take the longest pieces from the left."""
    pieces: dict[str, int] = {}
    tails: dict[str, int] = {}
    for piece, index in _ordinary_ids(vocabulary).items():
        if piece.startswith(SPACE):
            pieces[piece[1:]] = index
        else:
            tails["##" + piece] = index
    assert vocabulary.unk_id is not None
    unknown = vocabulary.tokens[vocabulary.unk_id]
    tokenizer = Tokenizer(
        models.WordPiece({**pieces, **tails, unknown: vocabulary.unk_id}, unk_token=unknown)
    )
    tokenizer.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=True,
        strip_accents=vocabulary.strip_accents,
        lowercase=vocabulary.lowercase,
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()

    def encode(text: str, _opens: bool) -> list[int]:
        ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    return encode


_NEWLINES = re.compile("(\n+)")


def build_gemma4(vocabulary: Vocabulary) -> Encode:
    """Merge by rank on characters with spaces spelled U+2581; no words, only runs of newlines.

    A run of newlines that is a token is that token; other unknown characters become their bytes.
    """
    tokenizer = Tokenizer(_bpe(vocabulary, ignore_merges=False, byte_fallback=True))
    ordinary = _ordinary_ids(vocabulary)
    newlines = {text: index for text, index in ordinary.items() if not text.strip("\n")}

    def encode(text: str, opens: bool) -> list[int]:
        prefix = SPACE if opens and vocabulary.add_space_prefix else ""
        ids: list[int] = []
        for part in _NEWLINES.split(prefix + text.replace(" ", SPACE)):
            if part in newlines:
                ids.append(newlines[part])
            elif part:
                ids += tokenizer.encode(part, add_special_tokens=False).ids
        return ids

    return encode


def _ordinary_ids(vocabulary: Vocabulary, *more: int) -> dict[str, int]:
    """Return the tokens that text may become: not control, not unknown, not a byte's name."""
    hidden = np.flatnonzero(np.isin(vocabulary.types, (UNKNOWN, CONTROL, BYTE, *more))).tolist()
    ids = dict(vocabulary.ids)
    for index in hidden:
        ids.pop(vocabulary.tokens[index], None)
    return ids


def _fallback_ids(vocabulary: Vocabulary) -> dict[str, int]:
    """Return the tokens of single bytes, by the names that the library looks for, and unknown."""
    ids: dict[str, int] = {}
    for index in np.flatnonzero(vocabulary.types == BYTE).tolist():
        byte = byte_of(vocabulary.tokens[index])
        if byte is not None:
            ids[f"<0x{byte:02X}>"] = index
    if vocabulary.unk_id is not None:
        ids[vocabulary.tokens[vocabulary.unk_id]] = vocabulary.unk_id
    if vocabulary.unk_id is None and len(ids) < 256:
        raise ModelFormatError(
            f"{TOKENS} has {len(ids)} of 256 byte tokens and there is no "
            "tokenizer.ggml.unknown_token_id: some text would have no tokens"
        )
    return ids


def _unknown(vocabulary: Vocabulary) -> str | None:
    return None if vocabulary.unk_id is None else vocabulary.tokens[vocabulary.unk_id]


def _bpe(vocabulary: Vocabulary, *, ignore_merges: bool, byte_fallback: bool = False) -> models.BPE:
    ids = _ordinary_ids(vocabulary)
    pairs = _pairs(vocabulary.merges)
    extra = _fallback_ids(vocabulary) if byte_fallback else {}
    options = {
        "ignore_merges": ignore_merges,
        "byte_fallback": byte_fallback,
        "fuse_unk": byte_fallback,
        "unk_token": _unknown(vocabulary) if byte_fallback else None,
    }
    # The library refuses a merge of unknown tokens, but panics on one into an unknown token: that
    # is checked here, in C. Only a bad file pays for the loop that says which.
    if all(map(ids.__contains__, map("".join, pairs))):
        with suppress(Exception):
            return models.BPE({**ids, **extra}, pairs, **options)
    usable = _usable(vocabulary, pairs, ids)
    try:
        return models.BPE({**ids, **extra}, usable, **options)
    except Exception as error:
        raise ModelFormatError(f"{MERGES} cannot be used: {error}") from None


def _usable(
    vocabulary: Vocabulary, pairs: list[tuple[str, str]], ids: dict[str, int]
) -> list[tuple[str, str]]:
    """Return the merges without those that make a control token out of text.

    Raises ModelFormatError for a merge that names no token at all.
    """
    for pair in pairs:
        for text in (*pair, "".join(pair)):
            if text not in vocabulary.ids:
                merge = " ".join(pair)
                raise ModelFormatError(
                    f"{MERGES}[{vocabulary.merges.index(merge)}] is {merge!r}, "
                    f"but {text!r} is not in {TOKENS}"
                )
    return [pair for pair in pairs if all(text in ids for text in (*pair, "".join(pair)))]


def _pairs(merges: list[str]) -> list[tuple[str, str]]:
    """Split "left right" at the space; the first of equal merges counts."""
    if len(set(merges)) != len(merges):
        merges = list(dict.fromkeys(merges))
    parts = " ".join(merges).split(" ")
    if len(parts) == 2 * len(merges):  # one pass in C for 280,000 merges
        pairs = list(zip(parts[::2], parts[1::2], strict=True))
        if "" not in parts:
            return pairs
    for index, merge in enumerate(merges):
        space = merge.find(" ", 1)
        if space < 0 or space + 1 == len(merge):
            raise ModelFormatError(
                f"{MERGES}[{index}] is {merge!r}, expected two tokens with a space between"
            )
    return [(merge[: (cut := merge.find(" ", 1))], merge[cut + 1 :]) for merge in merges]
