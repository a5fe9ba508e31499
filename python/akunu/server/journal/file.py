"""A file of the journal: one record a line, after its checksum, appended as an answer comes.

    1c291ca3 {"journal":1,"akunu":"0.1.0","body":"5f3a…","seed":7,…}
    8d1f0b77 {"prompts":[[1,22,315]],"headers":{},…}
    03b5e9f2 {"text":0,"tokens":[881],"event":"data: {…}\\n\\n"}
    …
    c0ffee00 {"text":-1,"tokens":[],"event":"data: [DONE]\\n\\n","over":true}

A process that is killed leaves whole lines, and the beginning of one at most; a machine that loses
power may leave anything after the last `sync`. What follows the first line that is not whole is
cut off when the file is opened again.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from akunu.common.files import check_regular
from akunu.server.http.errors import ApiError

Record = Mapping[str, Any]


class JournalFile:
    """A file that is open, to append to; used from one thread, `sync` from any."""

    def __init__(self, path: Path) -> None:
        """Open a file, which only its owner can read, or make it. ApiError where it cannot be."""
        self.path = path
        self._number = -1
        self._end = 0
        try:
            self._number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            check_regular(self._number, path)
        except OSError as error:
            self.close()
            raise _cannot_write(path, error) from None

    def read(self) -> list[Record]:
        """Return the whole records of the file, and cut off what follows them."""
        with open(self._number, "rb", closefd=False) as file:
            file.seek(0)
            content = file.read()
        records: list[Record] = []
        self._end = 0
        for line in content.splitlines(keepends=True):
            record = _record_of(line)
            if record is None:
                break
            records.append(record)
            self._end += len(line)
        os.ftruncate(self._number, self._end)
        return records

    def append(self, record: Record) -> int:
        """Write a record after the others, or nothing; return its bytes.

        What is written outlives the process. Raises ApiError for a disk that is full.
        """
        line = _line_of(record)
        done = 0
        try:
            while done < len(line):
                done += os.pwrite(self._number, line[done:], self._end + done)
        except OSError as error:
            os.ftruncate(self._number, self._end)
            raise _cannot_write(self.path, error) from None
        self._end += len(line)
        return len(line)

    def sync(self) -> None:
        """Return when what was written outlives the machine."""
        os.fsync(self._number)

    def close(self) -> None:
        """Close it; closing twice is fine."""
        if self._number >= 0:
            os.close(self._number)
        self._number = -1


def _cannot_write(path: Path, error: OSError) -> ApiError:
    return ApiError(
        500,
        f"the journal of answers cannot be written: {error.strerror or error}",
        code="journal_failed",
        headers={"x-should-retry": "false"},
        logged=str(path),
    )


def _line_of(record: Record) -> bytes:
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _record_of(line: bytes) -> Record | None:
    digits, _, text = line.removesuffix(b"\n").partition(b" ")
    if not line.endswith(b"\n") or digits != b"%08x" % zlib.crc32(text):
        return None
    found = json.loads(text)
    return found if isinstance(found, dict) else None
