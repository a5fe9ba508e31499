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
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from akunu import _core
from akunu.common.metadata import TOKENS
from akunu.errors import ArgumentError, ModelFormatError
from akunu.tokenizers.later_tokens import LaterTokens, hidden_of
from akunu.tokenizers.library_steps import prefixes_first_only, stop_prefixing
from akunu.tokenizers.pretokenizers import PreTokenizer, byte_alphabet
from akunu.tokenizers.unigram import library_json
from akunu.tokenizers.vocabulary import (
    BYTE,
    CONTROL,
    MERGES,
    SPACE,
    UNKNOWN,
    USER_DEFINED,
    Vocabulary,
    byte_of,
)
from akunu.tokenizers.word_models import build_words

Encode = Callable[[str, bool], list[int]]

# Trying all splits of a piece is quadratic in its length; real pieces have a few dozen characters.
_LONGEST_PIECE: Final = 512


def build(vocabulary: Vocabulary, *, with_control: bool = False) -> Encode:
    """Return the encoder of ordinary text for this vocabulary.

    `with_control`: it also finds control tokens, those that are looked for in normalised text.
    """
    builders: dict[str, Callable[[Vocabulary, LaterTokens], Encode]] = {
        "gpt2": build_byte_level,
        "llama": build_sentencepiece,
        "bert": build_wordpiece,
        "gemma4": build_gemma4,
        "t5": build_unigram,
        "wordlevel": build_words,
        "wordpiece": build_words,
    }
    return builders[vocabulary.model](vocabulary, LaterTokens(vocabulary, with_control))


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

    >>> from akunu.tokenizers.pretokenizers import BY_NAME
    >>> [word for word, _ in cutter(BY_NAME["qwen2"]).pre_tokenize_str("in 42!")]
    ['in', ' ', '4', '2', '!']
    """
    return pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(split), "isolated") for split in family.splits]
    )


def build_byte_level(vocabulary: Vocabulary, later: LaterTokens) -> Encode:
    """Cut with the family's expressions, spell bytes as GPT-2 does, merge by rank."""
    family = vocabulary.pre
    tokenizer = Tokenizer(_bpe(vocabulary, ignore_merges=family.ignore_merges, later=later))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [cutter(family), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    if later and vocabulary.nfc:
        tokenizer.normalizer = normalizers.NFC()
    ids_of = later.added_to(tokenizer)
    missing = {byte for byte, letter in enumerate(byte_alphabet()) if letter not in vocabulary.ids}

    def encode(text: str, _opens: bool) -> list[int]:
        if missing:
            _refuse_bytes(text, missing)
        return ids_of(text)

    return compose_first(vocabulary, encode)  # which changes nothing where it comes again


def _refuse_bytes(text: str, missing: set[int]) -> None:
    """Refuse text with a byte that the vocabulary cannot spell: it would be dropped silently."""
    for index, character in enumerate(text):
        if missing.intersection(character.encode()):
            raise ArgumentError(
                f"this vocabulary has no token for {character!r} (character {index} of the text)"
            )


def build_sentencepiece(vocabulary: Vocabulary, later: LaterTokens) -> Encode:
    """Merge characters into pieces, best score first; unknown characters become their bytes."""
    if vocabulary.scores is None:
        model = _bpe(vocabulary, ignore_merges=False, byte_fallback=True, later=later)
    else:
        # User-defined tokens are cut out of the text before this; merging never makes one.
        ids = _ordinary_ids(vocabulary, USER_DEFINED)
        model = models.BPE(
            later.without_gaps({**ids, **_fallback_ids(vocabulary)}),
            _merges_by_score(vocabulary, ids),
            byte_fallback=True,
            fuse_unk=True,
            unk_token=_unknown(vocabulary),
        )
    if later:
        return _sentencepiece_with(later, vocabulary, model)
    ids_of = later.added_to(Tokenizer(model))

    def encode(text: str, opens: bool) -> list[int]:
        escaped = text.replace(" ", SPACE)
        has_one = vocabulary.space_prefix_unless_there and escaped.startswith(SPACE)
        prefix = SPACE if opens and vocabulary.add_space_prefix and not has_one else ""
        return ids_of(prefix + escaped)

    return compose_first(vocabulary, encode)


def _sentencepiece_with(later: LaterTokens, vocabulary: Vocabulary, model: models.BPE) -> Encode:
    """Leave to the library what happens to a text before such tokens are looked for, and after."""
    is_by_cutter = vocabulary.space_prefix_unless_there
    spell = [] if vocabulary.spells_spaces_late else [normalizers.Replace(" ", SPACE)]
    compose = [normalizers.NFC()] if vocabulary.nfc else []
    has_prefix = vocabulary.add_space_prefix and not is_by_cutter
    prefix = [normalizers.Prepend(SPACE)] if has_prefix else []
    whole = normalizers.Sequence([*compose, *prefix, *spell])
    scheme = "never"
    if vocabulary.add_space_prefix:
        scheme = "first" if vocabulary.space_prefix_at_start_only else "always"
    opening, within = Tokenizer(model), Tokenizer(model)
    opening.normalizer = whole
    within.normalizer = normalizers.Sequence([*compose, *spell])
    if is_by_cutter:
        opening.pre_tokenizer = pre_tokenizers.Metaspace(SPACE, scheme, split=False)
        within.pre_tokenizer = pre_tokenizers.Metaspace(SPACE, "never", split=False)
    ids_of, more_of = later.added_to(opening), later.added_to(within, whole.normalize_str)
    return lambda text, opens: ids_of(text) if opens else more_of(text)


def compose_first(vocabulary: Vocabulary, encode: Encode) -> Encode:
    """Return an encoder to which a text is passed in Unicode's form C, if the vocabulary has that.

    The library's, with which models are trained: that of Python depends on Python's version.
    """
    if not vocabulary.nfc:
        return encode
    compose = normalizers.NFC().normalize_str
    return lambda text, opens: encode(compose(text), opens)


def _merges_by_score(vocabulary: Vocabulary, ids: dict[str, int]) -> list[tuple[str, str]]:
    """Return every split of a piece into two pieces, in the order in which merging tries them.

    SentencePiece joins the neighbours whose union has the best score, and ranks of merges express
    the same: all splits of one piece share its score; ids decide between equal scores.
    """
    assert vocabulary.scores is not None
    return _core.merges_by_score(ids, vocabulary.scores)


def build_wordpiece(vocabulary: Vocabulary, later: LaterTokens) -> Encode:
    """Normalise and split as BERT does, then take the longest pieces from the left."""
    pieces: dict[str, int] = {}
    for piece, index in _ordinary_ids(vocabulary).items():
        if piece.startswith(SPACE):
            pieces[piece[1:]] = index
        elif index in vocabulary.added:  # spelled as it is
            pieces[piece] = index
        else:
            pieces["##" + piece] = index
    assert vocabulary.unk_id is not None
    unknown = vocabulary.tokens[vocabulary.unk_id]
    pieces[unknown] = vocabulary.unk_id
    tokenizer = Tokenizer(models.WordPiece(later.without_gaps(pieces), unk_token=unknown))
    tokenizer.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=True,
        strip_accents=vocabulary.strip_accents,
        lowercase=vocabulary.lowercase,
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ids_of = later.added_to(tokenizer)
    return compose_first(vocabulary, lambda text, _opens: ids_of(text))


def build_unigram(vocabulary: Vocabulary, later: LaterTokens) -> Encode:
    """Take the pieces whose scores have the largest sum; unknown characters become unknown."""
    steps = json.loads(vocabulary.steps)
    opening = within = later.added_to(_library_unigram(vocabulary, steps))
    if prefixes_first_only(steps):
        stop_prefixing(steps)
        within = later.added_to(_library_unigram(vocabulary, steps))
    return compose_first(vocabulary, lambda text, opens: opening(text) if opens else within(text))


def _library_unigram(vocabulary: Vocabulary, steps: Mapping[str, Any]) -> Tokenizer:
    assert vocabulary.scores is not None
    assert vocabulary.unk_id is not None
    described = library_json(
        vocabulary.tokens, vocabulary.scores, hidden_of(vocabulary), vocabulary.unk_id, steps
    )
    try:
        return Tokenizer.from_str(described)
    except Exception as error:
        raise ModelFormatError(f"the Unigram tokenizer cannot be used: {error}") from None


_NEWLINES = re.compile("(\n+)")


def build_gemma4(vocabulary: Vocabulary, later: LaterTokens) -> Encode:
    """Merge by rank on characters with spaces spelled U+2581; no words, only runs of newlines.

    A run of newlines that is a token is that token; other unknown characters become their bytes.
    """
    model = _bpe(vocabulary, ignore_merges=False, byte_fallback=True, later=later)
    ids_of = later.added_to(Tokenizer(model))
    ordinary = _ordinary_ids(vocabulary)
    newlines = {text: index for text, index in ordinary.items() if not text.strip("\n")}

    def encode(text: str, opens: bool) -> list[int]:
        prefix = SPACE if opens and vocabulary.add_space_prefix else ""
        ids: list[int] = []
        for part in _NEWLINES.split(prefix + text.replace(" ", SPACE)):
            if part in newlines:
                ids.append(newlines[part])
            elif part:
                ids += ids_of(part)
        return ids

    return compose_first(vocabulary, encode)


def _ordinary_ids(vocabulary: Vocabulary, *more: int) -> dict[str, int]:
    """Return the tokens that text may become: not control, not unknown, not a byte's name."""
    hidden = np.flatnonzero(np.isin(vocabulary.types, (UNKNOWN, CONTROL, BYTE, *more))).tolist()
    ids = dict(vocabulary.ids)
    # What the model's own vocabulary lacks is found as a whole or not at all.
    hidden += [index for index, rule in vocabulary.added.items() if not rule.is_piece]
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
            f"{TOKENS} has {len(ids)} of 256 byte tokens and there is not a "
            f"tokenizer.ggml.unknown_token_id: some text could not be tokenized"
        )
    return ids


def _unknown(vocabulary: Vocabulary) -> str | None:
    return None if vocabulary.unk_id is None else vocabulary.tokens[vocabulary.unk_id]


def _bpe(
    vocabulary: Vocabulary,
    *,
    ignore_merges: bool,
    later: LaterTokens,
    byte_fallback: bool = False,
) -> models.BPE:
    ids = _ordinary_ids(vocabulary)
    pairs = _pairs(vocabulary.merges)
    known = {**ids, **_fallback_ids(vocabulary)} if byte_fallback else ids
    known = later.without_gaps(known)
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
            return models.BPE(known, pairs, **options)
    pairs = [pair for pair in pairs if all(text in ids for text in (*pair, "".join(pair)))]
    try:
        return models.BPE(known, pairs, **options)
    except Exception as error:
        raise ModelFormatError(f"{MERGES} cannot be used: {error}") from None


def _check_merges(vocabulary: Vocabulary) -> None:
    """Raise ModelFormatError for a merge that is not two tokens whose union is one."""
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
