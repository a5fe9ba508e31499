"""Importance matrices: how large the inputs of each matrix are, column by column, on a text.

Experts are matrices of one tensor, each with the inputs of the tokens that went to it.
Read are the two forms that llama.cpp's `llama-imatrix` writes: GGUF files, and the older .dat.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from akunu import _core
from akunu.common.atomic_file import atomic_write
from akunu.common.files import open_regular
from akunu.convert.gguf_writer import GgufLayout, TensorPlan, Value
from akunu.errors import ArgumentError, ModelFormatError

Counts = NDArray[np.uint64]
"""Rows of each matrix, [matrices]."""
Squares = tuple[NDArray[np.float64], Counts]
"""Sums of squares, [matrices, k], and the rows that they are of."""

_SUMS: Final = ".in_sum2"
_COUNTS: Final = ".counts"
_MOST_ENTRIES: Final = 1 << 20
_LONGEST_NAME: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class ImportanceMatrix:
    """Mean squares of inputs, by the name of the matrix that they are multiplied with."""

    means: dict[str, NDArray[np.float32]]
    """[k], or [experts, k]."""
    datasets: tuple[str, ...]
    """The texts that they are of, as the file names them."""
    chunks: int
    """How many pieces of text were read; 0 where the file does not say."""
    unseen: dict[str, int] = field(default_factory=dict)
    """By tensor, of how many of its matrices nothing is known: experts that no token went to. All
    of their columns count the same. The older form does not say it."""

    @classmethod
    def of_squares(
        cls, squares: Mapping[str, Squares], datasets: tuple[str, ...], chunks: int
    ) -> ImportanceMatrix:
        """Make the matrix of an InputObserver's sums; tensors without any input are left out."""
        means = {}
        unseen = {}
        for name, (sums, counts) in squares.items():
            if not counts.any():
                continue
            means[name], unseen[name] = _means(sums, counts.reshape(-1, 1))
        return cls(means, datasets, chunks, _without_zeros(unseen))

    def write(
        self, path: Path, counts: Mapping[str, Counts], chunk_size: int, *, force: bool
    ) -> None:
        """Write the GGUF form, whole or not at all.

        `counts`: how many rows each matrix of an entry is of. `chunk_size`: tokens of a chunk.
        Raises what `atomic_write` raises.
        """
        tensors = []
        data = []
        for name, means in self.means.items():
            columns = means.reshape(-1, means.shape[-1])
            rows = counts[name].astype(np.float32).reshape(-1, 1)
            tensors.append(TensorPlan(name + _SUMS, columns.shape, "F32"))
            tensors.append(TensorPlan(name + _COUNTS, rows.shape, "F32"))
            data += [columns * rows, rows]
        layout = GgufLayout(
            [
                Value.of("general.type", "imatrix"),
                Value.of_strings("imatrix.datasets", self.datasets),
                Value.of("imatrix.chunk_count", self.chunks),
                Value.of("imatrix.chunk_size", chunk_size),
            ],
            tensors,
        )
        with atomic_write(path, layout.size, force=force) as file:
            file.write(layout.head)
            for tensor, numbers in zip(tensors, data, strict=True):
                layout.write_tensor(file, tensor, numbers.astype(np.float32).view(np.uint8))

    @classmethod
    def read(cls, path: Path) -> ImportanceMatrix:
        """Read a file, told apart by content.

        Raises ArgumentError where it cannot be read, ModelFormatError where it contradicts itself.
        """
        try:
            with open_regular(path) as file:
                is_gguf = file.read(4) == b"GGUF"
            return _of_gguf(path) if is_gguf else _of_dat(path.read_bytes(), path)
        except OSError as error:
            raise ArgumentError(f"{path}: {error.strerror}") from None


def _of_gguf(path: Path) -> ImportanceMatrix:
    file = _core.GgufFile(path)
    tensors = {tensor.name: tensor for tensor in file.tensors}
    means = {}
    unseen = {}
    for name, tensor in tensors.items():
        if not name.endswith(_SUMS):
            continue
        matrix = name.removesuffix(_SUMS)
        counts = tensors.get(matrix + _COUNTS)
        if counts is None:
            raise ModelFormatError(f"{path}: there is no {matrix}{_COUNTS}")
        for each in (tensor, counts):
            if each.type_name != "F32":
                raise ModelFormatError(f"{path}: {each.name} is {each.type_name}, not F32")
        sums = tensor.data.view(np.float32).reshape(-1, tensor.shape[-1])
        n = counts.data.view(np.float32).reshape(-1, 1)
        if len(n) != len(sums):
            raise ModelFormatError(f"{path}: {matrix} has {len(sums)} sums and {len(n)} counts")
        values, unseen[matrix] = _means(sums, n)
        means[matrix] = _checked(values, path, matrix)
    if not means:
        raise ModelFormatError(f"{path}: it is not an importance matrix: no tensor ends in {_SUMS}")
    file.check()
    datasets = file.get("imatrix.datasets", ())
    chunks = file.get("imatrix.chunk_count", 0)
    return ImportanceMatrix(
        means,
        tuple(datasets) if isinstance(datasets, list) else (),
        chunks if isinstance(chunks, int) else 0,
        _without_zeros(unseen),
    )


def _means(sums: NDArray[Any], counts: NDArray[Any]) -> tuple[NDArray[np.float32], int]:
    """Sums [matrices, k] over counts [matrices, 1], and how many matrices have no rows.

    Every column of those counts the same, as in llama.cpp.
    """
    is_seen = counts > 0
    means = np.where(is_seen, sums / np.where(is_seen, counts, 1), 1)
    return means.astype(np.float32), int((~is_seen).sum())


def _without_zeros(numbers: dict[str, int]) -> dict[str, int]:
    return {name: number for name, number in numbers.items() if number > 0}


class _Bytes:
    """The older form, from its beginning on."""

    def __init__(self, data: bytes, path: Path) -> None:
        self._data = data
        self._path = path
        self.at = 0

    @property
    def is_over(self) -> bool:
        return self.at == len(self._data)

    def take(self, n: int, what: str) -> bytes:
        left = len(self._data) - self.at
        if not 0 <= n <= left:
            raise ModelFormatError(
                f"{self._path}, byte {self.at}: {what} needs {n} bytes, {left} are left; "
                "it is not an importance matrix, or it was cut off"
            )
        self.at += n
        return self._data[self.at - n : self.at]

    def number(self, what: str, most: int = 0x7FFFFFFF) -> int:
        (value,) = struct.unpack("<i", self.take(4, what))
        if not 0 <= value <= most:
            raise ModelFormatError(
                f"{self._path}, byte {self.at - 4}: {what} is {value}; it is not an importance "
                f"matrix"
            )
        return int(value)


def _of_dat(data: bytes, path: Path) -> ImportanceMatrix:
    read = _Bytes(data, path)
    means: dict[str, NDArray[np.float32]] = {}
    for _ in range(read.number("the number of entries", _MOST_ENTRIES)):
        length = read.number("the length of a name", _LONGEST_NAME)
        name = read.take(length, "a name").decode("utf-8", "surrogateescape")
        calls = read.number(f"the calls of {name}")
        n = read.number(f"the length of {name}")
        values = np.frombuffer(read.take(4 * n, name), np.float32)
        if name in means:
            raise ModelFormatError(f"{path}: {name} is there twice")
        means[name] = _checked(values / np.float32(max(calls, 1)), path, name)
    if not means:
        raise ModelFormatError(f"{path}: it has no entries")
    chunks = 0
    datasets: tuple[str, ...] = ()
    if not read.is_over:
        chunks = read.number("the number of chunks")
        if not read.is_over:
            length = read.number("the length of the text's name", _LONGEST_NAME)
            datasets = (read.take(length, "the text's name").decode("utf-8", "surrogateescape"),)
    return ImportanceMatrix(means, datasets, chunks)


def _checked(values: NDArray[np.float32], path: Path, name: str) -> NDArray[np.float32]:
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise ModelFormatError(f"{path}: {name} has a number that is negative, infinite or NaN")
    return np.ascontiguousarray(values, np.float32)


def unseen_note(unseen: Mapping[str, int], means: Mapping[str, NDArray[np.float32]]) -> str:
    """Return a line about experts that no token went to; an empty one where there are none."""
    if not unseen:
        return ""
    stacks = [values for values in means.values() if len(values.reshape(-1, values.shape[-1])) > 1]
    n_experts = sum(len(values.reshape(-1, values.shape[-1])) for values in stacks)
    return (
        f"no token went to {sum(unseen.values())} of {n_experts} experts' matrices "
        f"({len(unseen)} of {len(stacks)} tensors): their columns have equal importance; a longer "
        f"text reaches more experts"
    )


def missing_from(matrix: ImportanceMatrix, names: Iterable[str]) -> list[str]:
    """Return which of the names it says nothing of."""
    return [name for name in names if name not in matrix.means]
