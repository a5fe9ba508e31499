"""Opens files that another user may have made."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def read_text(path: Path) -> str:
    """Return the text of a file that a person wrote, without the mark that some editors begin with.

    Raises OSError and UnicodeDecodeError.
    """
    return path.read_bytes().decode("utf-8-sig")


def open_regular(path: Path) -> BinaryIO:
    """Open a file to read; OSError for a pipe, a socket or a device.

    Opening a pipe without O_NONBLOCK waits for a writer.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        check_regular(descriptor, path)
    except OSError:
        os.close(descriptor)
        raise
    return open(descriptor, "rb")


def check_regular(descriptor: int, path: Path) -> None:
    """Raise OSError if an open file is not a regular file."""
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
