"""What a Whisper model's files have besides its weights, whatever kind of files they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from akunu import _core
from akunu._metadata import Metadata
from akunu.errors import ModelFormatError
from akunu.speech.mel import mel_filters
from akunu.speech.speech_settings import SpeechSettings
from akunu.speech.whisper_words import JsonWords, VocabularyWords, WhisperWords

MEL_FILTERS: Final = "whisper.encoder.mel_filters"
"""The key of a GGUF file that has them: n_mels times 201 numbers, a band after the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WhisperFiles:
    """What Python reads of a model; the engine reads numbers and weights."""

    settings: SpeechSettings
    read_words: Callable[[], WhisperWords]
    """Reads and checks the vocabulary."""
    read_filters: Callable[[int], NDArray[np.float32]]
    """Returns mel filters [n_mels, 201] for a number of bands."""


def open_whisper_files(path: Path) -> WhisperFiles:
    """Open what a path names; raises what the readers raise, and ModelFormatError."""
    if _core.is_model_directory(path):
        return _of_directory(path if path.is_dir() else path.parent)
    return _of_gguf(_core.GgufFile(path))


def _of_directory(directory: Path) -> WhisperFiles:
    return WhisperFiles(
        settings=SpeechSettings.of_directory(directory),
        read_words=lambda: JsonWords(directory / "tokenizer.json"),
        read_filters=mel_filters,
    )


def _of_gguf(file: _core.GgufFile) -> WhisperFiles:
    from akunu.tokenizer import Tokenizer

    return WhisperFiles(
        settings=SpeechSettings.of_metadata(file, file.path),
        read_words=lambda: VocabularyWords(Tokenizer._of_file(file), file.path),
        read_filters=lambda n_mels: _filters_of(file, n_mels, file.path),
    )


def _filters_of(metadata: Metadata, n_mels: int, where: str) -> NDArray[np.float32]:
    """Return the file's own filters, or those that every Whisper model has."""
    usual = mel_filters(n_mels)
    if MEL_FILTERS not in metadata:
        return usual
    found = metadata[MEL_FILTERS]
    if (
        not isinstance(found, np.ndarray)
        or found.dtype != np.float32
        or found.size != usual.size
        or not np.isfinite(found).all()
    ):
        raise ModelFormatError(
            f"{where}: {MEL_FILTERS} must be {usual.size} finite numbers in float32, "
            f"{usual.shape[1]} for each of {n_mels} bands"
        )
    return found.reshape(usual.shape)
