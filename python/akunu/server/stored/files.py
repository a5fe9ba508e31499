"""Files that clients upload, and those that batches write: a record of each, and its content."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from starlette.requests import Request

from akunu.common.clock_and_ids import random_hex
from akunu.server.http.errors import ApiError
from akunu.server.state import entry_of, state_of
from akunu.server.stored.items import not_found
from akunu.server.stored.store import FolderStore, Key, merged, sync_folder, too_full

_PIECE: Final = 1 << 20


def folder_of(request: Request, what: str, param: str | None = None) -> FolderStore:
    """Return the store of a server with a journal; ApiError for one without.

    `what`: needs it. `param`: the field that asks for it.
    """
    store = state_of(request).store
    if not isinstance(store, FolderStore):
        raise ApiError(
            400,
            f"{what} need a folder to be stored in: start the server with --journal FOLDER",
            param=param,
            code="journal_required",
        )
    return store


@dataclass(frozen=True, slots=True)
class StoredFiles:
    """The files of one owner."""

    store: FolderStore
    owner: str

    @classmethod
    def of(cls, request: Request) -> StoredFiles:
        """Return those of the key that a request has."""
        return cls(folder_of(request, "files"), entry_of(request).owner or "")

    def upload(self, file: BinaryIO, name: str, seconds: int | None) -> dict[str, Any]:
        """Store what was uploaded; `seconds`: how long. ApiError where there is no room."""
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        if (free := self.store.free_bytes()) < size:
            raise too_full(f"it has {size} bytes, and journal_size leaves {max(0, free)}")
        file_id = new_file_id()
        path = self.content(file_id)
        try:
            with open(path, "xb", opener=_owners_only) as copy:
                shutil.copyfileobj(file, copy, _PIECE)
                os.fsync(copy.fileno())
            sync_folder(path.parent)
            return self.add(file_id, name, "batch", seconds)
        except OSError as error:
            path.unlink(missing_ok=True)
            raise too_full(error.strerror or str(error)) from None
        except ApiError:
            path.unlink(missing_ok=True)
            raise

    def add(self, file_id: str, name: str, purpose: str, seconds: int | None) -> dict[str, Any]:
        """Make a file of a content that is there."""
        created = int(time.time())
        told = {
            "id": file_id,
            "object": "file",
            "bytes": self.content(file_id).stat().st_size,
            "created_at": created,
            "expires_at": None if seconds is None else created + seconds,
            "filename": name,
            "purpose": purpose,
            "status": "processed",
        }
        self.store.add(self._key(file_id), {"file": told})
        return told

    def find(self, file_id: str, param: str | None = None) -> dict[str, Any]:
        """Return a file; ApiError where there is none. `param`: the field that names it."""
        found = merged(self.store.find(self._key(file_id)))
        if found:
            told: dict[str, Any] = found["file"]
            if told["expires_at"] is None or told["expires_at"] > time.time():
                return told
            self.delete(file_id)
        raise not_found("file", file_id, param=param)

    def all(self) -> list[dict[str, Any]]:
        """Return all files, the oldest first."""
        found = []
        for _, _, file_id in self.store.keys("files", self.owner):
            try:
                found.append(self.find(file_id))
            except ApiError:  # its time has come
                continue
        return sorted(found, key=lambda each: (each["created_at"], each["id"]))

    def delete(self, file_id: str) -> None:
        """Delete a file; ApiError where there is none."""
        if not self.store.delete(self._key(file_id)):
            raise not_found("file", file_id)
        self.content(file_id).unlink(missing_ok=True)

    def content(self, file_id: str) -> Path:
        """Return where the content of a file is, or will be."""
        return self.store.content(self.owner, file_id)

    def _key(self, file_id: str) -> Key:
        return self.owner, "files", file_id


def new_file_id() -> str:
    """Return the id of a new file."""
    return f"file-{random_hex(16)}"


def _owners_only(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)
