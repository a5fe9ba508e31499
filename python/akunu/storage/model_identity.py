"""Which model a file of keys and values belongs to: a digest of the model's files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from akunu.errors import AkunuError

if TYPE_CHECKING:
    from akunu.storage.model_files import ModelFiles

_CHUNK: Final = 1 << 24  # bytes that one thread reads at a time


@dataclass(frozen=True, slots=True)
class SeenFile:
    """A file as it was when the model was loaded."""

    path: Path
    size: int
    changed_ns: int
    inode: int

    @classmethod
    def at(cls, path: Path) -> SeenFile:
        """Look at a file; raises OSError where there is none."""
        found = path.stat()
        return cls(path, found.st_size, found.st_mtime_ns, found.st_ino)


def seen_files(files: ModelFiles) -> tuple[SeenFile, ...]:
    """Return the files that say what a model computes: its tensors and its numbers."""
    paths = [Path(part) for part in files.parts]
    config = Path(files.path) / "config.json"
    if config.is_file():
        paths.append(config)
    return tuple(SeenFile.at(path) for path in paths)


def digest_of(files: tuple[SeenFile, ...]) -> str:
    """Return a digest of all bytes of these files, their names left out; several threads read.

    Raises AkunuError where a file is no longer the one that was loaded: it is then unknown what
    the model in memory is.
    """
    import hashlib
    from concurrent.futures import ThreadPoolExecutor

    whole = hashlib.blake2b(digest_size=32)
    with ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:
        for file in files:
            _check_unchanged(file)
            whole.update(file.size.to_bytes(8, "little"))
            places = range(0, file.size, _CHUNK)
            for part in pool.map(lambda place, path=file.path: _digest_at(path, place), places):
                whole.update(part)
            _check_unchanged(file)
    return whole.hexdigest()


def _digest_at(path: Path, place: int) -> bytes:
    import hashlib

    with path.open("rb") as file:
        file.seek(place)
        return hashlib.blake2b(file.read(_CHUNK), digest_size=32).digest()


def _check_unchanged(file: SeenFile) -> None:
    try:
        is_same = SeenFile.at(file.path) == file
    except OSError:
        is_same = False
    if not is_same:
        raise AkunuError(
            f"{file.path} has changed since the model was loaded, so it cannot be identified; "
            f"load it again"
        )
