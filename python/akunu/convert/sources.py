"""What model files are made from: tensors and keys, whatever kind of file they lie in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from akunu import _core
from akunu.convert.gguf_writer import Value


class Tensor(Protocol):
    """One tensor under GGUF's name of it; `_core.GgufTensor` has the form."""

    @property
    def name(self) -> str:
        """Such as 'blk.0.attn_q.weight'."""

    @property
    def shape(self) -> tuple[int, ...]:
        """In NumPy's order: the last dimension is contiguous."""

    @property
    def type_name(self) -> str:
        """The number format of `data`."""

    @property
    def data(self) -> NDArray[np.uint8]:
        """Its bytes; made or read when asked for."""


class ModelSource(Protocol):
    """A model that another file is made from."""

    @property
    def tensors(self) -> Sequence[Tensor]:
        """All of them, in the order in which they are written."""

    @property
    def parts(self) -> list[str]:
        """The files that it lies in."""

    @property
    def alignment(self) -> int:
        """What the data of each tensor is aligned to."""

    @property
    def notes(self) -> list[str]:
        """What of it is not taken as it is, or not at all."""

    def get(self, key: str, default: object = None) -> Any:
        """Return the value of a key."""

    def values(self, is_kept: Callable[[str], bool]) -> list[Value]:
        """Return the keys that `is_kept` says yes to, encoded."""

    def quantised_as(self, name: str) -> str | None:
        """Return the format in blocks that a tensor lies in; None for plain numbers."""

    def check(self) -> None:
        """Raise ModelFormatError where a file changed since it was opened."""


_FLOATS = frozenset({"F32", "F16", "BF16"})


class GgufSource:
    """A GGUF file; raises what `_core.GgufFile` raises."""

    def __init__(self, path: Path) -> None:
        """Open it."""
        self._file = _core.GgufFile(path)
        self.tensors: Sequence[Tensor] = self._file.tensors
        self.parts = self._file.parts
        self.alignment = self._file.alignment
        self.notes: list[str] = []
        self._types = {tensor.name: tensor.type_name for tensor in self.tensors}

    def get(self, key: str, default: object = None) -> Any:
        """Return the value of a key."""
        return self._file.get(key, default)

    def values(self, is_kept: Callable[[str], bool]) -> list[Value]:
        """Return the keys that `is_kept` says yes to, as they lie."""
        return [Value.copied(self._file, key) for key in self._file if is_kept(key)]

    def quantised_as(self, name: str) -> str | None:
        """Return the format in blocks that a tensor lies in; None for plain numbers."""
        type_name = self._types[name]
        return None if type_name in _FLOATS else type_name

    def check(self) -> None:
        """Raise ModelFormatError where the file changed since it was opened."""
        self._file.check()
