"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from akunu.errors import AkunuError, ArgumentError

_MEBIBYTE: Final = 1 << 20


def check_target(path: Path, *, force: bool, sources: Iterable[Path]) -> None:
    """Refuse a path that cannot or must not be written.

    `sources` are the files that are read: none of them may be it. Raises ArgumentError.
    """
    for source in sources:
        if path.exists() and source.exists() and path.samefile(source):
            raise ArgumentError(f"{path} is the file to read; name another file to write")
    if path.is_dir():
        raise ArgumentError(f"{path} is a folder; name a file in it")
    if path.exists() and not path.is_file():  # a new file would take the place of the device
        raise ArgumentError(f"{path} is a device, a pipe or a socket; name a file")
    if not path.parent.is_dir():
        raise ArgumentError(f"{path.parent} is not a folder")
    if (path.exists() or path.is_symlink()) and not force:
        raise ArgumentError(f"{path} exists already; --force overwrites it")


@contextmanager
def atomic_write(path: Path, size: int | None = None, *, force: bool) -> Iterator[BinaryIO]:
    """Open a file next to `path` that takes its place when the block ends well, else vanishes.

    `size` is how many bytes it will have, to be refused here where the disk has fewer. Raises
    ArgumentError for a folder that cannot be written, and AkunuError for a disk that is full.
    """
    part = path.with_name(f".{path.name[:200]}.{secrets.token_hex(8)}.part")
    try:
        # Within the block that removes it: Ctrl-C can come before os.open has returned.
        try:
            number = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise ArgumentError(f"{path} cannot be written: {error.strerror}") from None
        try:
            with open(number, "wb") as file:
                _check_room(path, size)
                yield file
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise AkunuError(f"{path} could not be written: {error.strerror or error}") from error
        _put_in_place(part, path, force=force)
    except BaseException:
        with suppress(OSError):
            part.unlink()
        raise
    _sync_folder(path.parent)


def _check_room(path: Path, size: int | None) -> None:
    free = shutil.disk_usage(path.parent).free
    if size is not None and size > free:
        raise AkunuError(
            f"{path} needs {_in_mebibytes(size)}; its disk has {_in_mebibytes(free)} free"
        )


def _put_in_place(part: Path, path: Path, *, force: bool) -> None:
    if force:
        os.replace(part, path)
        return
    try:
        os.link(part, path)  # unlike a rename, it never takes the place of another file
    except FileExistsError:
        raise ArgumentError(f"{path} exists by now; --force overwrites it") from None
    except OSError:  # a file system without links
        os.replace(part, path)
        return
    part.unlink()


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # some file systems have no such thing
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def _in_mebibytes(size: int) -> str:
    return f"{size / _MEBIBYTE:.1f} MiB"
