"""Turns ordinary text (no special tokens left in it) into ids, one function per tokenizer model.

Each `build_*` takes a checked `Vocabulary` and returns an `Encode`: text and "does this text open
a prompt or follow a special token" to ids. The merging itself is done by the `tokenizers` library.
Control tokens are not in the tables built here, so no text can become one.

Building takes the library 0.2 to 0.4 s for a large vocabulary, and who has token ids needs none of
it: it is done for the first text. `check` finds what is wrong before, in a seventh of the time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import repeat
from typing import Any, Final

import numpy as np
from tokenizers import Encoding, Regex, Tokenizer, models, normalizers, pre_tokenizers

from akunu._metadata import TOKENS
from akunu._pretokenizers import PreTokenizer, byte_alphabet
from akunu._tokenizer_steps import prefixes_first_only, stop_prefixing
from akunu._unigram import library_json
from akunu._vocabulary import (
    BYTE,
    CONTROL,
    MERGES,
    SPACE,
    UNKNOWN,
    USER_DEFINED,
    Vocabulary,
    byte_of,
)
from akunu._word_models import build_words
from akunu.errors import ArgumentError, ModelFormatError

Encode = Callable[[str, bool], list[int]]

# Trying all splits of a piece is quadratic in its length; real pieces have a few dozen characters.
_LONGEST_PIECE: Final = 512


def build(vocabulary: Vocabulary) -> Encode:
    """Return the encoder of ordinary text for this vocabulary."""
    builders: dict[str, Callable[[Vocabulary], Encode]] = {
        "gpt2": build_byte_level,
        "llama": build_sentencepiece,
        "bert": build_wordpiece,
        "gemma4": build_gemma4,
        "t5": build_unigram,
        "wordlevel": build_words,
        "wordpiece": build_words,
    }
    encode = builders[vocabulary.model](vocabulary)
    if not vocabulary.nfc:
        return encode
    # The library's, with which models are trained: that of Python depends on Python's version.
    compose = normalizers.NFC().normalize_str
    return lambda text, opens: encode(compose(text), opens)


def _ids(tokenizer: Tokenizer, text: str) -> list[int]:
    """Return the ids of a text, while other threads run: only batches let go of the GIL.

    A batch without offsets also takes about half of the time that `Tokenizer.encode` takes.
    """
    encodings: list[Encoding] = tokenizer.encode_batch_fast([text], add_special_tokens=False)
    ids: list[int] = encodings[0].ids
    return ids


def check(vocabulary: Vocabulary) -> None:
    """Raise ModelFormatError for a vocabulary of which `build` could make nothing."""
    if vocabulary.model in ("gpt2", "gemma4") or vocabulary.merges:
        _check_merges(vocabulary)
    if vocabulary.model in ("llama", "gemma4"):
        _fallback_ids(vocabulary)
    if vocabulary.model == "llama" and vocabulary.scores is not None:
        ids = _ordinary_ids(vocabulary, USER_DEFINED)
        if max(map(len, ids), default=0) > _LONGEST_PIECE:
            index = next(index for piece, index in ids.items() if len(piece) > _LONGEST_PIECE)
            raise ModelFormatError(
                f"{TOKENS}[{index}] has {len(vocabulary.tokens[index])} characters, at most "
                f"{_LONGEST_PIECE} are supported in a tokenizer of model 'llama'"
            )


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
        return _ids(tokenizer, text)

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
    if vocabulary.scores is None:
        model = _bpe(vocabulary, ignore_merges=False, byte_fallback=True)
    else:
        model = models.BPE(
            {**ids, **_fallback_ids(vocabulary)},
            _merges_by_score(vocabulary, ids),
            byte_fallback=True,
            fuse_unk=True,
            unk_token=_unknown(vocabulary),
        )
    tokenizer = Tokenizer(model)

    def encode(text: str, opens: bool) -> list[int]:
        escaped = text.replace(" ", SPACE)
        has_one = vocabulary.space_prefix_unless_there and escaped.startswith(SPACE)
        prefix = SPACE if opens and vocabulary.add_space_prefix and not has_one else ""
        return _ids(tokenizer, prefix + escaped)

    return encode


def _merges_by_score(vocabulary: Vocabulary, ids: dict[str, int]) -> list[tuple[str, str]]:
    """Return every split of a piece into two pieces, in the order in which merging tries them.

    SentencePiece joins the neighbours whose union has the best score, and ranks of merges express
    the same: all splits of one piece share its score; ids decide between equal scores.
    """
    from akunu import _core

    assert vocabulary.scores is not None
    return _core.merges_by_score(ids, vocabulary.scores)


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
        return _ids(tokenizer, text)

    return encode


def build_unigram(vocabulary: Vocabulary) -> Encode:
    """Take the pieces whose scores have the largest sum; unknown characters become unknown."""
    steps = json.loads(vocabulary.steps)
    opening = later = _library_unigram(vocabulary, steps)
    if prefixes_first_only(steps):
        stop_prefixing(steps)
        later = _library_unigram(vocabulary, steps)
    return lambda text, opens: _ids(opening if opens else later, text)


def _library_unigram(vocabulary: Vocabulary, steps: Mapping[str, Any]) -> Tokenizer:
    assert vocabulary.scores is not None
    assert vocabulary.unk_id is not None
    hidden = np.isin(vocabulary.types, (CONTROL, USER_DEFINED))
    described = library_json(vocabulary.tokens, vocabulary.scores, hidden, vocabulary.unk_id, steps)
    try:
        return Tokenizer.from_str(described)
    except Exception as error:
        raise ModelFormatError(f"the Unigram tokenizer cannot be used: {error}") from None


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
                ids += _ids(tokenizer, part)
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
    # Merges that would make a control token out of text are left out. The library refuses one of
    # unknown tokens, but panics on one into an unknown token: that is looked for here, in C.
    if all(map(ids.__contains__, map("".join, pairs))):
        with suppress(Exception):
            return models.BPE({**ids, **extra}, pairs, **options)
    pairs = [pair for pair in pairs if all(text in ids for text in (*pair, "".join(pair)))]
    try:
        return models.BPE({**ids, **extra}, pairs, **options)
    except Exception as error:
        raise ModelFormatError(f"{MERGES} cannot be used: {error}") from None


def _check_merges(vocabulary: Vocabulary) -> None:
    """Raise ModelFormatError for a merge that is not two tokens whose union is one."""
    from akunu import _core

    index = _core.first_unusable_merge(vocabulary.merges, vocabulary.tokens)
    if index is None:
        return
    merge = vocabulary.merges[index]
    left, right = _split(merge)
    if not right:
        raise ModelFormatError(
            f"{MERGES}[{index}] is {merge!r}, expected two tokens with a space between"
        )
    unknown = next(text for text in (left, right, left + right) if text not in vocabulary.ids)
    raise ModelFormatError(f"{MERGES}[{index}] is {merge!r}, but {unknown!r} is not in {TOKENS}")


def _pairs(merges: list[str]) -> list[tuple[str, str]]:
    """Split each "left right"; the first of equal merges counts."""
    if len(set(merges)) != len(merges):
        merges = list(dict.fromkeys(merges))
    if set(map(str.count, merges, repeat(" "))) == {1}:  # one pass in C for 280,000 merges
        parts = " ".join(merges).split(" ")
        return list(zip(parts[::2], parts[1::2], strict=True))
    return [_split(merge) for merge in merges]


def _split(merge: str) -> tuple[str, str]:
    """Return both tokens of a merge; the first may begin with a space, the second may be ""."""
    space = merge.find(" ", 1)
    return (merge, "") if space < 0 else (merge[:space], merge[space + 1 :])
