"""Where objects are stored: files next to the journal, or memory where there is no journal.

An object is a list of records, of which the later ones say what has changed. Each owner, which is
a key of the server, finds its own objects only.
"""

from __future__ import annotations

import json
import os
import re
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, Final, Protocol

from akunu.server.http.errors import ApiError
from akunu.server.journal.file import JournalFile, Record
from akunu.server.journal.journal import SUFFIX, Journal

MEMORY_BYTES: Final = 64 << 20
"""What objects may take without a journal; the least recently used ones are forgotten."""
_NAME: Final = re.compile("[a-z]+[_-][0-9a-f]{32}")
_LASTING: Final = ".object"
"""The suffix of objects that stay until they are deleted; others have the journal's limits."""
_LASTING_KINDS: Final = ("background", "batches", "files")

Key = tuple[str, str, str]
"""The owner, the kind and the id of an object."""


class ObjectStore(Protocol):
    """Keeps objects."""

    def find(self, key: Key) -> list[Record]:
        """Return the records of an object; [] where there is none."""
        ...

    def add(self, key: Key, record: Record) -> None:
        """Add a record to an object, or make it. ApiError where that cannot be."""
        ...

    def delete(self, key: Key) -> bool:
        """Delete an object; return whether there was one."""
        ...

    def close(self) -> None:
        """Finish what is being written."""
        ...


def store_of(journal: Journal | None) -> ObjectStore:
    """Return where a server stores objects."""
    return MemoryStore() if journal is None else FolderStore(journal)


class MemoryStore:
    """Objects that are gone when the server ends.

    >>> store = MemoryStore(most_bytes=30)
    >>> for name in "abc":
    ...     store.add(("", "responses", name), {"number": 1})
    >>> [store.find(("", "responses", name)) for name in "abc"]
    [[], [{'number': 1}], [{'number': 1}]]
    """

    def __init__(self, most_bytes: int = MEMORY_BYTES) -> None:
        """`most_bytes`: as JSON."""
        self._most_bytes = most_bytes
        self._n_bytes = 0
        self._objects: OrderedDict[Key, list[str]] = OrderedDict()

    def find(self, key: Key) -> list[Record]:
        """Return the records of an object."""
        lines = self._objects.get(key)
        if lines is None:
            return []
        self._objects.move_to_end(key)
        return [json.loads(each) for each in lines]

    def add(self, key: Key, record: Record) -> None:
        """Add a record; what does not fit with the others is refused."""
        line = json.dumps(record, separators=(",", ":"))
        size = len(line)
        if size > self._most_bytes:
            raise too_full(f"it has {size} bytes; without a journal there is room for fewer")
        self._objects.setdefault(key, []).append(line)
        self._objects.move_to_end(key)
        self._n_bytes += size
        while self._n_bytes > self._most_bytes:
            self.delete(next(iter(self._objects)))

    def delete(self, key: Key) -> bool:
        """Delete an object."""
        lines = self._objects.pop(key, None)
        self._n_bytes -= sum(map(len, lines or ()))
        return lines is not None

    def close(self) -> None:
        """There is nothing to finish."""


class FolderStore:
    """Objects in files of the journal, which outlive the process."""

    def __init__(self, journal: Journal) -> None:
        """`journal`: holds the lock of the folder."""
        self._journal = journal
        self.folder = journal.folder / "objects"
        # Waiting for the disk delays no text; a process that is killed has written already.
        self._syncing = ThreadPoolExecutor(1, "akunu store")
        self._lock = Lock()  # reading a file cuts off what is not whole

    def find(self, key: Key) -> list[Record]:
        """Return the records of an object, which counts as used."""
        path = self._path(key)
        if path is None or not path.exists():
            return []
        with self._lock:
            file = JournalFile(path)
            try:
                os.utime(path)
                return file.read()
            finally:
                file.close()

    def add(self, key: Key, record: Record) -> None:
        """Add a record; when this is over, it outlives the process."""
        path = self._path(key)
        assert path is not None, key
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise too_full(error.strerror or str(error)) from None
        with self._lock:
            file = JournalFile(path)
            try:
                file.read()  # which finds its end
                n_bytes = file.append(record)
            except BaseException:
                if not path.stat().st_size:
                    path.unlink()
                file.close()
                raise
        self._syncing.submit(self._sync, file, n_bytes)

    def _sync(self, file: JournalFile, n_bytes: int) -> None:
        with suppress(OSError):
            file.sync()
            sync_folder(file.path.parent)
        file.close()
        self._journal.wrote(n_bytes)

    def delete(self, key: Key) -> bool:
        """Delete an object."""
        path = self._path(key)
        if path is None or not path.exists():
            return False
        with self._lock:
            path.unlink()
        return True

    def keys(self, kind: str, owner: str | None = None) -> list[Key]:
        """Return the keys of all objects of a kind that lasts; `owner`: of this one only."""
        owners = "*" if owner is None else _folder_of(owner)
        paths = self.folder.glob(f"{owners}/{kind}/*{_LASTING}")
        return [(_owner_of(path), kind, path.name.removesuffix(_LASTING)) for path in paths]

    def content(self, owner: str, name: str) -> Path:
        """Return where the content of a file is, in a folder that exists. `name`: a file's id."""
        folder = self.folder / _folder_of(owner) / "contents"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder / name

    def free_bytes(self) -> int:
        """Return how many bytes of files there is still room for."""
        sizes = (path.stat().st_size for path in self.folder.glob("*/contents/*"))
        return self._journal.most_bytes - sum(sizes)

    def close(self) -> None:
        """Have on the disk what was written."""
        self._syncing.shutdown()

    def _path(self, key: Key) -> Path | None:
        owner, kind, name = key
        if not _NAME.fullmatch(name):
            return None
        suffix = _LASTING if kind in _LASTING_KINDS else SUFFIX
        return self.folder / _folder_of(owner) / kind / (name + suffix)


def _folder_of(owner: str) -> str:
    return "o" + owner.encode().hex()


def _owner_of(path: Path) -> str:
    return bytes.fromhex(path.parts[-3][1:]).decode()


def sync_folder(folder: Path) -> None:
    """Return when the names in a folder outlive the machine."""
    number = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def too_full(why: str) -> ApiError:
    """Return the error for what there is no room for."""
    return ApiError(
        507,
        f"this cannot be stored: {why}",
        code="storage_full",
        headers={"x-should-retry": "false"},
    )


def merged(records: list[Record]) -> dict[str, Any]:
    """Return an object as its records leave it; {} for none."""
    found: dict[str, Any] = {}
    for each in records:
        found.update(each)
    return found
