"""The lines that a person typed in earlier chats, in a file that only they can read."""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from akunu.common.state_folder import state_path

_KEPT_ENTRIES = 1000
_MOST_ENTRIES = 2000  # from here on the file is shortened to the kept ones
_MOST_BYTES = 16 * 2**20  # a file beyond this is not ours


def history_path() -> Path | None:
    """Return where the history is; None where there is no home."""
    return state_path("chat-history")


class History:
    """A file with one JSON string per line, the oldest first; mode 600.

    It is written entry by entry, so that chats side by side lose nothing. A file that cannot be
    read or written is no reason to stop: `problem` says what is wrong with it.
    """

    def __init__(self, path: Path | None, *, is_kept: bool = True) -> None:
        """Read the file, if there is one; `is_kept`: whether what is typed now goes there."""
        self._path = path
        self._is_kept = is_kept
        self.problem = "" if path is not None or not is_kept else "there is no home directory"
        self.entries: list[str] = []
        if path is None:
            return
        try:
            if path.exists():
                self.entries = _read(path)
        except OSError as error:
            self._fail(error)
        if is_kept and len(self.entries) >= _MOST_ENTRIES:
            self.entries = self.entries[-_KEPT_ENTRIES:]
            try:
                _replace(path, self.entries)
            except OSError as error:
                self._fail(error)

    def add(self, entry: str) -> bool:
        """Append a typed entry; False if it is empty or the same as the last."""
        if not entry.strip() or self.entries[-1:] == [entry]:
            return False
        self.entries.append(entry)
        if self._is_kept and self._path is not None and not self.problem:
            try:
                _append(self._path, entry)
            except OSError as error:
                self._fail(error)
        return True

    def _fail(self, error: OSError) -> None:
        self.problem = f"{self._path}: {error.strerror or error}"


def _read(path: Path) -> list[str]:
    if not path.is_file() or path.stat().st_size > _MOST_BYTES:
        raise OSError(0, "not a history of akunu")
    entries = []
    for line in path.read_bytes().splitlines():
        with suppress(ValueError):  # a line cut short by a full disk
            entry = json.loads(line)
            if isinstance(entry, str):
                entry.encode()  # a UnicodeEncodeError is a ValueError
                entries.append(entry)
    return entries


def _append(path: Path, entry: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
        os.write(descriptor, _line(entry))
    finally:
        os.close(descriptor)


def _replace(path: Path, entries: list[str]) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)  # mode 600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(map(_line, entries))
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _line(entry: str) -> bytes:
    return json.dumps(entry, ensure_ascii=False).encode() + b"\n"
