"""What a model's files say in addition to its weights; all contexts of the model share it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from akunu.options.sampling_defaults import sampling_defaults_of
from akunu.storage.model_identity import digest_of, seen_files

if TYPE_CHECKING:
    from akunu.storage.model_files import ModelFiles
    from akunu.tokenizers.tokenizer import Tokenizer


class LoadedFiles:
    """The files of a model as they were when it was loaded."""

    def __init__(self, path: Path, tokenizer: Tokenizer, files: ModelFiles) -> None:
        """`path`: what was loaded."""
        self.path = path
        self.tokenizer = tokenizer
        sampling, notes = sampling_defaults_of(files, path)
        self.sampling_defaults: Mapping[str, Any] = MappingProxyType(sampling)
        self.notes: tuple[str, ...] = (*tokenizer.notes, *notes)
        self._seen = seen_files(files)
        self._is_building = threading.Lock()  # held while the digest is made

    @property
    def digest(self) -> str:
        """A digest of the files; made once, it reads all of them."""
        with self._is_building:
            return self._made_digest

    @cached_property
    def _made_digest(self) -> str:
        return digest_of(self._seen)
