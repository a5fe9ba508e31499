"""The file of a saved session: its tokens, and the keys and values that the engine has of them.

    bytes 0 to 8     b"AKUNUSES"
    bytes 8 to 12    version of the form, uint32: 1
    bytes 12 to 16   bytes of the header, uint32
    from 16 on       the header, JSON in UTF-8
    then             tokens, uint32 [n_tokens]
    then             keys and values, `n_bytes` of them

All numbers are little-endian. Keys and values are those of the first `n_positions` tokens, as
src/cache/saved_positions.h lays them out. The header says of which model and in which format they
are, what computed them, and has a digest of all that follows it.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from akunu.common.atomic_file import atomic_write, check_target
from akunu.common.files import open_regular
from akunu.errors import SessionFileError

MAGIC: Final = b"AKUNUSES"
VERSION: Final = 1
_PREFIX: Final = 16
_MOST_HEADER: Final = 1 << 28  # bytes; a conversation is in it


@dataclass(frozen=True, slots=True)
class SavedSession:
    """What a file holds."""

    header: Mapping[str, Any]
    tokens: NDArray[np.uint32]
    positions: NDArray[np.uint8]


def write_session(
    path: Path,
    header: Mapping[str, Any],
    tokens: NDArray[np.uint32],
    positions: NDArray[np.uint8],
) -> None:
    """Write a file that appears whole or not at all, in the place of an earlier one.

    Raises ArgumentError for a path that cannot be written, and AkunuError for a full disk.
    """
    check_target(path, force=True, sources=[])
    body: list[bytes | memoryview] = [tokens.astype("<u4").tobytes(), positions.data]
    whole = {
        **header,
        "n_tokens": len(tokens),
        "n_bytes": positions.size,
        "digest": _digest(*body),
    }
    text = json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode()
    numbers = VERSION.to_bytes(4, "little") + len(text).to_bytes(4, "little")
    size = _PREFIX + len(text) + sum(len(part) for part in body)
    with atomic_write(path, size, force=True) as file:
        for part in (MAGIC + numbers + text, *body):
            file.write(part)


def read_session(path: Path) -> SavedSession:
    """Read a file and check that it is whole; SessionFileError says what is wrong with it."""
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size < _PREFIX:
                raise SessionFileError(f"{path} is not a saved session: it has {size} bytes")
            mapped = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError as error:
        raise SessionFileError(f"{path} cannot be read: {error.strerror or error}") from None
    if bytes(mapped[:8]) != MAGIC:
        raise SessionFileError(f"{path} is not a saved session: it does not begin like one")
    version = int.from_bytes(mapped[8:12], "little")
    if version != VERSION:
        raise SessionFileError(
            f"{path} is a session in format version {version}; this akunu reads {VERSION}"
        )
    end = _PREFIX + int.from_bytes(mapped[12:_PREFIX], "little")
    if end - _PREFIX > _MOST_HEADER:
        raise SessionFileError(f"{path}: its header would have {end - _PREFIX} bytes")
    _refuse_cut(path, size, end)
    header = _header_of(path, bytes(mapped[_PREFIX:end]))
    n_tokens, n_bytes = header["n_tokens"], header["n_bytes"]
    _refuse_cut(path, size, end + 4 * n_tokens + n_bytes)
    if size > end + 4 * n_tokens + n_bytes:
        raise SessionFileError(
            f"{path} has {size - end - 4 * n_tokens - n_bytes} bytes more than its header says"
        )
    body = mapped[end:]
    if _digest(body[: 4 * n_tokens], body[4 * n_tokens :]) != header["digest"]:
        raise SessionFileError(f"{path} is damaged: its bytes are not the saved ones")
    tokens = np.frombuffer(body, "<u4", n_tokens).astype(np.uint32)
    return SavedSession(header, tokens, np.frombuffer(body, np.uint8, n_bytes, 4 * n_tokens))


def _refuse_cut(path: Path, size: int, needed: int) -> None:
    if size < needed:
        raise SessionFileError(f"{path} is cut off: it has {size} of {needed} bytes")


def _digest(*parts: bytes | memoryview) -> str:
    digest = hashlib.blake2b(digest_size=32)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


# The type of each entry of the header.
_ENTRIES: Final[Mapping[str, type]] = {
    "akunu": str,
    "model": dict,
    "kv_type": str,
    "layout": list,
    "computed_by": dict,
    "n_positions": int,
    "first_entries": list,
    "conversation": (dict, type(None)),  # type: ignore[dict-item]
    "n_tokens": int,
    "n_bytes": int,
    "digest": str,
}


def _header_of(path: Path, text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SessionFileError(f"{path}: its header is not JSON: {error}") from None
    if not isinstance(header, dict):
        raise SessionFileError(f"{path}: its header is not a JSON object")
    for name, wanted in _ENTRIES.items():
        found = header.get(name)
        if name not in header or not isinstance(found, wanted) or isinstance(found, bool):
            raise SessionFileError(f"{path}: {name!r} of its header is {found!r:.80}")
    if min(header[name] for name in ("n_tokens", "n_positions", "n_bytes")) < 0:
        raise SessionFileError(f"{path}: a count in its header is negative")
    if any(type(each) is not int or not 0 <= each < 2**32 for each in header["first_entries"]):
        raise SessionFileError(f"{path}: 'first_entries' of its header are not counts")
    if header["n_positions"] > header["n_tokens"]:
        raise SessionFileError(f"{path} has more positions than tokens")
    return header
