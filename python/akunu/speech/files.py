"""What a Whisper model's files have besides its weights, whatever kind of files they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from akunu import _core
from akunu.common.metadata import Metadata
from akunu.errors import ModelFormatError
from akunu.speech.mel import mel_filters
from akunu.speech.speech_settings import SpeechSettings
from akunu.speech.vocabulary.known_models import alignment_heads, known_model, non_speech_tokens
from akunu.speech.vocabulary.sources import JsonWords, VocabularyWords, WhisperWords
from akunu.storage.model_files import ModelFiles, WhisperCppModel, open_model_files, read_tokenizer

MEL_FILTERS: Final = "whisper.encoder.mel_filters"
"""The key of a GGUF file that has them: n_mels times 201 numbers, a band after the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WhisperFiles:
    """What Python reads of a model; the engine reads numbers and weights."""

    alignment_heads: tuple[tuple[int, int], ...]
    """(layer, head) whose attention says when words are said; (): no one knows."""
    read_words: Callable[[], WhisperWords]
    """Reads and checks the vocabulary."""
    read_settings: Callable[[WhisperWords], SpeechSettings]
    """Returns how texts are written, some of which may follow from the vocabulary."""
    read_filters: Callable[[int], NDArray[np.float32]]
    """Returns mel filters [n_mels, 201] for a number of bands."""


def open_whisper_files(path: Path) -> WhisperFiles:
    """Open what a path names; raises what the readers raise, and ModelFormatError."""
    if _core.is_model_directory(path):
        return _of_directory(path if path.is_dir() else path.parent)
    files = open_model_files(path)
    return _of_whisper_cpp(files) if isinstance(files, WhisperCppModel) else _of_keys(files)


def _of_directory(directory: Path) -> WhisperFiles:
    settings = SpeechSettings.of_directory(directory)
    return WhisperFiles(
        alignment_heads=settings.alignment_heads,
        read_words=lambda: JsonWords(directory / "tokenizer.json"),
        read_settings=lambda _: settings,
        read_filters=mel_filters,
    )


def _of_keys(file: ModelFiles) -> WhisperFiles:
    settings = SpeechSettings.of_metadata(file, file.path)
    return WhisperFiles(
        alignment_heads=settings.alignment_heads,
        read_words=lambda: VocabularyWords(read_tokenizer(file), file.path),
        read_settings=lambda _: settings,
        read_filters=lambda n_mels: _filters_of(file, n_mels, file.path),
    )


def _of_whisper_cpp(files: WhisperCppModel) -> WhisperFiles:
    known = known_model(files["n_audio_layer"], files["n_text_layer"], files["n_vocab"])
    heads = () if known is None else alignment_heads(known)

    def settings(words: WhisperWords) -> SpeechSettings:
        return SpeechSettings(
            suppress_tokens=non_speech_tokens(words.encode), alignment_heads=heads
        )

    return WhisperFiles(
        alignment_heads=heads,
        read_words=lambda: VocabularyWords(read_tokenizer(files), files.path),
        read_settings=settings,
        read_filters=lambda _: files.file.mel_filters,
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
