"""What a Whisper model's files say of how its texts are written: lists of tokens and of heads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from akunu.common.metadata import Metadata, Reader
from akunu.errors import ModelFormatError

_GENERATION: Final = "generation_config.json"
_IS_MULTILINGUAL: Final = "whisper.is_multilingual"
_SUPPRESS: Final = "whisper.suppress_tokens"
_BEGIN_SUPPRESS: Final = "whisper.begin_suppress_tokens"
_HEADS: Final = "whisper.alignment_heads"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechSettings:
    """Settings in `generation_config.json`, or under akunu's keys in a GGUF file."""

    is_multilingual: bool | None = None
    """None: the size of the vocabulary says it."""
    suppress_tokens: tuple[int, ...] = ()
    """Tokens that no text has."""
    begin_suppress_tokens: tuple[int, ...] = ()
    """Tokens with which no text begins."""
    alignment_heads: tuple[tuple[int, int], ...] = ()
    """(layer, head) whose attention says when words are said; (): no one knows."""

    @classmethod
    def of_directory(cls, directory: Path) -> SpeechSettings:
        """Read generation_config.json; without one, nothing is said.

        Raises ModelFormatError for another JSON type, or `alignment_heads` that are not pairs.
        """
        path = directory / _GENERATION
        said = _read_json(path)
        multilingual = said.get("is_multilingual")
        heads = said.get("alignment_heads") or []
        try:
            pairs = tuple((int(layer), int(head)) for layer, head in heads)
        except (TypeError, ValueError):
            raise ModelFormatError(f"{path}: alignment_heads must be pairs of numbers") from None
        return cls(
            is_multilingual=multilingual if isinstance(multilingual, bool) else None,
            suppress_tokens=_integers(said.get("suppress_tokens")),
            begin_suppress_tokens=_integers(said.get("begin_suppress_tokens")),
            alignment_heads=pairs,
        )

    @classmethod
    def of_metadata(cls, metadata: Metadata, where: str) -> SpeechSettings:
        """Read the keys of a GGUF file (docs/reference/model-files.md); missing keys say nothing.

        `where`: the file, for messages. Raises ModelFormatError for a key of another type.
        """

        def numbers(key: str) -> tuple[int, ...]:
            value = Reader(metadata).value(key)
            if value is None:
                return ()
            if not isinstance(value, np.ndarray) or value.dtype.kind not in "iu":
                raise ModelFormatError(f"{where}: {key} must be an array of integers")
            return tuple(value.tolist())

        multilingual = Reader(metadata).value(_IS_MULTILINGUAL)
        if multilingual is not None and not isinstance(multilingual, bool):
            raise ModelFormatError(f"{where}: {_IS_MULTILINGUAL} must be true or false")
        heads = numbers(_HEADS)
        if len(heads) % 2 != 0 or any(number < 0 for number in heads):
            raise ModelFormatError(
                f"{where}: {_HEADS} must be pairs of a layer and a head, got {len(heads)} numbers"
            )
        return cls(
            is_multilingual=multilingual,
            suppress_tokens=numbers(_SUPPRESS),
            begin_suppress_tokens=numbers(_BEGIN_SUPPRESS),
            alignment_heads=tuple(zip(heads[::2], heads[1::2], strict=True)),
        )

    def keys(self) -> dict[str, bool | NDArray[np.int32]]:
        """Return what `of_metadata` reads; nothing for what is not said."""
        found: dict[str, bool | NDArray[np.int32]] = {}
        if self.is_multilingual is not None:
            found[_IS_MULTILINGUAL] = self.is_multilingual
        for key, listed in (
            (_SUPPRESS, self.suppress_tokens),
            (_BEGIN_SUPPRESS, self.begin_suppress_tokens),
            (_HEADS, [number for pair in self.alignment_heads for number in pair]),
        ):
            if listed:
                found[key] = np.array(listed, np.int32)
        return found


def _integers(listed: object) -> tuple[int, ...]:
    if not isinstance(listed, list):
        return ()
    return tuple(each for each in listed if isinstance(each, int))


def _read_json(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ModelFormatError(f"{path}: {error}") from None
    if not isinstance(found, dict):
        raise ModelFormatError(f"{path}: an object is needed")
    return found
