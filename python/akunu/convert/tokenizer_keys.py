"""The tokenizer of a directory as the keys of a GGUF file, for akunu and llama.cpp alike.

Both know the expressions of byte-level BPE by the name of their family, and read SentencePiece's
pieces with their scores. A tokenizer without such a name, or without such scores, is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from akunu import _core
from akunu.common.metadata import TOKENS
from akunu.convert.gguf_writer import KeyValue
from akunu.errors import UnsupportedModelError
from akunu.tokenizers.added_tokens import ADDED, AddedToken
from akunu.tokenizers.directory_vocabulary import ReadTokenizer, read_directory_tokenizer
from akunu.tokenizers.sentencepiece_file import read_sentencepiece
from akunu.tokenizers.vocabulary import (
    CONTROL,
    MERGES,
    NORMAL,
    SCORES,
    TOKEN_TYPE,
    UNKNOWN,
    UNUSED,
    read_vocabulary,
)

_UNUSED_SCORE: Final = -10000.0
"""The score of pieces that no text is encoded as."""
_BOS: Final = "tokenizer.ggml.bos_token_id"
_MORE_STOPS: Final = ("tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id")


def tokenizer_keys(
    directory: Path, config: Mapping[str, Any], n_rows: int
) -> tuple[dict[str, KeyValue], list[str]]:
    """Return the keys, and notes on what they do not say; `n_rows`: of the embedding.

    Raises what reading the directory's tokenizer raises, and UnsupportedModelError for one that
    no key of GGUF describes.
    """
    read = read_directory_tokenizer(directory, config)
    keys: dict[str, Any] = dict(read.metadata)
    model = keys["tokenizer.ggml.model"]
    if model == "wordlevel":
        raise UnsupportedModelError(
            "tokenizer.json: model is of type 'WordLevel', for which GGUF has no tokenizer model"
        )
    if model == "wordpiece":
        raise UnsupportedModelError(
            f"{read.not_bert}; GGUF has only BERT's form of WordPiece (tokenizer.ggml.model 'bert')"
        )
    for index in read.stop_ids:
        if keys[TOKEN_TYPE][index] != UNKNOWN:
            keys[TOKEN_TYPE][index] = CONTROL
    notes = list(read.notes)
    if model == "gpt2":
        keys["tokenizer.ggml.pre"] = _name_of(read)
    elif model == "llama":
        keys["tokenizer.ggml.pre"] = "default"
        if SCORES not in keys:
            keys[SCORES] = _scores(keys, directory)
            del keys[MERGES]
        notes += _notes_on_spaces(read)
    else:
        keys["tokenizer.ggml.cls_token_id"] = keys[_BOS]
    if not any(rule.changes_text for rule in map(AddedToken.of_number, keys.get(ADDED, []))):
        keys.pop(ADDED, None)  # then types of tokens say all
    elif ADDED in keys:
        keys[ADDED] = np.array(keys[ADDED], np.int32)
    _fill_up(keys, n_rows)
    notes += _add_stops(keys, read.stop_ids)
    keys[TOKEN_TYPE] = np.array(keys[TOKEN_TYPE], np.int32)
    if SCORES in keys:
        keys[SCORES] = np.array(keys[SCORES], np.float32)
    return keys, notes


def _name_of(read: ReadTokenizer) -> str:
    assert read.pre is not None
    name = read.pre.names[0]
    if name == "tokenizer.json":  # its expressions are not those of a family
        raise UnsupportedModelError(
            "tokenizer.json cuts text by expressions that tokenizer.ggml.pre has no name for: "
            + " | ".join(read.pre.splits)
        )
    return name


def _scores(keys: Mapping[str, Any], directory: Path) -> Sequence[float]:
    """Return scores by which neighbours join in the order of the merges."""
    tokens: list[str] = keys[TOKENS]
    types: list[int] = keys[TOKEN_TYPE]
    merges: list[str] = keys[MERGES]
    ids = {text: i for i, text in enumerate(tokens) if types[i] == NORMAL}
    wanted = _grouped(tuple(merge.split(" ", 1)) for merge in merges)
    for scores in (_of_sentencepiece(tokens, directory), _by_rank(tokens, merges)):
        if scores is not None and _grouped(_core.merges_by_score(ids, scores)) == wanted:
            return list(map(float, scores))
    raise UnsupportedModelError(
        "tokenizer.json: no scores of pieces join them in the order of model.merges, and GGUF has "
        "nothing else for tokenizers with byte_fallback"
    )


def _of_sentencepiece(tokens: Sequence[str], directory: Path) -> NDArray[np.float64] | None:
    """The scores of tokenizer.model, if it is there and has the same pieces."""
    path = directory / "tokenizer.model"
    if not path.is_file():
        return None
    try:
        read = read_sentencepiece(path)
    except UnsupportedModelError:
        return None
    n = len(read[TOKENS])
    scores = np.full(len(tokens), _UNUSED_SCORE)
    for index, (token, score) in enumerate(zip(read[TOKENS], read[SCORES], strict=True)):
        if index < len(tokens) and token == tokens[index]:
            scores[index] = score
    return scores if n <= len(tokens) else None


def _by_rank(tokens: Sequence[str], merges: Sequence[str]) -> NDArray[np.float64]:
    """The rank of the first merge that makes a piece, negated."""
    ids = {text: index for index, text in enumerate(tokens) if text}
    scores = np.full(len(tokens), _UNUSED_SCORE)
    for rank, merge in enumerate(reversed(merges)):
        left, _, right = merge.partition(" ")
        if (index := ids.get(left + right)) is not None:
            scores[index] = -float(len(merges) - 1 - rank)
    return scores


def _grouped(merges: Iterable[tuple[str, ...]]) -> list[tuple[str, frozenset[tuple[str, ...]]]]:
    """Return merges by the piece that they make; whose order decides between equal scores."""
    groups: list[tuple[str, set[tuple[str, ...]]]] = []
    for merge in merges:
        piece = "".join(merge)
        if not groups or groups[-1][0] != piece:
            groups.append((piece, set()))
        groups[-1][1].add(merge)
    return [(piece, frozenset(splits)) for piece, splits in groups]


def _notes_on_spaces(read: ReadTokenizer) -> list[str]:
    if not read.metadata.get("tokenizer.ggml.add_space_prefix"):
        return []
    if read.prefix_at_start_only:
        return ["tokenizer.json puts a space before a text alone; by GGUF's keys, text after a "
        "special token gets one as well"]  # fmt: skip
    if read.prefix_unless_there:
        return ["tokenizer.json puts no space before a text that begins with one; by GGUF's keys, "
                "every text gets one"]  # fmt: skip
    return []


def _fill_up(keys: dict[str, Any], n_rows: int) -> None:
    """Give every row of the embedding its own token."""
    tokens: list[str] = list(keys[TOKENS])
    more = n_rows - len(tokens)
    tokens += [""] * more
    keys[TOKENS] = [text or f"[PAD{index}]" for index, text in enumerate(tokens)]
    keys[TOKEN_TYPE] = [*keys[TOKEN_TYPE], *[UNUSED] * more]
    if SCORES in keys:
        keys[SCORES] = [*keys[SCORES], *[_UNUSED_SCORE] * more]


def _add_stops(keys: dict[str, Any], stop_ids: Iterable[int]) -> list[str]:
    """Name tokens that end a text where a reader of the file would not find them itself."""
    for key in _MORE_STOPS:
        found = read_vocabulary(keys).stop_ids
        missing = [index for index in stop_ids if index not in found]
        if not missing:
            return []
        keys.setdefault(key, missing[0])
    found = read_vocabulary(keys).stop_ids
    left = [repr(keys[TOKENS][index]) for index in stop_ids if index not in found]
    return [f"GGUF has no key for more tokens that end a text: {', '.join(left)}"] if left else []
