"""Keys that clients must have: where they come from, and whether a request has one.

A key is compared in constant time, and it is never in a log, an error or the process list.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from pathlib import Path

from akunu.common.files import read_text
from akunu.errors import ArgumentError
from akunu.server.settings import ServerSettings

_HEADERS = (b"x-api-key", b"api-key")


class Keys:
    """Some keys; none: everybody may come in.

    >>> keys = Keys(["secret"])
    >>> keys.owner({b"authorization": b"Bearer secret"}) == keys.owner({b"x-api-key": b"secret"})
    True
    >>> keys.owner({b"authorization": b"Bearer other"}) is None
    True
    """

    def __init__(self, keys: Iterable[str] = ()) -> None:
        """Keep digests of the keys."""
        self._digests = [_digest(key.encode()) for key in keys]

    @classmethod
    def of(cls, settings: ServerSettings) -> Keys:
        """Return those of the settings and of their file; ArgumentError for a file without any."""
        keys = list(settings.api_keys)
        if settings.api_key_file is not None:
            keys += _keys_of(settings.api_key_file)
        return cls(keys)

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._digests)

    def owner(self, headers: Mapping[bytes, bytes]) -> str | None:
        """Return a name for the key that a request has, which tells nothing of it; None: none."""
        given = _key_of(headers)
        if given is None:
            return None
        digest = _digest(given)
        # All are compared, whichever fits: the time says nothing.
        fitting = [each for each in self._digests if hmac.compare_digest(each, digest)]
        return fitting[0].hex()[:8] if fitting else None


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()


def _key_of(headers: Mapping[bytes, bytes]) -> bytes | None:
    scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
    if scheme.lower() == b"bearer" and token.strip():
        return token.strip()
    return next((headers[name] for name in _HEADERS if name in headers), None)


def _keys_of(path: Path) -> list[str]:
    try:
        lines = read_text(path).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ArgumentError(f"api_key_file {path}: {why}") from None
    keys = [line.strip() for line in lines]
    keys = [key for key in keys if key and not key.startswith("#")]
    if not keys:
        raise ArgumentError(f"api_key_file {path} has no key: write one on each line")
    return keys
