"""Reads a SentencePiece `tokenizer.model`: pieces, scores and types out of its protocol buffer.

The result has the keys that a GGUF file has for the same tokenizer (`tokenizer.ggml.*`). Only what
is in the file is read: nothing here needs the package sentencepiece.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NoReturn, TypeAlias

from akunu.errors import ModelFormatError, UnsupportedModelError

_Fields: TypeAlias = dict[int, list[int | bytes]]

_LARGEST: Final = 1 << 28  # bytes; real ones have 5 MB at most
_BPE: Final = 2  # of trainer_spec.model_type
# GGUF's names, the fields' numbers in trainer_spec, and what they are where the file has none.
_SPECIAL: Final = (("unknown", 40, 0), ("bos", 41, 1), ("eos", 42, 2), ("padding", 43, -1))
_NORMAL: Final = 1  # of a piece's type, whose numbers are GGUF's


def read_sentencepiece(path: Path) -> dict[str, Any]:
    """Return a tokenizer's numbers under the keys of GGUF.

    Raises ModelFormatError for any other file, and UnsupportedModelError for a model that is not a
    byte-pair encoding or normalises text.
    """
    try:
        if path.stat().st_size > _LARGEST:
            _refuse(path, f"has more than {_LARGEST} bytes")
        data = path.read_bytes()
    except OSError as error:
        raise ModelFormatError(f"{path.name} cannot be read: {error}") from None
    if not data:
        _refuse(path, "is empty")
    model = _fields(path, data)
    trainer = _fields(path, _bytes(model, 2))
    normalizer = _fields(path, _bytes(model, 3))
    kind = _number(trainer, 3, 1)
    if kind != _BPE:
        names = {1: "unigram", 3: "word", 4: "char"}
        raise UnsupportedModelError(
            f"{path.name}: the model is of type {names.get(kind, kind)!r}; akunu has 'bpe'"
        )
    if _bytes(normalizer, 2):
        raise UnsupportedModelError(f"{path.name}: it normalises text, which akunu does not")
    tokens: list[str] = []
    scores: list[float] = []
    types: list[int] = []
    for each in _all_bytes(path, model, 1):
        piece = _fields(path, each)
        tokens.append(_bytes(piece, 1).decode(errors="surrogateescape"))
        score = _bytes(piece, 2)
        scores.append(struct.unpack("<f", score)[0] if len(score) == 4 else 0.0)
        types.append(_number(piece, 3, _NORMAL))
    if not tokens:
        _refuse(path, "has no pieces")
    metadata: dict[str, Any] = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.scores": scores,
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.add_space_prefix": bool(_number(normalizer, 3, 1)),
    }
    for key, number, usual in _SPECIAL:
        index = _signed(_number(trainer, number, usual))
        if 0 <= index < len(tokens):
            metadata[f"tokenizer.ggml.{key}_token_id"] = index
    return metadata


def _fields(path: Path, data: bytes) -> _Fields:
    """Return the fields of a message by number: a number each, or bytes (floats are bytes, too)."""
    fields: _Fields = {}
    at = 0
    while at < len(data):
        key, at = _varint(path, data, at)
        number, wire = key >> 3, key & 7
        value: int | bytes
        if wire == 0:
            value, at = _varint(path, data, at)
        elif wire in (1, 2, 5):
            length = {1: 8, 5: 4}.get(wire, 0)
            if wire == 2:
                length, at = _varint(path, data, at)
            if length > len(data) - at:
                _refuse(path, f"needs {length} bytes for a field, {len(data) - at} are left")
            value, at = data[at : at + length], at + length
        else:
            _refuse(path, f"has a field of type {wire}")
        fields.setdefault(number, []).append(value)
    return fields


def _varint(path: Path, data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for index in range(10):
        if at + index >= len(data):
            _refuse(path, "ends within a number")
        byte = data[at + index]
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value, at + index + 1
    _refuse(path, "has a number of more than ten bytes")


def _all_bytes(path: Path, fields: _Fields, number: int) -> Iterator[bytes]:
    for value in fields.get(number, []):
        if not isinstance(value, bytes):
            _refuse(path, f"has a number as field {number}")
        yield value


def _bytes(fields: _Fields, number: int) -> bytes:
    value = fields.get(number, [b""])[-1]
    return value if isinstance(value, bytes) else b""


def _number(fields: _Fields, number: int, usual: int) -> int:
    value = fields.get(number, [usual])[-1]
    return value if isinstance(value, int) else usual


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _refuse(path: Path, what: str) -> NoReturn:
    raise ModelFormatError(f"{path.name} {what}: it is not a SentencePiece model")
