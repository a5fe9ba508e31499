"""A model's files as they lie: a GGUF file (in one part or several), a directory, or whisper.cpp's.

>>> files = open_model_files("ember.gguf")  # doctest: +SKIP
>>> files.tensors[0].name  # doctest: +SKIP
'token_embd.weight'
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from akunu import _core
from akunu.common.json_files import json_object
from akunu.errors import ModelFormatError, UnsupportedModelError
from akunu.tokenizers.tokenizer import Tokenizer
from akunu.tokenizers.whisper_cpp_vocabulary import vocabulary_keys


class ModelDirectory(Mapping[str, Any]):
    """A Hugging Face or MLX directory: the keys of its config.json, and its tensors.

    Raises what `_core.ModelDirectory` raises.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open a directory, or a safetensors file with its config.json next to it."""
        self._native = _core.ModelDirectory(os.fspath(path))
        config = Path(self._native.path) / "config.json"
        self._config = json_object(self._native.config, config)

    @property
    def path(self) -> str:
        """The path of the directory."""
        return self._native.path

    @property
    def parts(self) -> list[str]:
        """The safetensors files."""
        return self._native.parts

    @property
    def tensors(self) -> list[_core.DirectoryTensor]:
        """All tensors, in the order of the files."""
        return self._native.tensors

    @property
    def text_config(self) -> dict[str, Any]:
        """The numbers of the text model, which may be a part of the whole."""
        text = self._config.get("text_config")
        return text if isinstance(text, dict) else self._config

    def __getitem__(self, key: str) -> Any:
        """Return a value of config.json."""
        return self._config[key]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the keys of config.json."""
        return iter(self._config)

    def __len__(self) -> int:
        """Return how many keys config.json has."""
        return len(self._config)


class WhisperCppModel(Mapping[str, Any]):
    """A model file of whisper.cpp: its numbers as keys, and its tensors.

    Raises what `_core.WhisperCppFile` raises.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open a file."""
        self.file = _core.WhisperCppFile(os.fspath(path))
        self._keys = {"general.architecture": "whisper", **self.file.numbers}

    @property
    def path(self) -> str:
        """The path of the file."""
        return self.file.path

    @property
    def parts(self) -> list[str]:
        """The file."""
        return [self.file.path]

    @property
    def tensors(self) -> list[_core.WhisperCppTensor]:
        """All tensors, in the order of the file."""
        return self.file.tensors

    def __getitem__(self, key: str) -> Any:
        """Return a number by whisper.cpp's name of it."""
        return self._keys[key]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of numbers."""
        return iter(self._keys)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._keys)


ModelFiles: TypeAlias = "_core.GgufFile | ModelDirectory | WhisperCppModel"
TensorFacts: TypeAlias = "_core.GgufTensor | _core.DirectoryTensor | _core.WhisperCppTensor"


def open_model_files(path: str | os.PathLike[str]) -> ModelFiles:
    """Open what a path names, told apart by content; raises what the readers raise."""
    if _core.is_model_directory(os.fspath(path)):
        return ModelDirectory(path)
    if _core.is_whisper_cpp_model(os.fspath(path)):
        return WhisperCppModel(path)
    return _core.GgufFile(os.fspath(path))


def read_tokenizer(files: ModelFiles, chat_template: str | None = None) -> Tokenizer:
    """Read the tokenizer of open files, whose path is in every error.

    `chat_template`: the text of one that takes the place of the model's own.
    """
    tokenizer = _own_tokenizer(files)
    return tokenizer if chat_template is None else tokenizer._with_chat_template(chat_template)


def _own_tokenizer(files: ModelFiles) -> Tokenizer:
    if isinstance(files, ModelDirectory):
        return Tokenizer._of_directory(Path(files.path), files)
    if isinstance(files, WhisperCppModel):
        return _whisper_cpp_tokenizer(files)
    return Tokenizer._of_file(files)


def _whisper_cpp_tokenizer(files: WhisperCppModel) -> Tokenizer:
    try:
        return Tokenizer.from_metadata(vocabulary_keys(files.file.words, files["n_vocab"]))
    except (ModelFormatError, UnsupportedModelError) as error:
        raise type(error)(f"{files.path}: {error}") from None
