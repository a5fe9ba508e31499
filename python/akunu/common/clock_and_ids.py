"""What an answer has by chance or by the clock: ids and moments.

The server's journal repeats answers to the byte: there they follow from a few bytes:

>>> def ids() -> list[str]:
...     with ids_from(DerivedIds(b"key", 0.0)):
...         return [random_hex(2), random_hex(2)]
>>> ids() == ids()
True
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class DerivedIds:
    """Bytes that look random and follow from a key, and a moment that stays."""

    def __init__(self, key: bytes, now: float) -> None:
        """`key`: at most 64 bytes. `now`: in seconds, as `time.time` has them."""
        self._key = key
        self._n_drawn = 0
        self.now = now

    def hex(self, n_bytes: int) -> str:
        """Return the next bytes, 64 at most, as hexadecimal digits."""
        number = self._n_drawn.to_bytes(8, "little")
        self._n_drawn += 1
        return hashlib.blake2b(number, digest_size=n_bytes, key=self._key).hexdigest()

    def part(self, index: int) -> DerivedIds:
        """Return another source, whose bytes do not depend on what this one gave before.

        >>> DerivedIds(b"key", 0.0).part(0).hex(4) != DerivedIds(b"key", 0.0).part(1).hex(4)
        True
        """
        name = b"part" + index.to_bytes(8, "little")
        return DerivedIds(hashlib.blake2b(name, digest_size=32, key=self._key).digest(), self.now)


_DERIVED: ContextVar[DerivedIds | None] = ContextVar("akunu derived ids", default=None)


@contextmanager
def ids_from(ids: DerivedIds) -> Iterator[None]:
    """Have this task, and tasks that it begins, have ids and moments from here."""
    token = _DERIVED.set(ids)
    try:
        yield
    finally:
        _DERIVED.reset(token)


def random_hex(n_bytes: int) -> str:
    """Return random bytes as hexadecimal digits."""
    ids = _DERIVED.get()
    return os.urandom(n_bytes).hex() if ids is None else ids.hex(n_bytes)


def now() -> float:
    """Return the time, in seconds as `time.time` has them."""
    ids = _DERIVED.get()
    return time.time() if ids is None else ids.now
